package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"sync/atomic"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Prompt has the user messages of a [Query]. Make one with [Input] or [Inputs]. The
// zero Prompt is a *[ConfigError].
type Prompt struct {
	start func() func(context.Context) (UserMessage, error)
}

// Input returns a prompt of one text.
func Input(text string) Prompt {
	return Prompt{func() func(context.Context) (UserMessage, error) {
		sent := false
		return func(context.Context) (UserMessage, error) {
			if sent {
				return UserMessage{}, io.EOF
			}
			sent = true
			return UserText(text), nil
		}
	}}
}

// Inputs returns a prompt of many messages. next is called for one message after
// another, on its own goroutine, without waiting for answers. io.EOF ends the prompt,
// any other error ends the query. The context of next ends with the query.
func Inputs(next func(context.Context) (UserMessage, error)) Prompt {
	if next == nil {
		return Prompt{}
	}
	return Prompt{func() func(context.Context) (UserMessage, error) { return next }}
}

// Query runs a session for one prompt and yields its messages. It ends when every
// message of the prompt has a result and no background task runs. After
// Limits.Background it no longer waits for background tasks, and emits a
// [session.WarningIssued] event. Then, or when the loop ends early, Query closes the
// session, which takes at most Options.CloseTimeout.
//
// A failed turn is not an error: its [ResultMessage] is yielded, and its Failed method
// returns true. If there is an error, it is yielded last: options that cannot work, or
// an agent that does not start or ends unexpectedly. If ctx ends, the session is
// closed, and the error is an *[UnfinishedError], yielded at most Options.CloseTimeout
// after the end of ctx. opts may be nil. The iterator works for one loop; a second loop
// gets [ErrBusy].
func Query(ctx context.Context, p Prompt, opts *Options) iter.Seq2[Message, error] {
	return converse(ctx, "query", p, NewClient(opts))
}

// converse is Query with a client that is not connected. doing is what an
// [UnfinishedError] calls it.
func converse(ctx context.Context, doing string, p Prompt, c *Client) iter.Seq2[Message, error] {
	var used atomic.Bool
	return func(yield func(Message, error) bool) {
		if !used.CompareAndSwap(false, true) {
			yield(nil, fmt.Errorf("this query was run before, call Query again: %w", ErrBusy))
			return
		}
		if p.start == nil {
			yield(nil, &ConfigError{Option: "Prompt", Problem: "is empty", Fix: "make it with sdk.Input or sdk.Inputs"})
			return
		}
		if err := c.Connect(ctx); err != nil {
			yield(nil, err)
			return
		}
		q := &query{client: c, dial: c.dialing, progress: progress{doing: doing, clock: c.dialing.home.Clock()}}
		q.run(ctx, p.start(), yield)
	}
}

// query is one run of [Query].
type query struct {
	client *Client
	*dial
	progress progress
	finished atomic.Bool // the end of the session is the end of the prompt
}

func (q *query) run(ctx context.Context, next func(context.Context) (UserMessage, error), yield func(Message, error) bool) {
	over := context.WithoutCancel(ctx)
	feeding, stop := context.WithCancelCause(ctx)
	closed := false
	end := func() error {
		closed = true
		stop(context.Canceled)
		return q.client.end(over)
	}
	defer func() { // on every way out, a panic of the loop included
		if !closed {
			_ = end()
		}
	}()
	r, err := q.session.Read() // before the first message: nothing is missed
	if err != nil {
		yield(nil, err)
		return
	}
	defer r.Close()
	fed := kernel.NewPromise[struct{}]()
	q.home.Executor().Go(func() { fed.Fail(q.feed(ctx, feeding, next)) })
	var lost error
	var rest rest
	for {
		m, err := r.Next(ctx)
		if err == nil {
			q.progress.note(m)
			if e := protocol.UnreadableResult(m); e != nil {
				lost = e
			}
			if !yield(m, nil) {
				return
			}
			if rest.more(ctx, q.session) {
				continue
			}
			err = context.Cause(ctx)
		}
		switch {
		case kernel.StoppedBy(ctx, err):
			err = errors.Join(q.progress.stopped(q.session, kernel.Ended(ctx, err)), end())
		case errors.Is(err, io.EOF):
			err = ErrClosed // by somebody else: the runtime was shut down
			if q.finished.Load() {
				_, err = fed.Wait(over, q.home.Executor())
			}
			if err == nil {
				err = lost // the result reads as a success, but its transcript was lost
			}
		}
		if err != nil {
			yield(nil, kernel.Ended(ctx, err))
		}
		return
	}
}

// feed sends the prompt, waits until all is done, and closes the session, which
// ends the loop. The loop reads on to the last word of the agent. feeding ends
// with ctx and with the loop.
func (q *query) feed(ctx, feeding context.Context, next func(context.Context) (UserMessage, error)) error {
	err := q.send(feeding, next)
	if err == nil {
		err = q.client.awaitDone(feeding, q.session)
	}
	if kernel.StoppedBy(ctx, err) {
		err = q.progress.stopped(q.session, kernel.Ended(ctx, err))
	}
	q.finished.Store(q.session.State() < session.StateClosing)
	return errors.Join(err, q.client.end(context.WithoutCancel(ctx)))
}

// awaitDone waits until a run is over, and notes the tasks that it does not wait
// for.
func (c *Client) awaitDone(ctx context.Context, s *runtime.Session) error {
	left, err := s.AwaitDone(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = left
	return err
}

func (c *Client) unfinished() []protocol.BackgroundTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

func (q *query) send(ctx context.Context, next func(context.Context) (UserMessage, error)) error {
	for {
		q.progress.pull(true)
		m, err := pull(ctx, next)
		if err == nil || errors.Is(err, io.EOF) {
			q.progress.pull(false)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the prompt's next message: %w", err)
		}
		if _, err := q.session.Send(ctx, &m); err != nil {
			return err
		}
	}
}

// pull calls next, whose panic must not take the program with it.
func pull(ctx context.Context, next func(context.Context) (UserMessage, error)) (m UserMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &session.PanicError{Value: p, Message: "Inputs", Stack: debug.Stack()}
		}
	}()
	return next(ctx)
}
