package fleet

import (
	"fmt"
	"time"
)

// Pace adapts how many attempts run at the same time to what the model's API takes. It
// begins with Start, doubles with each round of attempts that went well until the API is
// overloaded for the first time (429, 529), and from then on adds one for each round. Each
// overload halves it once, however many attempts and retries see it. Other failures of the
// API (5xx, connections) hold it for a round, and so does a starved machine, whose
// time-outs say nothing about the API. Zero fields take their defaults.
type Pace struct {
	Start   int // default: 2
	Floor   int // default: 1
	Ceiling int // default: 64
	// Starved reports whether the machine has too little processor time for what runs. It is
	// called once a second, and must return quickly. nil: a timer was late by 250 ms, or Linux
	// says that somebody waits for a processor 90 % of the time, or that the container was
	// throttled for a quarter of it.
	Starved func() bool
}

func (p Pace) withDefaults() Pace {
	if p.Floor == 0 {
		p.Floor = 1
	}
	if p.Start == 0 {
		p.Start = max(2, p.Floor)
	}
	if p.Ceiling == 0 {
		p.Ceiling = max(64, p.Start)
	}
	return p
}

// PaceChange is a change of how many attempts run at the same time.
type PaceChange struct {
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Why  string    `json:"why"`
}

// episode is how long the troubles of attempts that began before a cut count as the same
// overload. A long attempt may outlast it.
const episode = time.Minute

// maxChanges bounds what is kept of the history of a pace.
const maxChanges = 1000

// pacer is a Pace at work: a value, like the plan.
type pacer struct {
	Pace
	limit   int
	slow    bool // doubles
	fixed   bool // by hand
	clean   int  // attempts of this round that went well
	epoch   int  // grows with each cut
	cut     time.Time
	until   time.Time // nothing starts before
	starved bool
	changes []PaceChange
	made    int // so many changes so far
}

func newPacer(p Pace) *pacer {
	p = p.withDefaults()
	return &pacer{Pace: p, limit: p.Start, slow: true}
}

// trouble is what an attempt has seen of the API.
type trouble int8

const (
	overloaded trouble = iota + 1 // 429, 529
	failing                       // 5xx, connections
)

// troubleOf classes an HTTP status; 0 is a call without an answer.
func troubleOf(status int) trouble {
	switch {
	case status == 429, status == 529:
		return overloaded
	case status == 0, status >= 500:
		return failing
	}
	return 0
}

// pressed takes what an attempt that began in an epoch has seen; wait is the least time
// that the API asked for.
func (p *pacer) pressed(now time.Time, epoch int, t trouble, wait time.Duration) {
	p.clean = 0
	if t != overloaded {
		return
	}
	if wait = min(wait, maxRetryAfter); now.Add(wait).After(p.until) {
		p.until = now.Add(wait)
	}
	if p.fixed || epoch < p.epoch && now.Sub(p.cut) < episode {
		return // fixed, or the same overload
	}
	p.slow, p.cut = false, now
	p.epoch++
	p.change(now, p.limit/2, "the API is overloaded")
}

// well takes an attempt that began in an epoch and saw no trouble. busy: as many ran as
// may.
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

// fix sets the limit by hand, and for good: 0 is a pause, which no attempt that ends may
// undo.
func (p *pacer) fix(now time.Time, limit int) {
	p.fixed, p.Floor, p.Ceiling = true, limit, limit
	p.change(now, limit, "set by hand")
}

func (p *pacer) change(now time.Time, to int, why string) {
	if to = min(max(to, p.Floor), p.Ceiling); to == p.limit {
		return
	}
	if len(p.changes) == maxChanges {
		p.changes = append(p.changes[:0], p.changes[1:]...)
	}
	p.changes = append(p.changes, PaceChange{At: now, From: p.limit, To: to, Why: why})
	p.limit = to
	p.made++
}

func (c PaceChange) String() string { return fmt.Sprintf("%d -> %d: %s", c.From, c.To, c.Why) }
