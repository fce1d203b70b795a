package sdk

import (
	"context"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Close ends the session in order: a running turn is interrupted, what waits
// for a callback is denied, the agent gets its grace, and its process tree is
// swept. It returns when nothing is left, or when ctx or Options.CloseTimeout
// ends: then the agent is killed, and the error says what had not stopped. It
// may be called any number of times, also from a callback: with a context other
// than the callback's, which ends as the session does. A tool of a wrapped server
// that calls it is itself waited for, until CloseTimeout.
//
// Messages that nobody has read stay: a loop over [Client.Messages] that begins
// after Close yields them. Of what the agent writes during a Close while nobody
// reads, no more than Limits.HardBytes is kept; a [session.WarningIssued] then says how many
// messages were dropped.
//
// nil means that the agent ended by itself, that nothing of it is left, and that
// its transcript is complete as far as it says. An agent that had to be killed is
// a *[KilledError], processes that are left a *[LeftoverError], a transcript that
// could not be written a *[session.WritesLostError].
func (c *Client) Close(ctx context.Context) error {
	err := c.end(ctx)
	if d, dead := c.connected(); dead == nil && d.session.State().Terminal() && d.session.Killed() {
		err = errors.Join(err, &KilledError{})
	}
	return err
}

// end is Close without a word about how the agent ended.
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
	if _, err := d.done.Wait(bounded, d.home.Executor()); err != nil {
		if bounded.Err() != nil {
			return ended(ctx, err)
		}
		return nil // Connect failed, and has cleaned up
	}
	err := errors.Join(d.session.Close(bounded), d.servers.close(bounded), d.session.WritesLost())
	if c.unpark != nil {
		_ = c.unpark()
	}
	return ended(ctx, err)
}

func closeLimit(d time.Duration) *TimeoutError {
	return &TimeoutError{What: "close session", Limit: d, SetBy: "CloseTimeout"}
}

// Drain ends the session without cutting a turn short. [Client.Send] fails from now
// on, with [session.ErrDraining]. The messages that were sent before are answered, and
// background tasks are waited for as long as Limits.Background says; then the session
// is closed, as by [Client.Close], whose errors Drain returns. Control requests and
// callbacks work until then. Somebody must read the messages meanwhile, unless they
// are few: an agent whose output nobody reads comes to a halt.
//
// When ctx ends before the turns have, the error is an *[UnfinishedError] that says
// what was waited for. The session is not closed then, and still takes no messages:
// call Close, or Drain again. A client that is not connected is closed at once.
// [runtime.Runtime.Drain] drains all sessions of a runtime.
func (c *Client) Drain(ctx context.Context) error {
	if d, err := c.connected(); err == nil {
		if err := d.session.FinishTurns(ctx); err != nil {
			return ended(ctx, err)
		}
	}
	return c.Close(ctx)
}

// Done returns a channel that is closed when the session has ended, whatever ended
// it: nothing of it is left then, and [Client.Err] says why. nil before [Client.Connect]
// has returned.
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

// Err says why the session ended, such as an *[ExitError] or an *[AuthError]. nil as
// long as it lives, before Connect, and after an end by [Client.Close] or
// [Client.Drain]. The error of the close itself is the one that these return.
func (c *Client) Err() error {
	if d, err := c.connected(); err == nil {
		return d.session.Err()
	}
	return nil
}
