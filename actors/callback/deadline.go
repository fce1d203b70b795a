package callback

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Deadlines of callbacks share one timer of their actor: most callbacks end long
// before theirs.

// arm sees to it that the alarm rings at due or before.
func (a *Actor) arm(c *kernel.Context[machine.ToCallback], at time.Time) {
	if at.IsZero() || a.alarm != nil && !at.Before(a.ringsAt) {
		return
	}
	if a.alarm != nil {
		a.alarm.Stop()
	}
	a.ringsAt = at
	a.alarm = c.After(at.Sub(c.Now()), due{})
}

// sooner reports whether the alarm may be too late for the deadline that the callback has
// by now: it rings later, or it has rung meanwhile, and was set anew without it.
func (r *run) sooner() bool {
	if r.Deadline == nil {
		return false
	}
	d := r.Deadline()
	return d.Limit > 0 && (d.Since.Add(d.Limit).Before(r.rings) || !r.clock.Now().Before(r.rings))
}

// look finds out when a deadline that moves is due, and reports whether it is.
func (a *Actor) look(r *run, now time.Time) bool {
	if r.Deadline != nil {
		d := r.Deadline()
		r.due = time.Time{}
		if d.Limit > 0 {
			r.due = d.Since.Add(d.Limit)
		}
	}
	return !r.due.IsZero() && !now.Before(r.due)
}

// expire answers for the callbacks that took too long, and sets the alarm for the next.
// Their tasks may still run; their answers will be late.
func (a *Actor) expire(c *kernel.Context[machine.ToCallback]) {
	if a.alarm != nil {
		a.alarm.Stop()
		a.alarm = nil
	}
	now := c.Now()
	var late []*run
	for _, r := range a.Box.running { //troupe:maporder sorted below
		switch {
		case r.expired:
		case a.look(r, now):
			late = append(late, r)
		default:
			a.arm(c, r.due)
		}
	}
	slices.SortFunc(late, func(x, y *run) int {
		return cmp.Or(x.due.Compare(y.due), cmp.Compare(x.Seq, y.Seq))
	})
	for _, r := range late {
		r.expired = true
		a.Router.Tell(c.Worker(), a.failure(&r.Request, r.Name, a.tooLate(r)))
	}
}

// tooLate is the error of a callback that ran out of time.
func (a *Actor) tooLate(r *run) error {
	if r.Expired != nil {
		return r.Expired()
	}
	what := fmt.Sprintf("%v callback for %s", a.Kind, r.Name)
	return &PublicError{
		Reason: "no decision was made in time",
		Err:    &session.TimeoutError{What: what, Limit: r.Limit, SetBy: r.SetBy},
	}
}
