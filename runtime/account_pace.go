package runtime

import (
	"cmp"
	"fmt"
	"time"
)

// AccountPace bounds how many pieces of work of an account may run at the same time while
// it adapts that number to what the provider takes. It begins with Start, doubles with each
// round that went well until the provider is overloaded for the first time (429, 529), and
// from then on adds one for each round. Each overload halves it once, however many see it.
// Other failures of the provider (5xx, connections) begin the round anew, and so does a
// machine that is starved. Zero fields take their defaults.
type AccountPace struct {
	Start   int // default: 2, or Floor if that is more
	Floor   int // default: 1
	Ceiling int // default: 64, or Start if that is more
}

// WithDefaults returns the bounds with the defaults in place of zeros.
func (p AccountPace) WithDefaults() AccountPace {
	p.Floor = cmp.Or(p.Floor, 1)
	p.Start = cmp.Or(p.Start, max(2, p.Floor))
	p.Ceiling = cmp.Or(p.Ceiling, max(64, p.Start))
	return p
}

// AccountChange is a change of how many pieces of work may run at the same time.
type AccountChange struct {
	At   time.Time `json:"at"`   // by the runtime's clock
	From int       `json:"from"` // the number before
	To   int       `json:"to"`   // the number from then on
	Why  string    `json:"why"`  // the reason, for people
}

// String describes the change for people.
func (c AccountChange) String() string { return fmt.Sprintf("%d -> %d: %s", c.From, c.To, c.Why) }

const (
	// episode is how long the troubles of work that began before a cut count as the same
	// overload. Long work may outlast it.
	episode = time.Minute
	// maxAsked is the longest wait that a provider may ask for. A longer one is treated as a
	// used-up quota.
	maxAsked = 10 * time.Minute
	// maxAccountChanges bounds what is kept of the history of an account.
	maxAccountChanges = 100
)

// pacer is an [AccountPace] at work: a value without clock.
type pacer struct {
	AccountPace
	limit   int
	slow    bool // doubles
	fixed   bool // by hand
	clean   int  // work of this round that went well
	epoch   int  // grows with each cut
	cut     time.Time
	until   time.Time // nothing starts before
	starved bool
	changes []AccountChange
	made    int // so many changes so far
}

func newPacer(p AccountPace) *pacer {
	p = p.WithDefaults()
	return &pacer{AccountPace: p, limit: p.Start, slow: true}
}

// pressed takes what work that began in an epoch has seen; wait is the least time that the
// provider asked for.
func (p *pacer) pressed(now time.Time, epoch int, overloaded bool, wait time.Duration) {
	p.clean = 0
	if !overloaded {
		return
	}
	if wait = min(wait, maxAsked); now.Add(wait).After(p.until) {
		p.until = now.Add(wait)
	}
	if p.fixed || epoch < p.epoch && now.Sub(p.cut) < episode {
		return // fixed, or the same overload
	}
	p.slow, p.cut = false, now
	p.epoch++
	p.change(now, p.limit/2, "the API is overloaded")
}

// well takes work that began in an epoch and saw no trouble. busy: as much ran as may.
func (p *pacer) well(now time.Time, epoch int, busy bool) {
	if p.fixed || epoch < p.epoch || p.starved || !busy {
		return
	}
	if p.clean++; p.clean < p.limit {
		return
	}
	p.clean = 0
	if p.slow {
		p.change(now, 2*p.limit, "a round went well")
	} else {
		p.change(now, p.limit+1, "a round went well")
	}
}

// fix sets the limit by hand, until it is adapted again: 0 is a pause, which nothing that
// ends may undo. A negative limit adapts again, from the present one.
func (p *pacer) fix(now time.Time, limit int) {
	p.clean = 0
	if p.fixed = limit >= 0; !p.fixed {
		p.change(now, min(max(p.limit, p.Floor), p.Ceiling), "adapted again")
		return
	}
	p.set(now, limit, "set by hand")
}

// bound changes the bounds.
func (p *pacer) bound(now time.Time, floor, ceiling int) {
	p.Floor, p.Ceiling = floor, ceiling
	if !p.fixed {
		p.change(now, p.limit, "other bounds")
	}
}

func (p *pacer) change(now time.Time, to int, why string) {
	p.set(now, min(max(to, p.Floor), p.Ceiling), why)
}

func (p *pacer) set(now time.Time, to int, why string) {
	if to == p.limit {
		return
	}
	if len(p.changes) == maxAccountChanges {
		p.changes = append(p.changes[:0], p.changes[1:]...)
	}
	p.changes = append(p.changes, AccountChange{At: now, From: p.limit, To: to, Why: why})
	p.limit = to
	p.made++
}
