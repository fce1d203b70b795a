package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Order is a person's decision about a job whose programs share a queue. Each program obeys it.
type Order struct {
	// Op is what to do: "cancel" or "requeue" a Task, as [Handle.CancelTask] and [Handle.Requeue]
	// do; "cancel" without a Task, which cancels all tasks that have no result; "pause" or "resume"
	// the job; "retune" each program to N attempts at the same time; "allow" or "deny" the call of
	// an Approval, as [Handle.Answer] does.
	Op       string
	Task     string          // id
	Approval string          // ID of the [Approval]
	Input    json.RawMessage // of "allow": a JSON object in place of the input that the model wrote; nil: that input
	N        int             // from 1
	Reason   string          // of a denial, for the model
	By       string          // who decides; for people
}

// Decide gives an order to all programs of a job: those that run now, and those that come later.
// It needs the queue only, so it works from any machine. When it returns nil the decision is
// durable, and each program obeys it as soon as the queue reports it there. A result that the queue
// has before counts: a task may be over when the order to cancel it comes to its program. A job
// that was paused stays so until an order resumes it; [Handle.Pause] is about one program.
//
// The error matches [ErrNoTask], [ErrTaskOver], [ErrNoApproval] or the error of ctx, is a
// *session.ConfigError for an order that makes no sense, or is the queue's.
func Decide(ctx context.Context, q queue.Queue, o Order) error {
	if o.Input != nil {
		a := Answer{ID: o.Approval, Allow: o.Op == opAllow, Input: o.Input}
		if err := a.check(); err != nil {
			return &session.ConfigError{Option: "Order.Input", Problem: err.Error(), Fix: `give a JSON object, with "allow"`}
		}
	}
	clock := kernel.NewClock(nil)
	for {
		s := newSight()
		for c, err := range q.Watch(ctx) {
			if err != nil {
				return fmt.Errorf("order %s: %w", o.Op, err)
			}
			if s.take(c); s.current {
				break
			}
		}
		if !s.current { // Watch ends without an error when ctx does
			return fmt.Errorf("order %s: %w", o.Op, context.Cause(ctx))
		}
		d, err := s.decision(&o, clock.Now())
		if err != nil || d == nil {
			return err
		}
		switch err = q.Decide(ctx, *d); {
		case err == nil:
			return nil
		case !errors.Is(err, queue.ErrDecided):
			return fmt.Errorf("order %s: %w", o.Op, err)
		case d.Op == opCancel || d.Op == opRequeue: // another person has, in this moment
			return nil
		}
		// Another decision has the number, or another answer was quicker: look again.
	}
}
