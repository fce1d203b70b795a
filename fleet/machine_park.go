package fleet

import (
	"time"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// maxPark is the longest time that a job waits for the window of a subscription.
const maxPark = 26 * time.Hour

// parkJitter bounds the random delay of an account after the reset: programs on other
// machines wait for it, too.
const parkJitter = time.Minute

// park begins a wait of the account, unless it would be longer than the job allows.
func (m *machine) park(now time.Time, in *ended) bool {
	if in.after <= 0 || in.after > m.rules.park {
		return false
	}
	m.account.Spent(in.id, now.Add(in.after), jitter(m.rules.rand), in.why)
	return true
}

func jitter(r session.Rand) time.Duration { return time.Duration(r.Int64N(int64(parkJitter))) }

// look reports what has become of the account, also where other jobs have changed it.
func (m *machine) look(now time.Time, out []effect) []effect {
	if last, changes := m.account.Last(); changes != m.changed {
		m.changed = changes
		out = m.report(last.At, last.Why, out)
	}
	until, why := m.account.Parked()
	switch {
	case until.Equal(m.parked):
	case until.IsZero():
		out = append(out, unparked{})
	case until.Sub(now) > m.rules.park+parkJitter: // another job of the account waits longer
		m.stop(Stop{Reason: StopUsageLimit, Detail: why})
	default:
		out = append(out, parking{until, why})
	}
	m.parked = until
	return out
}

// report says that another number of attempts may run.
func (m *machine) report(at time.Time, why string, out []effect) []effect {
	limit := m.limit()
	if limit != m.paced {
		c := runtime.AccountChange{At: at, From: m.paced, To: limit, Why: why}
		if len(m.changes) == maxChanges {
			m.changes = append(m.changes[:0], m.changes[1:]...)
		}
		m.changes = append(m.changes, c)
		out = append(out, paced{c})
	}
	m.paced = limit
	return out
}
