package runtime

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Turn is a user message that was sent, and the agent's work on it. [Session.Send] returns
// it.
type Turn struct {
	s *Session
	t *user.Turn
}

// UUID returns the uuid of the turn's message, for requests that name a message. The turn's
// result has it, too.
func (t *Turn) UUID() string { return t.t.UUID }

// Done returns a channel that is closed when the turn has a result, or will not get
// one. Done does not read messages; another goroutine must read them.
func (t *Turn) Done() <-chan struct{} { return t.t.Done() }

// Result waits for the turn's result. A failed result is not an error: check
// ResultMessage.Failed. If no other goroutine reads the messages of the session, Result
// reads and drops those before the result.
func (t *Turn) Result(ctx context.Context) (*protocol.ResultMessage, error) {
	for _, err := range t.deliveries(ctx) { // none is decoded
		if errors.Is(err, session.ErrBusy) {
			if err := t.s.rt.sys.Executor().Await(ctx, t.t.Done()); err != nil {
				return nil, kernel.Ended(ctx, err)
			}
			break
		}
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	select {
	case <-t.t.Done():
		return t.t.Result()
	default:
		return nil, session.ErrNotRun
	}
}

// Messages yields the messages of this turn only, up to and including its result.
// [Session.Messages] yields the messages of all turns; use one of the two to read a
// session. If there is an error, it is yielded last: why the session ended, why ctx
// ended, [session.ErrNotRun], or [session.ErrBusy].
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
// or use [Session.Messages]. If the loop ends early, [Session.Messages] yields the
// remaining messages, until the loop of a later turn skips them.
func (t *Turn) Messages(ctx context.Context) iter.Seq2[protocol.Message, error] {
	return func(yield func(protocol.Message, error) bool) {
		for e, err := range t.deliveries(ctx) {
			var m protocol.Message
			if err == nil {
				m = decode(e)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// deliveries yields the messages as they came. Each is valid until the next step.
func (t *Turn) deliveries(ctx context.Context) iter.Seq2[*user.Delivery, error] {
	return func(yield func(*user.Delivery, error) bool) {
		c, err := t.s.core.User.Consume()
		if err != nil {
			yield(nil, err)
			return
		}
		defer c.Release()
		var e user.Delivery
		for {
			e, err = c.NextOf(ctx, t.t)
			switch {
			case errors.Is(err, io.EOF):
				if _, err := t.t.Result(); err != nil {
					yield(nil, err)
				}
				return
			case err != nil:
				yield(nil, kernel.Ended(ctx, err))
				return
			}
			if !yield(&e, nil) {
				return
			}
			if slices.Contains(e.Turns, t.t) {
				return
			}
		}
	}
}

// Reader reads the messages of a session one at a time. A session has at most one
// Reader. It must be used by one goroutine only.
type Reader struct {
	c    *user.Consumer
	read uint64
}

// Read returns a Reader for the session's messages. If another one is in use, the error
// is [session.ErrBusy]. A Reader that was made before the first [Session.Send] misses no
// message, even if the session ends at once.
func (s *Session) Read() (*Reader, error) {
	c, err := s.core.User.Consume()
	if err != nil {
		return nil, err
	}
	return &Reader{c: c}, nil
}

// Next waits for the next message. After the last message it returns io.EOF if the
// session ended normally, and otherwise why it ended. If ctx ends first, it returns why
// ctx ended.
func (r *Reader) Next(ctx context.Context) (protocol.Message, error) {
	e, err := r.c.Next(ctx)
	if err != nil {
		return nil, err
	}
	r.read = e.Seq + 1
	return decode(&e), nil
}

// Place returns the position in the stream after the last message that Next returned.
func (r *Reader) Place() uint64 { return r.read }

// Delivered returns the position in the stream after the last message that the session
// has received from its agent. In a callback it says which messages came before the
// callback's request.
func (s *Session) Delivered() uint64 { return s.core.User.Delivered() }

// Close releases the session's messages. The next Reader gets those that were not read.
func (r *Reader) Close() { r.c.Release() }

// Spawner returns the spawner of sessions without Options.Spawner, which starts agents
// on this machine. Your own Spawner may use it to start another command.
func (rt *Runtime) Spawner() session.Spawner { return rt.spawner }

// Clock returns the clock of every deadline in this runtime.
func (rt *Runtime) Clock() session.Clock { return rt.sys.Clock() }

// Rand returns the source of randomness in this runtime.
func (rt *Runtime) Rand() session.Rand { return rt.sys.Rand() }

// Executor returns the executor that runs everything that may block in this runtime.
func (rt *Runtime) Executor() session.Executor { return rt.sys.Executor() }
