package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

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
	// Start is how long the child may take from StartChild to ChildUp before it is killed;
	// that is a failure whose reason matches ErrStart. 0: no limit.
	Start time.Duration
	// Shutdown is how long a graceful stop may take before the child is
	// killed. 0 means DefaultShutdown; Brutal means no graceful stop.
	Shutdown time.Duration
	// Kill is how long a killed child may take to end before it counts as stuck. 0 means
	// DefaultKill.
	Kill time.Duration
	// Backoff is the delay before a restart that this child causes. Zero: that of the
	// [Spec].
	Backoff Backoff
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
	Strategy  Strategy  // nil: [OneForOne]
	Intensity Intensity // zero: the defaults
	Backoff   Backoff   // delays before restarts; attempts are counted for each child separately
	Children  []Child   // may be empty; must be with [SimpleOneForOne]
	Template  Child     // what every child of [SimpleOneForOne] is, without a name; zero otherwise
}

// Policy is the part of a [Spec] that its owner may leave to a user. The zero value has
// the defaults of the Spec, or those that the owner documents.
type Policy struct {
	Strategy  Strategy  // nil: the owner's
	Intensity Intensity // zero: the owner's
	Backoff   Backoff   // zero: the owner's
}

// Or returns the policy with each zero field taken from def.
func (p Policy) Or(def Policy) Policy {
	if p.Strategy == nil {
		p.Strategy = def.Strategy
	}
	if p.Intensity == (Intensity{}) {
		p.Intensity = def.Intensity
	}
	if p.Backoff == (Backoff{}) {
		p.Backoff = def.Backoff
	}
	return p
}

// Spec returns a Spec with the policy.
func (p Policy) Spec(name string, children ...Child) Spec {
	return Spec{Name: name, Strategy: p.Strategy, Intensity: p.Intensity, Backoff: p.Backoff, Children: children}
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

// Validate returns the error that [New] would return for the spec.
func (s Spec) Validate() error {
	var errs []error
	add := func(child, format string, args ...any) {
		errs = append(errs, &SpecError{s.Name, child, fmt.Sprintf(format, args...)})
	}
	if s.Name == "" {
		add("", "the name is empty; give it one")
	}
	if std, ok := s.Strategy.(Standard); ok && (std < OneForOne || std > SimpleOneForOne) {
		add("", "unknown strategy %d; use OneForOne, OneForAll, RestForOne, SimpleOneForOne or a Strategy of your own", int(std))
	}
	s.checkTemplate(add)
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
		c.check(add)
	}
	return errors.Join(errs...)
}

// check finds the mistakes in a child, besides its name.
func (c *Child) check(add func(child, format string, args ...any)) {
	if c.Class < Permanent || c.Class > Temporary {
		add(c.Name, "unknown class %d; use Permanent, Transient or Temporary", c.Class)
	}
	if c.Significant && c.Class == Permanent {
		add(c.Name, "a permanent child cannot be significant, since it never ends for good; make it Transient or Temporary")
	}
	if c.Start < 0 {
		add(c.Name, "the start deadline is %v; use 0 for no limit or a positive duration", c.Start)
	}
	if c.Shutdown < 0 && c.Shutdown != Brutal {
		add(c.Name, "the shutdown deadline is %v; use 0 for the default, Brutal, or a positive duration", c.Shutdown)
	}
	if c.Kill < 0 {
		add(c.Name, "the kill deadline is %v; use 0 for the default or a positive duration", c.Kill)
	}
	if problem := c.Backoff.problem(); problem != "" {
		add(c.Name, "%s", problem)
	}
}

func (s *Spec) simple() bool { return s.Strategy == SimpleOneForOne }

func (s *Spec) checkTemplate(add func(child, format string, args ...any)) {
	switch {
	case !s.simple() && s.Template != (Child{}):
		add("", "a template is for SimpleOneForOne; list the children instead")
	case !s.simple():
	case len(s.Children) > 0:
		add("", "SimpleOneForOne lists no children; start them with StartChild")
	case s.Template.Name != "":
		add("", "the template has a name; StartChild gives each child its own")
	default:
		s.Template.check(add)
	}
}

// withDefaults fills in what was left out. The result shares nothing with s.
func (s Spec) withDefaults() Spec {
	s.Intensity.Max = cmp.Or(s.Intensity.Max, DefaultMaxRestarts)
	s.Intensity.Window = cmp.Or(s.Intensity.Window, DefaultWindow)
	if s.Strategy == nil {
		s.Strategy = OneForOne
	}
	s.Children = append([]Child(nil), s.Children...)
	for i := range s.Children {
		c := &s.Children[i]
		c.Shutdown = cmp.Or(c.Shutdown, DefaultShutdown)
		c.Kill = cmp.Or(c.Kill, DefaultKill)
		if c.Backoff == (Backoff{}) {
			c.Backoff = s.Backoff
		}
	}
	return s
}
