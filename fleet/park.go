package fleet

import (
	"time"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// maxPark is the longest time that a job waits for the window of a subscription.
const maxPark = 26 * time.Hour

// parkJitter is how much later than the reset an account goes on, at random: programs on
// other machines wait for it, too.
const parkJitter = time.Minute

// park begins a wait of the account, unless it would be longer than the job allows.
func (p *plan) park(now time.Time, in *ended) bool {
	if in.after <= 0 || in.after > p.rules.park {
		return false
	}
	p.account.Spent(in.id, now.Add(in.after), jitter(p.rules.rand), in.why)
	return true
}

func jitter(r session.Rand) time.Duration { return time.Duration(r.Int64N(int64(parkJitter))) }

// look reports what has become of the account, also where other jobs have changed it.
func (p *plan) look(now time.Time, out []effect) []effect {
	if last, changes := p.account.Last(); changes != p.changes {
		p.changes = changes
		out = p.report(last.At, last.Why, out)
	}
	until, why := p.account.Parked()
	switch {
	case until.Equal(p.parked):
	case until.IsZero():
		out = append(out, unparked{})
	case until.Sub(now) > p.rules.park+parkJitter: // another job of the account waits longer
		p.stop(Stop{Reason: StopUsageLimit, Detail: why})
	default:
		out = append(out, parking{until, why})
	}
	p.parked = until
	return out
}

// report says that another number of attempts may run.
func (p *plan) report(at time.Time, why string, out []effect) []effect {
	limit := p.limit()
	if limit != p.paced {
		out = append(out, paced{runtime.AccountChange{At: at, From: p.paced, To: limit, Why: why}})
	}
	p.paced = limit
	return out
}
