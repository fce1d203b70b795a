package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Deadlines of callbacks share one timer of their actor: most callbacks end long
// before theirs.

// arm sees to it that the alarm rings at due or before; mu is held.
func (a *Actor) arm(c *kernel.Context[message.ToCallback], due time.Time) {
	if due.IsZero() || a.alarm != nil && !due.Before(a.ringsAt) {
		return
	}
	if a.alarm != nil {
		a.alarm.Stop()
	}
	a.ringsAt = due
	a.alarm = c.After(due.Sub(c.Now()), message.CallbacksDue{})
}

// moved notes where the deadline of a callback is by now, and reports whether
// the alarm is too late for it.
func (a *Actor) moved(r *run, clock kernel.Clock) bool {
	if r.Deadline == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.look(r, clock.Now())
	return !r.due.IsZero() && (a.alarm == nil || r.due.Before(a.ringsAt))
}

// look finds out when a deadline that moves is due, and reports whether it is;
// mu is held.
func (a *Actor) look(r *run, now time.Time) bool {
	if r.Deadline != nil {
		d := r.Deadline()
		a.Ledger.Describe(r.request, r.Name, max(d.Limit, 0))
		r.due = time.Time{}
		if d.Limit > 0 {
			r.due = d.Since.Add(d.Limit)
		}
	}
	return !r.due.IsZero() && !now.Before(r.due)
}

// expire answers for the callbacks that took too long, and sets the alarm for
// the next. Their tasks may go on; what they answer will be late.
func (a *Actor) expire(c *kernel.Context[message.ToCallback]) {
	var late []*run
	a.mu.Lock()
	if a.alarm != nil {
		a.alarm.Stop()
		a.alarm = nil
	}
	now := c.Now()
	for _, r := range a.running { //troupe:maporder sorted below
		if a.look(r, now) {
			late = append(late, r)
		} else {
			a.arm(c, r.due)
		}
	}
	slices.SortFunc(late, func(x, y *run) int {
		return cmp.Or(x.due.Compare(y.due), cmp.Compare(x.seq, y.seq))
	})
	why := make([]error, len(late)) // their tasks may still look, and write what they see
	for i, r := range late {
		delete(a.running, r.request)
		why[i] = a.expired(r)
	}
	a.mu.Unlock()
	for i, r := range late {
		a.fail(r.request, r.Name, why[i])
		a.changed(c.Worker())
	}
}

// expired is the error of a callback that ran out of time.
func (a *Actor) expired(r *run) error {
	if r.Expired != nil {
		return r.Expired()
	}
	what := fmt.Sprintf("%v callback for %s", a.Kind, r.Name)
	return &Spoken{
		Reason: "no decision was made in time",
		Err:    &session.TimeoutError{What: what, Limit: r.Limit, SetBy: r.SetBy},
	}
}
