package fleet

import (
	"time"

	"github.com/agent-troupe/troupe/session"
)

// maxPark is the longest time that a job waits for the window of a subscription.
const maxPark = 26 * time.Hour

// parkJitter is how much later than the reset a job goes on, at random: other jobs of the
// account wait for it, too.
const parkJitter = time.Minute

// parked is the wait for the next window of a subscription. The account is spent, so
// nothing starts; when the window is over one attempt is the probe for all.
type parked struct {
	until   time.Time // zero: the job is not parked
	why     string
	probe   string // the task that probes; "": none yet
	probing bool   // the wait is over, and nothing has worked since
}

// park begins a wait, unless it would be longer than the job allows. A task that finds the
// window spent while the job waits already prolongs it at most.
func (p *plan) park(now time.Time, in *ended) bool {
	if in.after <= 0 || in.after > p.rules.park {
		return false
	}
	reset := now.Add(in.after)
	if p.parked.probe == in.id {
		p.parked.probe = ""
	}
	if !p.parked.until.IsZero() && !p.parked.probing && !reset.After(p.parked.until) {
		return true
	}
	p.parked = parked{until: reset.Add(jitter(p.rules.rand)), why: in.why, probe: p.parked.probe}
	return true
}

func jitter(r session.Rand) time.Duration { return time.Duration(r.Int64N(int64(parkJitter))) }

// worked takes note that the account works again.
func (p *plan) worked(id string) {
	if p.parked.probing && (p.parked.probe == id || p.parked.probe == "") {
		p.parked = parked{}
	}
}

// waits reports whether the job is parked, and begins with the probe when the wait is over.
func (p *plan) waits(now time.Time) bool {
	k := &p.parked
	if k.until.IsZero() {
		return false
	}
	if now.Before(k.until) {
		return true
	}
	k.probing = true
	if n := p.nodes[k.probe]; n == nil || n.state != nodeRuns {
		k.probe = ""
	}
	return k.probe != ""
}
