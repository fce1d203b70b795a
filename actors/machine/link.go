package machine

import "github.com/agent-troupe/troupe/session"

// Phase is how far the life of an agent process has come.
type Phase int

// Phases, in order. A process never goes back; another one begins anew.
const (
	Idle      Phase = iota // not launched
	Launching              // the spawner is at work
	Up                     // the process runs
	Exited                 // the process has ended; output is drained, the tree swept
	Gone                   // nothing is left, or it is known what is
)

func (p Phase) String() string {
	return [...]string{"idle", "launching", "up", "exited", "ended"}[p]
}

// Stage is a step of the close ladder.
type Stage int

// The ladder. Each step that does not end the process within its grace leads
// to the next one.
const (
	Open        Stage = iota // not closing
	ClosedStdin              // stdin is closed
	Terminated               // SIGTERM was sent to the group
	Killed                   // SIGKILL was sent to the group
)

func (s Stage) String() string {
	return [...]string{"open", "stdin closed", "terminated", "killed"}[s]
}

// Link is what can be said of a process at one instant.
type Link struct {
	Gen      int // which process of the session; the first is 1
	Phase    Phase
	Stage    Stage
	PID      int
	Exit     session.ExitStatus // from Exited on: valid in Gone
	Late     bool               // it was killed because a grace, or the time of a caller of Close, had run out
	Err      Fault              // why it could not start, or had to be given up
	Leftover Fault              // what did not stop
	Signal   string             // what Troupe sent the process while it ran; "": nothing
	Why      string             // the ladder was begun for this, and not for a close; "": it was not
	Stderr   string             // tail
	Noise    string             // tail of the output that was not a frame
}
