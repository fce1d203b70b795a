package runtime

import (
	"slices"
	"time"
)

// AccountWork is how many pieces of work of an account ran from a time on.
type AccountWork struct {
	At      time.Time `json:"at"`      // when it changed, by the runtime's clock
	Working int       `json:"working"` // pieces of work from then on, of all jobs
}

// AccountStarved is an interval in which a job of an account said that the machine has too little
// processor time.
type AccountStarved struct {
	From time.Time `json:"from"`        // when the first job said so, by the runtime's clock
	To   time.Time `json:"to,omitzero"` // zero while it lasts
}

const (
	// workEvery is the shortest time between two entries of AccountStat.Work.
	workEvery = 5 * time.Second
	// maxWork and maxStarved are the most entries that are kept.
	maxWork    = 720
	maxStarved = 100
)

// accountPast is what an account remembers. The lock of the account guards it.
type accountPast struct {
	clock   func() time.Time // nil: the account is of no runtime, and remembers nothing
	work    []AccountWork
	starved []AccountStarved
}

// worked takes note of how many pieces of work run. Of several changes within workEvery the
// highest number is kept, and the last one in the entry after it.
func (p *accountPast) worked(n int) {
	if p.clock == nil {
		return
	}
	now := p.clock()
	if k := len(p.work); k > 1 && now.Sub(p.work[k-2].At) < workEvery {
		last := &p.work[k-1]
		p.work[k-2].Working = max(p.work[k-2].Working, last.Working)
		*last = AccountWork{now, n}
		return
	}
	if len(p.work) == maxWork {
		p.work = slices.Delete(p.work, 0, maxWork/10)
	}
	p.work = append(p.work, AccountWork{now, n})
}

// starves takes note of whether the machine is starved.
func (p *accountPast) starves(on bool) {
	k := len(p.starved)
	lasts := k > 0 && p.starved[k-1].To.IsZero()
	switch {
	case p.clock == nil || on == lasts:
	case on:
		if k == maxStarved {
			p.starved = slices.Delete(p.starved, 0, 1)
		}
		p.starved = append(p.starved, AccountStarved{From: p.clock()})
	default:
		p.starved[k-1].To = p.clock()
	}
}
