package breaker

import (
	"slices"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// Config is constant and no part of a snapshot.
type Config struct {
	Kind session.BreakerKind
	Name string
	// Failures is how many in a row open the breaker; zero: it never opens.
	Failures int
	// CoolDown is how long the breaker is open before a probe, at most. It is doubled after
	// each probe that fails, up to MaxCoolDown; at least half of it always passes.
	CoolDown, MaxCoolDown time.Duration
	// Rate is how many attempts may begin within any second; zero: no limit. It holds for
	// attempts that repeat one, and for all while the breaker is not trusted, which takes
	// as many successes in a row as failures open it, and one at least.
	Rate int
	// Hold: all attempts wait for an open breaker, in place of being refused.
	Hold bool
}

// Rand is what a breaker needs of a source of randomness.
type Rand interface{ Int64N(n int64) int64 }

// State is everything that a breaker knows: plain data.
type State struct {
	Phase       session.BreakerState
	Since       time.Time // of the phase; of an open breaker with its probes: when it opened
	Failures    int       // in a row
	Good        int       // successes in a row, as far as they are counted
	Trips       int       // cool-downs in a row
	LastFailure string
	NextProbe   time.Time   // valid while it is open
	Probe       uint64      // the attempt that is the probe; 0: none
	ProbeUntil  time.Time   // when another one may be, although its outcome is not known
	Recent      []time.Time // when the last attempts began, at most Rate, oldest first
	Held        []Held      // oldest first
	Timer       time.Time   // the one that is set; zero: none
}

// Held is an attempt that waits.
type Held struct {
	ID    uint64
	Again bool // it repeats one
	Since time.Time
	// Patient: it waits for an open breaker.
	Patient bool
}

// Input is what [Breaker.Step] takes.
type Input interface{ input() }

type (
	// Ask asks whether an attempt may begin, under an id that is not 0 and never used
	// again. Again: it repeats one, and keeps to the rate. Patient: it waits for an open
	// breaker, in place of being refused.
	Ask struct {
		ID             uint64
		Again, Patient bool
	}
	// Drop says that an attempt will not begin, or has come to no outcome.
	Drop struct{ ID uint64 }
	// Done is the outcome of an attempt: the failure, in one line, or "" for a success.
	// ID 0: an attempt without a request.
	Done struct {
		ID        uint64
		Failure   string
		Succeeded string
	}
	// Tick is the timer of [SetTimer]. It may come early.
	Tick struct{}
)

func (Ask) input()  {}
func (Drop) input() {}
func (Done) input() {}
func (Tick) input() {}

// Effect is what a step asks for.
type Effect interface{ effect() }

type (
	// Grant lets an attempt begin.
	Grant struct{ ID uint64 }
	// Hold says that an attempt waits, and why.
	Hold struct {
		ID  uint64
		Why string
	}
	// Refuse says that it must not begin.
	Refuse struct {
		ID  uint64
		Err *session.BreakerOpenError
	}
	// SetTimer replaces the one timer of the breaker.
	SetTimer struct{ At time.Time } // zero: none
	// Emit reports an event.
	Emit struct{ Event session.Event }
)

func (Grant) effect()    {}
func (Hold) effect()     {}
func (Refuse) effect()   {}
func (SetTimer) effect() {}
func (Emit) effect()     {}

// window is the time that Config.Rate counts in.
const window = time.Second

// Breaker is the machine. It is used by one goroutine at a time.
type Breaker struct {
	State
	cfg Config
	rnd Rand
	now time.Time
	out []Effect
}

// New returns a closed breaker that nothing is known of yet.
func New(cfg Config, rnd Rand) *Breaker {
	return &Breaker{State: State{Phase: session.BreakerClosed}, cfg: cfg, rnd: rnd}
}

// Config returns what the breaker was made with.
func (b *Breaker) Config() Config { return b.cfg }

// Snapshot returns what the breaker knows, which shares nothing that a later step changes.
func (b *Breaker) Snapshot() State {
	s := b.State
	s.Recent, s.Held = slices.Clone(s.Recent), slices.Clone(s.Held)
	return s
}

// Step handles one input and appends its effects to out, in order.
func (b *Breaker) Step(now time.Time, in Input, out []Effect) []Effect {
	b.now, b.out = now, out
	switch in := in.(type) {
	case Ask:
		b.ask(in)
	case Drop:
		b.drop(in.ID)
	case Done:
		b.done(in)
	case Tick:
		b.Timer = time.Time{}
	}
	b.admit()
	b.setTimer()
	out, b.out = b.out, nil
	return out
}

func (b *Breaker) do(e Effect) { b.out = append(b.out, e) }

// trusted reports whether first attempts need not keep to the rate.
func (b *Breaker) trusted() bool { return b.Good >= max(b.cfg.Failures, 1) }

// limited reports whether an attempt keeps to the rate.
func (b *Breaker) limited(again bool) bool { return b.cfg.Rate > 0 && (again || !b.trusted()) }

// free is when the rate lets the next attempt begin; zero: at once.
func (b *Breaker) free() time.Time {
	if b.cfg.Rate == 0 || len(b.Recent) < b.cfg.Rate {
		return time.Time{}
	}
	if next := b.Recent[0].Add(window); next.After(b.now) {
		return next
	}
	return time.Time{}
}

func (b *Breaker) ask(in Ask) {
	switch {
	case b.Phase == session.BreakerClosed && !b.limited(in.Again):
		b.grant(in.ID) // it does not queue behind those that wait for the rate
	case b.blocked() && !in.Patient && !b.cfg.Hold:
		b.do(Refuse{in.ID, b.err()})
	default:
		b.Held = append(b.Held, Held{ID: in.ID, Again: in.Again, Since: b.now, Patient: in.Patient || b.cfg.Hold})
		b.admit()
		n := len(b.Held)
		switch {
		case n == 0 || b.Held[n-1].ID != in.ID:
		case b.blocked() && !b.Held[n-1].Patient: // another one is the probe
			b.Held = b.Held[:n-1]
			b.do(Refuse{in.ID, b.err()})
		default:
			b.do(Hold{in.ID, b.why()})
		}
	}
}

// blocked reports whether nothing may begin, not even a probe.
func (b *Breaker) blocked() bool {
	switch b.Phase {
	case session.BreakerOpen:
		return b.now.Before(b.NextProbe)
	case session.BreakerHalfOpen:
		return b.Probe != 0 && b.now.Before(b.ProbeUntil)
	default:
		return false
	}
}

// why says what the held attempts wait for.
func (b *Breaker) why() string {
	if b.blocked() {
		return b.err().Error()
	}
	return "the rate of starts is limited"
}

// err describes a breaker that is not closed.
func (b *Breaker) err() *session.BreakerOpenError {
	e := &session.BreakerOpenError{
		Kind: b.cfg.Kind, Name: b.cfg.Name, Since: b.Since, Failures: b.Failures, LastFailure: b.LastFailure,
	}
	if b.Phase == session.BreakerOpen {
		e.RetryAfter = max(b.NextProbe.Sub(b.now), 0)
	}
	return e
}

// admit lets begin what may.
func (b *Breaker) admit() {
	for len(b.Held) > 0 && !b.blocked() && b.free().IsZero() {
		next := b.Held[0]
		b.Held = b.Held[1:]
		b.begin(next.ID)
	}
	if b.Phase == session.BreakerClosed && !b.limited(false) {
		// First attempts that were held while it was not trusted need not wait for the rate.
		for _, h := range b.Held {
			if !h.Again {
				b.grant(h.ID)
			}
		}
		b.Held = slices.DeleteFunc(b.Held, func(h Held) bool { return !h.Again })
	}
	if len(b.Held) == 0 {
		b.Held = nil
	}
}

// begin lets the next attempt begin, as a probe if the breaker is not closed.
func (b *Breaker) begin(id uint64) {
	if b.Phase != session.BreakerClosed {
		b.Probe, b.ProbeUntil = id, b.now.Add(b.cfg.MaxCoolDown)
		if b.Phase == session.BreakerOpen {
			b.Phase = session.BreakerHalfOpen
			b.do(Emit{&session.BreakerHalfOpened{Kind: b.cfg.Kind, Name: b.cfg.Name, Held: len(b.Held)}})
		}
	}
	b.grant(id)
}

func (b *Breaker) grant(id uint64) {
	if b.cfg.Rate > 0 {
		if len(b.Recent) >= b.cfg.Rate {
			b.Recent = slices.Delete(b.Recent, 0, len(b.Recent)-b.cfg.Rate+1)
		}
		b.Recent = append(b.Recent, b.now)
	}
	b.do(Grant{id})
}

func (b *Breaker) drop(id uint64) {
	b.Held = slices.DeleteFunc(b.Held, func(h Held) bool { return h.ID == id })
	if b.Probe == id {
		b.Probe = 0
	}
}

func (b *Breaker) done(in Done) {
	if in.Failure == "" {
		b.succeeded(in.Succeeded)
		return
	}
	b.Good = 0
	switch {
	case b.cfg.Failures == 0:
	case b.Phase == session.BreakerClosed:
		b.Failures, b.LastFailure = b.Failures+1, in.Failure
		if b.Failures >= b.cfg.Failures {
			b.Since = b.now
			b.open()
		}
	case b.Phase == session.BreakerHalfOpen && (in.ID == b.Probe || in.ID == 0):
		b.Failures, b.LastFailure = b.Failures+1, in.Failure
		b.open()
	}
	// An attempt that fails while the breaker is open had begun before: it is not
	// counted.
}

func (b *Breaker) open() {
	b.Phase, b.Probe = session.BreakerOpen, 0
	b.Trips++
	limit := b.cfg.CoolDown
	for i := 1; i < b.Trips && limit < b.cfg.MaxCoolDown; i++ {
		limit *= 2
	}
	limit = min(limit, b.cfg.MaxCoolDown)
	// Part of it is random, so that the hosts of a machine do not probe at once.
	cool := limit - time.Duration(b.rnd.Int64N(int64(limit)/2+1))
	b.NextProbe = b.now.Add(cool)
	for _, h := range b.Held {
		if !h.Patient {
			b.do(Refuse{h.ID, b.err()})
		}
	}
	b.Held = slices.DeleteFunc(b.Held, func(h Held) bool { return !h.Patient })
	b.do(Emit{&session.BreakerOpened{
		Kind: b.cfg.Kind, Name: b.cfg.Name, Failures: b.Failures, Reason: b.LastFailure, CoolDown: cool, Held: len(b.Held),
	}})
}

func (b *Breaker) succeeded(what string) {
	b.Failures, b.Trips, b.Probe = 0, 0, 0
	b.Good = min(b.Good+1, max(b.cfg.Failures, 1))
	if b.Phase == session.BreakerClosed {
		return
	}
	b.do(Emit{&session.BreakerReclosed{Kind: b.cfg.Kind, Name: b.cfg.Name, Open: b.now.Sub(b.Since), Held: len(b.Held), Reason: what}})
	b.Phase, b.Since, b.Good = session.BreakerClosed, b.now, 1
	b.NextProbe, b.ProbeUntil = time.Time{}, time.Time{}
}

// setTimer asks for a timer while attempts are held.
func (b *Breaker) setTimer() {
	var next time.Time
	if len(b.Held) > 0 {
		switch {
		case b.Phase == session.BreakerOpen:
			next = b.NextProbe
		case b.Phase == session.BreakerHalfOpen && b.Probe != 0:
			next = b.ProbeUntil
		}
		if free := b.free(); free.After(next) {
			next = free
		}
	}
	if !next.Equal(b.Timer) {
		b.Timer = next
		b.do(SetTimer{next})
	}
}

// Idle reports whether the breaker knows nothing that would be missed.
func (b *Breaker) Idle(now time.Time) bool {
	return b.Phase == session.BreakerClosed && b.Failures == 0 && len(b.Held) == 0 &&
		(len(b.Recent) == 0 || now.Sub(b.Recent[len(b.Recent)-1]) >= window)
}

// Calm reports whether the breaker lets every attempt begin, and neither an attempt nor a
// success changes that: it is closed, knows of no failure, and limits no rate.
func (b *Breaker) Calm() bool {
	return b.Phase == session.BreakerClosed && b.Failures == 0 && b.Trips == 0 && len(b.Held) == 0 && b.cfg.Rate == 0
}

// Why says what a held attempt waits for, and since when; ok is false if it does not wait.
func (b *Breaker) Why(now time.Time, id uint64) (why string, since time.Time, ok bool) {
	i := slices.IndexFunc(b.Held, func(h Held) bool { return h.ID == id })
	if i < 0 {
		return "", time.Time{}, false
	}
	b.now = now
	return b.why(), b.Held[i].Since, true
}
