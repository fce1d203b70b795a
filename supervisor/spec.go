package supervisor

import (
	"errors"
	"fmt"
	"time"
)

// Strategy says which children a failure affects.
type Strategy int

// The strategies of OTP.
const (
	// OneForOne restarts the failed child alone.
	OneForOne Strategy = iota
	// OneForAll restarts all children.
	OneForAll
	// RestForOne restarts the failed child and all children after it in the [Spec].
	RestForOne
)

func (s Strategy) String() string {
	switch s {
	case OneForOne:
		return "one_for_one"
	case OneForAll:
		return "one_for_all"
	case RestForOne:
		return "rest_for_one"
	default:
		return fmt.Sprintf("Strategy(%d)", int(s))
	}
}

// Class says when the end of a child is a failure that restarts it.
type Class int

// The classes of OTP, which calls them restart types.
const (
	// Permanent children are always restarted.
	Permanent Class = iota
	// Transient children are restarted when they end with a reason. A transient child that
	// ended normally is started again only by a restart of its group or by
	// [Supervisor.RestartChild].
	Transient
	// Temporary children are never restarted, not even with their group.
	Temporary
)

func (c Class) String() string {
	switch c {
	case Permanent:
		return "permanent"
	case Transient:
		return "transient"
	case Temporary:
		return "temporary"
	default:
		return fmt.Sprintf("Class(%d)", int(c))
	}
}

// restarts reports whether an end with that reason calls for a restart.
func (c Class) restarts(reason error) bool {
	return c == Permanent || c == Transient && reason != nil
}

// Deadlines of a [Child].
const (
	DefaultShutdown = 5 * time.Second // graceful stop
	DefaultKill     = 5 * time.Second // end after a kill
	// Brutal is a value of Child.Shutdown that kills at once, without a graceful stop.
	Brutal time.Duration = -1
)

// Child specifies one child.
type Child struct {
	Name  string // not empty, unique among its siblings
	Class Class  // zero: [Permanent]
	// Significant makes the supervisor stop when the child ends unasked and is not
	// restarted, as OTP's auto_shutdown any_significant does. A permanent child cannot be
	// significant.
	Significant bool
	// Shutdown is how long a graceful stop may take before the child is
	// killed. 0 means DefaultShutdown; Brutal means no graceful stop.
	Shutdown time.Duration
	// Kill is how long a killed child may take to end before it counts as stuck. 0 means
	// DefaultKill.
	Kill time.Duration
}

// Intensity limits how often a supervisor restarts. After more than Max failures within a
// sliding Window, the supervisor gives up. As in OTP, a failure exactly one Window old
// still counts.
type Intensity struct {
	Max    int           // 0 means DefaultMaxRestarts; below 0: never restart
	Window time.Duration // 0 means DefaultWindow
}

// The default intensity.
const (
	DefaultMaxRestarts = 3
	DefaultWindow      = 30 * time.Second
)

// Spec specifies a supervisor. The children are started in the order of Children and
// stopped in reverse order.
type Spec struct {
	Name      string    // not empty; used in events and errors
	Strategy  Strategy  // zero: [OneForOne]
	Intensity Intensity // zero: the defaults
	Backoff   Backoff   // delays before restarts; attempts are counted for each child separately
	Children  []Child   // may be empty
}

// SpecError is one mistake in a [Spec]. [New] reports all of them joined.
type SpecError struct {
	Supervisor string // Spec.Name; empty if the name is missing
	Child      string // name of the child; empty if the mistake is not in a child
	Problem    string // what is wrong and what would be right
}

func (e *SpecError) Error() string {
	if e.Child == "" {
		return fmt.Sprintf("supervisor %q: %s", e.Supervisor, e.Problem)
	}
	return fmt.Sprintf("supervisor %q: child %q: %s", e.Supervisor, e.Child, e.Problem)
}

func (s *Spec) validate() error {
	var errs []error
	add := func(child, format string, args ...any) {
		errs = append(errs, &SpecError{s.Name, child, fmt.Sprintf(format, args...)})
	}
	if s.Name == "" {
		add("", "the name is empty; give it one")
	}
	if s.Strategy < OneForOne || s.Strategy > RestForOne {
		add("", "unknown strategy %d; use OneForOne, OneForAll or RestForOne", s.Strategy)
	}
	if s.Intensity.Window < 0 {
		add("", "the intensity window is %v; use 0 for the default or a positive duration", s.Intensity.Window)
	}
	if problem := s.Backoff.problem(); problem != "" {
		add("", "%s", problem)
	}
	seen := make(map[string]bool, len(s.Children))
	for i, c := range s.Children {
		switch {
		case c.Name == "":
			add("", "the name of child %d is empty; give it one", i)
		case seen[c.Name]:
			add(c.Name, "the name is taken by an earlier child; names must be unique")
		}
		seen[c.Name] = true
		if c.Class < Permanent || c.Class > Temporary {
			add(c.Name, "unknown class %d; use Permanent, Transient or Temporary", c.Class)
		}
		if c.Significant && c.Class == Permanent {
			add(c.Name, "a permanent child cannot be significant, since it never ends for good; make it Transient or Temporary")
		}
		if c.Shutdown < 0 && c.Shutdown != Brutal {
			add(c.Name, "the shutdown deadline is %v; use 0 for the default, Brutal, or a positive duration", c.Shutdown)
		}
		if c.Kill < 0 {
			add(c.Name, "the kill deadline is %v; use 0 for the default or a positive duration", c.Kill)
		}
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left out. The result shares nothing with s.
func (s Spec) withDefaults() Spec {
	if s.Intensity.Max == 0 {
		s.Intensity.Max = DefaultMaxRestarts
	}
	if s.Intensity.Window == 0 {
		s.Intensity.Window = DefaultWindow
	}
	s.Children = append([]Child(nil), s.Children...)
	for i := range s.Children {
		c := &s.Children[i]
		if c.Shutdown == 0 {
			c.Shutdown = DefaultShutdown
		}
		if c.Kill == 0 {
			c.Kill = DefaultKill
		}
	}
	return s
}
