package session

import "github.com/agent-troupe/troupe/protocol"

// StopScope says what is to be stopped in a session. The zero value stops nothing, and
// asks only what runs.
type StopScope struct {
	// Turn interrupts the running turn, whose result is then an error.
	Turn bool
	// Queued interrupts the running turn and cancels the messages that wait behind it.
	// Their turns end with [ErrNotRun]. Claude; another agent keeps them, and the receipt
	// says so.
	Queued bool
	// Tasks are background tasks to stop, by their ids. An id that is not known does no harm.
	Tasks []string
	// AllTasks stops every background task that lives.
	AllTasks bool
	// Kill kills the agent and ends the session, whatever else is set.
	Kill bool
}

// StopReceipt says what a stop has ended and what it has not. A turn is named by the uuid of
// its message. Work that ended by itself meanwhile counts as stopped.
type StopReceipt struct {
	Turn      string                    // the turn that ran and has ended; empty: none did, or it still runs
	Cancelled []string                  // messages that had waited and will not run
	Tasks     []protocol.BackgroundTask // background tasks that have ended, by their ids
	Killed    bool                      // the session has ended, and no process of it is left

	Running      string                    // the turn that still runs; empty: none
	OwnTurn      bool                      // a turn runs that the agent has started by itself
	Queued       []string                  // messages that wait for their turn, oldest first
	RunningTasks []protocol.BackgroundTask // background tasks that still live, by their ids; after a kill those that run elsewhere
}
