package sdk

import (
	"context"
	"iter"

	"github.com/agent-troupe/troupe/runtime"
)

// Turn is a user message that was sent, and the agent's work on it. [Client.Send]
// returns it.
type Turn struct{ t *runtime.Turn }

// UUID returns the uuid of the turn's message, for [Client.RewindFiles] and
// [Client.CancelMessage]. The turn's result has it, too.
func (t *Turn) UUID() string { return t.t.UUID() }

// Messages yields the messages of this turn only, up to and including its result.
// [Client.Messages] yields the messages of all turns; use one of the two to read a
// session. If there is an error, it is yielded last: why the session ended, why ctx
// ended, [session.ErrNotRun], or [ErrBusy].
//
// The turn begins where the agent reports that it began with the message
// (command_lifecycle or system/init, observed on Claude Code 2.1.329), otherwise after
// the previous result. The first turn also has the messages before it, such as Qoder's
// system/init. Messages does not yield messages of other turns, of turns that the agent
// starts itself, of background tasks that an earlier turn started, and messages between
// two turns. If the agent handles several user messages in one turn, the loop of the
// first yields all messages of that turn; the loop of another one yields those from the
// point where the agent began with it.
//
// Messages skips unread messages that come before the turn: read turns in their order,
// or use [Client.Messages]. If the loop ends early, [Client.Messages] yields the
// remaining messages, until the loop of a later turn skips them.
func (t *Turn) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		relay(ctx, t.t.Messages(ctx), yield)
	}
}

// Done returns a channel that is closed when the turn has a result, or will not get
// one. Done does not read messages; another goroutine must read them.
func (t *Turn) Done() <-chan struct{} { return t.t.Done() }

// Result waits for the turn's result. A failed result is not an error: check
// ResultMessage.Failed. If no other goroutine reads the messages of the session, Result
// reads and drops those before the result.
func (t *Turn) Result(ctx context.Context) (*ResultMessage, error) {
	r, err := t.t.Result(ctx)
	return r, ended(ctx, err)
}
