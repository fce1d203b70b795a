package supervisor

import "time"

// Action is one thing that the owner of a [Supervisor] must do. The owner carries out the
// actions of one input, in order, before the next input. It reports what happens
// meanwhile, such as a failed spawn, afterwards. The concrete types are *StartChild,
// *StopChild, *KillChild, *SetTimer, *Escalate and *Stopped.
type Action interface{ isAction() }

// StartChild asks for a new incarnation of a child. Report the outcome with ChildUp, or
// with ChildDown and the reason.
type StartChild struct {
	Name        string // Child.Name
	Incarnation int    // 1 for the first
}

// StopChild asks a child to end gracefully. Report its end with ChildDown.
type StopChild struct {
	Name        string // Child.Name
	Incarnation int    // which one, from 1
}

// KillChild asks to kill a child. Report its end with ChildDown.
type KillChild struct {
	Name        string // Child.Name
	Incarnation int    // which one, from 1
}

// SetTimer asks for a call of Timer with Token after the time After. Timers are never
// cancelled; a timer that is no longer needed is ignored when it fires.
type SetTimer struct {
	Token Token         // argument of Timer
	After time.Duration // 0: at once
}

// Token identifies a timer of a supervisor. Zero is not a timer.
type Token uint64

// Escalate says that the supervisor has given up: the intensity was exceeded, or a child
// did not end. All children that could be stopped are down. Only Stopped follows.
type Escalate struct {
	Reason *Failure // why, with the failures before it
}

func (*StartChild) isAction() {}
func (*StopChild) isAction()  {}
func (*KillChild) isAction()  {}
func (*SetTimer) isAction()   {}
func (*Escalate) isAction()   {}
func (*Stopped) isAction()    {}
