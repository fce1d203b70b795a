package sdk

import (
	"context"
	"iter"

	"github.com/agent-troupe/troupe/runtime"
)

// Turn is a user message on its way to its result.
type Turn struct{ t *runtime.Turn }

// UUID identifies the turn's message: on its result, in receipts, and for
// RewindFiles.
func (t *Turn) UUID() string { return t.t.UUID() }

// Messages yields the messages of this turn only, up to and with its result.
// [Client.Messages] yields everything: read a session by one of the two. An error comes
// last: why the session ended, why ctx ended, [session.ErrNotRun], or [ErrBusy].
//
// The turn begins where the agent says that it began with the message
// (command_lifecycle or system/init, observed on Claude Code 2.1.329), else after
// the result before it. The first turn also has what came before it, such as
// Qoder's system/init. Not among the messages: those of other turns, of turns
// that the agent starts by itself, of background tasks that an earlier turn
// started, and what the agent says between two turns. Partial messages are those
// of the turn. If the agent takes up several messages in one turn, the loop of the
// first has everything, and that of another begins where the agent took it up.
//
// Messages of the session that come before the turn and that nobody has read are
// skipped: read turns in their order, or [Client.Messages], which has everything.
// Breaking off leaves the rest for [Client.Messages], until the loop of a later
// turn skips it.
func (t *Turn) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		relay(ctx, t.t.Messages(ctx), yield)
	}
}

// Done is closed when the turn has its result, or the reason why it has none. It reads
// no messages: somebody else has to.
func (t *Turn) Done() <-chan struct{} { return t.t.Done() }

// Result waits for the turn's result, which may be an error of the turn
// (ResultMessage.Failed). While nobody else reads the session, it reads and
// drops the messages on the way.
func (t *Turn) Result(ctx context.Context) (*ResultMessage, error) {
	r, err := t.t.Result(ctx)
	return r, ended(ctx, err)
}
