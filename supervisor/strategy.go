package supervisor

import (
	"fmt"
	"runtime/debug"
	"slices"
)

// Strategy decides what a failure of one child does to its siblings. [Standard] has the
// strategies of OTP; a type of your own may decide by the failure. It is asked when the
// class of the child calls for a restart and the intensity allows one. It is called with
// one failure at a time, while the supervisor handles an input, and must not block.
type Strategy interface {
	// Decide returns what to do about the failure. children are all children in the order
	// of the [Spec]; the one that failed is among them, down.
	Decide(failed Failed, children []ChildState) Decision
}

// Decision is what a [Strategy] wants. It restarts children, leaves the failed child
// down, or escalates. Any other decision is a *[StrategyError], and the supervisor
// gives up.
type Decision struct {
	// Restart names the children to restart, in any order. They are stopped in reverse order
	// of the [Spec], and started in its order; temporary children are not started again. If
	// it does not name the child that failed, that child stays down, which a permanent child
	// must not.
	Restart []string
	// Escalate gives up: all children are stopped, and the parent gets a *[Failure].
	Escalate bool
	// Why is the reason of the decision, in a few words, for events and errors. It may be
	// empty.
	Why string
}

// StrategyError is a decision that cannot be carried out. It is the reason of the
// [Failure] with which the supervisor then gives up, together with that of the child.
type StrategyError struct {
	Supervisor string // Spec.Name
	Child      string // the child that failed
	Problem    string // what is wrong with the decision
	Panic      any    // what Decide panicked with; nil without a panic
	Stack      []byte // of the panic
}

func (e *StrategyError) Error() string {
	return fmt.Sprintf("supervisor %s: the strategy cannot handle the failure of %s: %s", e.Supervisor, e.Child, e.Problem)
}

// Standard is one of the strategies of OTP. It implements [Strategy].
type Standard int

// The strategies of OTP.
const (
	// OneForOne restarts the failed child alone.
	OneForOne Standard = iota
	// OneForAll restarts all children.
	OneForAll
	// RestForOne restarts the failed child and all children after it in the [Spec].
	RestForOne
	// SimpleOneForOne is OneForOne for any number of children of one kind, which
	// [Supervisor.StartChild] makes from Spec.Template. A child that has ended and is not
	// restarted is forgotten.
	SimpleOneForOne
)

func (s Standard) String() string {
	switch s {
	case OneForOne:
		return "one_for_one"
	case OneForAll:
		return "one_for_all"
	case RestForOne:
		return "rest_for_one"
	case SimpleOneForOne:
		return "simple_one_for_one"
	default:
		return fmt.Sprintf("Standard(%d)", int(s))
	}
}

// Decide implements [Strategy].
func (s Standard) Decide(failed Failed, children []ChildState) Decision {
	d := Decision{Why: s.String()}
	if s == OneForOne || s == SimpleOneForOne {
		d.Restart = []string{failed.Child}
		return d
	}
	for _, c := range children {
		if c.Name == failed.Child && s == RestForOne {
			d.Restart = nil
		}
		d.Restart = append(d.Restart, c.Name)
	}
	return d
}

// decide asks the strategy. The error is a *StrategyError.
func (s *Supervisor) decide(f Failed) (d Decision, err error) {
	broken := func(format string, args ...any) *StrategyError {
		return &StrategyError{Supervisor: s.name, Child: f.Child, Problem: fmt.Sprintf(format, args...)}
	}
	defer func() {
		if p := recover(); p != nil {
			e := broken("it panicked: %v", p)
			e.Panic, e.Stack = p, debug.Stack()
			err = e
		}
	}()
	d = s.strategy.Decide(f, s.Snapshot())
	if d.Escalate {
		if len(d.Restart) > 0 {
			return d, broken("it both escalates and restarts %q", d.Restart)
		}
		return d, nil
	}
	for _, name := range d.Restart {
		if s.find(name) == nil {
			return d, broken("it restarts %q, which is no child", name)
		}
	}
	if c := s.find(f.Child); c != nil && c.spec.Class == Permanent && !slices.Contains(d.Restart, f.Child) {
		return d, broken("it leaves a permanent child down")
	}
	return d, nil
}
