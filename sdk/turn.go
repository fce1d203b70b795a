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

// Messages yields the session's messages up to and with the result of this very
// message; those of turns that the agent starts in between are among them. An
// error comes last: why the session ended, why ctx ended, [ErrNotRun], or
// [ErrBusy]. Breaking off leaves the rest for the next reader.
func (t *Turn) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		relay(ctx, t.t.Messages(ctx), yield)
	}
}

// Result waits for the turn's result, which may be an error of the turn
// (ResultMessage.Failed). While nobody else reads the session, it reads and
// drops the messages on the way.
func (t *Turn) Result(ctx context.Context) (*ResultMessage, error) {
	r, err := t.t.Result(ctx)
	return r, ended(ctx, err)
}
