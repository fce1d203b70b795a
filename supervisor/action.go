package supervisor

import "time"

// Action is one thing the owner of a [Supervisor] has to do. The owner carries
// out the actions of one input, in order, before it gives the next input; what
// it learns meanwhile (a spawn that failed, say) it reports afterwards. The
// concrete types are *StartChild, *StopChild, *KillChild, *SetTimer, *Escalate and
// *Stopped.
type Action interface{ isAction() }

// StartChild asks for a new incarnation of a child. Its outcome is told by
// ChildUp or, with the reason, by ChildDown.
type StartChild struct {
	Name        string // Child.Name
	Incarnation int    // 1 for the first
}

// StopChild asks a child to end gracefully. Its end is told by ChildDown.
type StopChild struct {
	Name        string // Child.Name
	Incarnation int    // which one, from 1
}

// KillChild asks for the end of a child by all means. Its end is told by
// ChildDown.
type KillChild struct {
	Name        string // Child.Name
	Incarnation int    // which one, from 1
}

// SetTimer asks for a call of Timer with the Token, After from now. Timers are
// never cancelled: one that is no longer of interest is ignored when it fires.
type SetTimer struct {
	Token Token         // to be passed to Timer
	After time.Duration // 0: at once
}

// Token names a timer within its supervisor. Zero names none.
type Token uint64

// Escalate says that the supervisor gave up: the intensity was exceeded, or a
// child refused to end. All children that could be stopped are down. Only
// Stopped follows.
type Escalate struct {
	Reason *Failure // why, with the failures before it
}

func (*StartChild) isAction() {}
func (*StopChild) isAction()  {}
func (*KillChild) isAction()  {}
func (*SetTimer) isAction()   {}
func (*Escalate) isAction()   {}
func (*Stopped) isAction()    {}
