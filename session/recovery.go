package session

import (
	"fmt"
	"time"
)

// Recovery is what a session does about the messages that were under way when the
// agent's process died. It applies only if Options.MaxRestarts allows another process.
// Messages and calls that were not yet written always go to the next process.
type Recovery string

// The policies of recovery.
const (
	// RecoverContinue makes the next process finish the turn. It resumes the session and
	// gets each message again, under the same uuid. Claude Code remembers the uuids of
	// its messages across processes and says whether it knows one (observed on 2.1.329):
	// a message that it does not know was lost, and is run; for one that it knows, a short
	// message follows that makes the model continue. The turn of the user lives on and has
	// one result, with Recovered set.
	//
	// An agent that does not say such things (Claude Code 2.1.197, qodercli) never gets a uuid
	// twice. Its transcript decides, if it can be read, together with what was seen: a message
	// that is stored is continued; one of which something was seen is continued by a message
	// that quotes it; one of which nothing was seen and nothing is stored was lost, and is sent
	// again. Any other message ends as with RecoverReport. So do messages that are not prompts,
	// such as slash commands.
	RecoverContinue Recovery = "continue"
	// RecoverRerun sends each message again as a new one, under another uuid, whatever the
	// agent has done of it: tools that ran may run a second time. The turn of the user lives
	// on and has one result, with Recovered set. It is for messages whose effects may
	// happen twice, and for those that RecoverContinue cannot continue, such as slash commands.
	RecoverRerun Recovery = "rerun"
	// RecoverReport ends each message that was written with the *[ExitError], because the
	// agent may have begun to handle it. The session continues.
	RecoverReport Recovery = "report"
	// RecoverFail ends the session with the *[ExitError], as without MaxRestarts.
	RecoverFail Recovery = "fail"
)

// DefaultEqualDeaths is the default of Options.EqualDeaths.
const DefaultEqualDeaths = 3

// Known reports whether r is one of the policies.
func (r Recovery) Known() bool {
	switch r {
	case RecoverContinue, RecoverRerun, RecoverReport, RecoverFail:
		return true
	}
	return false
}

// Death is the end of an agent's process, for Options.DecideRecovery and
// [Recovering].
type Death struct {
	State     State           // of the session when the process ended
	Err       error           // usually an *[ExitError], which names the exit status and the tail of stderr
	Attempt   int             // which restart a recovery would be since the agent last lived for RestartBackoff.ResetAfter, from 1
	Equal     int             // how many deaths in a row were equal to this one, with no result between them, from 1
	SessionID string          // the agent's id of the session; "": it did not say
	Messages  []FailedMessage // messages that were written and have no result, oldest first
	Tools     []RunningTool   // tool calls without a result, oldest first, at most 64; their Age is not set
	Gates     int             // requests of the agent that waited for a person
	// Lost is what the user has seen of the turn that ran, and the history lacks that the
	// next process resumes.
	Lost LostHistory
}

// LostHistory is what an agent had shown and not yet stored when it died. Claude Code stores
// what it has shown about 0.1 s later (observed on 2.1.329).
type LostHistory struct {
	// Known says that the agent's transcript was read. False: it cannot be, or the agent may
	// run elsewhere (Options.Spawner), so anything may be lost.
	Known    bool
	Messages []string   // uuids of the agent's messages in the turn that ran, oldest first, at most the last 64
	Tools    []LostTool // oldest first, at most 64
}

// LostTool is a tool call that the user has seen. Its effects may exist.
type LostTool struct {
	ID   string // of the call
	Name string // of the tool
	// Call says that the history lacks the call. False: it lacks only the result.
	Call bool
}

// FailedMessage is a user message without a result whose agent has died.
type FailedMessage struct {
	UUID string // of the message
	// Accepted says that the agent showed that it had begun with the message. False: it
	// is not known whether it had.
	Accepted bool
}

// RecoveryError says why a session does not continue after the death of its agent,
// although Options.MaxRestarts allows it, or why a turn does not. Err is the death.
type RecoveryError struct {
	Problem string // what prevents the recovery
	Err     error  // usually an *[ExitError]
}

func (e *RecoveryError) Error() string { return fmt.Sprintf("no recovery: %s: %v", e.Problem, e.Err) }

func (e *RecoveryError) Unwrap() error { return e.Err }

// Backoff says how long a session waits before it starts the agent again: the delay
// before attempt n is uniform in [0, min(Max, Initial·Factorⁿ⁻²)]; the first attempt
// has no delay. Zero fields take their defaults.
type Backoff struct {
	Initial time.Duration // limit of the delay before the second attempt; default: 200 ms
	Max     time.Duration // limit of all delays; default: 30 s, or Initial if that is longer
	Factor  float64       // at least 1; default: 2
	// ResetAfter is how long an agent must have been ready for its death to count as the
	// first attempt again. Default: 1 min.
	ResetAfter time.Duration
}

// RecoveryOpening is how the messages begin that a recovery sends to the next process. In a
// transcript they stand where prompts of the user do.
const RecoveryOpening = "[Your process stopped while it was working on the "
