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

// Query runs a session for one prompt and yields its messages. It ends when the prompt has
// a result and no background task runs. After Limits.Background it no longer waits for background tasks, and emits a
// [session.WarningIssued] event. Then, or when the loop ends early, Query closes the
// session, which takes at most Options.CloseTimeout.
//
// A failed turn is not an error: its [ResultMessage] is yielded, and its Failed method
// returns true. If there is an error, it is yielded last: options that cannot work, or
// an agent that does not start or ends unexpectedly. If ctx ends, the session is
// closed, and the error is an *[session.UnfinishedError], yielded at most Options.CloseTimeout
// after the end of ctx. opts may be nil. The iterator works for one loop; a second loop
// gets [ErrBusy].
func Query(ctx context.Context, prompt string, opts *Options) iter.Seq2[Message, error] {
	return converse(ctx, "query", only(prompt), NewClient(opts))
}

// Stream is [Query] with a prompt of many messages; [UserText] makes one. A separate
// goroutine reads them, without waiting for answers, and Stream ends when each has a
// result. An error of messages ends it. A panic of messages is a *[PanicError]. If messages
// waits for something, let it stop waiting when a context ends, and end that one after the
// loop. nil is a *[ConfigError].
func Stream(ctx context.Context, messages iter.Seq2[UserMessage, error], opts *Options) iter.Seq2[Message, error] {
	return converse(ctx, "query", messages, NewClient(opts))
}

// only is a prompt of one text.
func only(text string) iter.Seq2[UserMessage, error] {
	return func(yield func(UserMessage, error) bool) { yield(UserText(text), nil) }
}

// converse is Query with a client that is not connected. doing is what an
// [session.UnfinishedError] calls it.
func converse(ctx context.Context, doing string, messages iter.Seq2[UserMessage, error], c *Client) iter.Seq2[Message, error] {
	var used atomic.Bool
	return func(yield func(Message, error) bool) {
		if !used.CompareAndSwap(false, true) {
			yield(nil, fmt.Errorf("this query was run before, call Query again: %w", ErrBusy))
			return
		}
		if messages == nil {
			yield(nil, &ConfigError{Option: "Prompt", Problem: "is nil", Fix: "give an iterator of messages, or use sdk.Query for one text"})
			return
		}
		if err := c.Connect(ctx); err != nil {
			yield(nil, err)
			return
		}
		q := &query{client: c, dial: c.dialing, progress: progress{doing: doing, clock: c.dialing.home.Clock()}}
		q.run(ctx, messages, yield)
	}
}

// query is one run of [Query].
type query struct {
	client *Client
	*dial
	progress progress
	finished atomic.Bool // the end of the session is the end of the prompt
}

func (q *query) run(ctx context.Context, messages iter.Seq2[UserMessage, error], yield func(Message, error) bool) {
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
	q.home.Executor().Go(func() { fed.Fail(q.feed(ctx, feeding, messages)) })
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
			err = ErrClosed // not by this call: the runtime was shut down
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
func (q *query) feed(ctx, feeding context.Context, messages iter.Seq2[UserMessage, error]) error {
	err := q.send(feeding, messages)
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

func (q *query) send(ctx context.Context, messages iter.Seq2[UserMessage, error]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the prompt's next message: %w", &session.PanicError{Value: p, Message: "Stream", Stack: debug.Stack()})
		}
	}()
	q.progress.pull(true)
	for m, wrong := range messages {
		if wrong != nil {
			return fmt.Errorf("the prompt's next message: %w", wrong)
		}
		q.progress.pull(false)
		if _, err := q.session.Send(ctx, &m); err != nil {
			return err
		}
		q.progress.pull(true)
	}
	q.progress.pull(false)
	return nil
}
