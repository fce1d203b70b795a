package sdk

import (
	"context"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Close ends the session in order: it interrupts a running turn, denies the requests
// that wait for a callback, gives the agent time to end (Options.Graces), and sweeps
// its process tree. It returns when no process is left. If ctx or Options.CloseTimeout
// ends first, the agent is killed, and the error says what had not stopped.
//
// Close may be called any number of times, also from a callback. There, pass another
// context than the callback's, which ends with the session. If a tool of a wrapped
// server calls Close, Close waits for that tool, up to CloseTimeout. With the context of
// one of Options.Children it returns at once: the session ends after its children.
//
// Unread messages remain: a loop over [Client.Messages] after Close yields them. Without
// a reader Close keeps at most Limits.HardBytes of further output; a
// [session.WarningIssued] event then says how many messages were dropped.
//
// A nil error means that the agent ended in time, that no process is left, and that
// the agent has not reported a loss of its transcript. If the agent had to be killed,
// the error is a *[session.KilledError]; if processes are left, a *[session.LeftoverError]; if the
// transcript could not be written, a *[session.WritesLostError].
func (c *Client) Close(ctx context.Context) error {
	err := c.end(ctx)
	if d, dead := c.connected(); dead == nil && d.session.State().Terminal() && d.session.Killed() {
		err = errors.Join(err, &session.KilledError{})
	}
	return err
}

// end is Close without a *[session.KilledError].
func (c *Client) end(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	d := c.dialing
	if d != nil && d.cancel != nil {
		d.cancel(ErrClosed) // a Connect that is under way
	}
	c.mu.Unlock()
	if d == nil {
		return nil
	}
	bounded, cancel := kernel.WithTimeout(ctx, d.home.Clock(), closeLimit(c.closeTimeout))
	defer cancel()
	if d.done != nil {
		if _, err := d.done.Wait(bounded, d.home.Executor()); err != nil {
			if bounded.Err() != nil {
				return kernel.Ended(ctx, err)
			}
			return nil // Connect failed, and has cleaned up
		}
	}
	if runtime.SessionOf(ctx) == d.session { // a child's: the end comes after it
		return d.session.Close(bounded)
	}
	err := errors.Join(d.session.Close(bounded), d.servers.close(bounded), d.session.WritesLost())
	if c.unpark != nil {
		_ = c.unpark()
	}
	return kernel.Ended(ctx, err)
}

func closeLimit(d time.Duration) *TimeoutError {
	return &TimeoutError{What: "close session", Limit: d, SetBy: "CloseTimeout"}
}

// Drain ends the session after its turns. From now on [Client.Send] fails with
// [session.ErrDraining]. Drain waits for the answers to the messages that were sent
// before, and up to Limits.Background for background tasks. Then it closes the session
// and returns the errors of [Client.Close]. Control requests and callbacks work until
// the close. Another goroutine must read the messages meanwhile, unless they are few:
// an agent stops when its output is not read.
//
// If ctx ends before the turns, the error is an *[session.UnfinishedError] that says what Drain
// waited for. The session is then still open, and still accepts no messages: call
// Close, or Drain again. A client that is not connected is closed at once.
// [runtime.Runtime.Drain] drains all sessions of a runtime.
func (c *Client) Drain(ctx context.Context) error {
	if d, err := c.connected(); err == nil {
		if err := d.session.FinishTurns(ctx); err != nil {
			return kernel.Ended(ctx, err)
		}
	}
	return c.Close(ctx)
}

// Passivate ends the agent's process unless it is needed, and returns when it is gone.
// The session stays open: the next message or control request starts a process that
// resumes it. So an idle session costs no process. Options.PassivateAfter does the same
// by the clock.
//
// Passivate returns nil for a session that has no process. Right after a result it waits
// until the agent says that it is done with the turn. A process is needed while a turn, a
// control request, a request of the agent or a background task is open, and while the
// agent waits for a reader of its messages. Then the error is a
// *[session.PassivateError], and nothing has changed. The error is the same with
// Options.PersistSession false, because no process could resume the session, and after a
// call that may have changed a setting of the options, such as SetPermissionMode or
// SetModel, because the next process would start with the options alone. The error is
// [ErrClosed] for a session that ends. If ctx ends first, the process may still go.
func (c *Client) Passivate(ctx context.Context) error {
	d, err := c.connected()
	if err != nil {
		return err
	}
	return kernel.Ended(ctx, d.session.Passivate(ctx))
}

// Done returns a channel that is closed when the session has ended for any reason; its
// process tree has then been swept, and [Client.Err] returns the reason. Done returns
// nil before [Client.Connect] has returned.
func (c *Client) Done() <-chan struct{} {
	d, err := c.connected()
	switch {
	case err == nil:
		return d.session.Done()
	case errors.Is(err, ErrClosed):
		return closedChannel()
	}
	return nil
}

func closedChannel() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// Err returns why the session ended, such as an *[ExitError] or an *[AuthError]. It is
// nil before [Client.Connect], while the session runs, and after [Client.Close] or
// [Client.Drain] ended it. Errors of the close itself are returned by those methods.
func (c *Client) Err() error {
	if d, err := c.connected(); err == nil {
		return d.session.Err()
	}
	return nil
}

// Mirrored waits until everything that the agent has stored so far is in
// Options.SessionStore, or is lost, which a session.MirrorFailed event says. Results do not
// wait for the store; call Mirrored before you rely on another machine. Without a store it
// returns at once, and after the end of the session, too. The error is that of ctx, or
// matches session.ErrChildFull if 1,024 writes of the agent wait for the store.
func (c *Client) Mirrored(ctx context.Context) error {
	d, err := c.connected()
	if err != nil {
		return err
	}
	return d.session.Mirrored(ctx)
}
