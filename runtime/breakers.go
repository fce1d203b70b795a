package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// breakers are those that the sessions of a runtime share. A lock guards them and no
// actor owns them: all sessions ask for each start, nothing blocks under the lock, and a
// held start cannot be lost with an actor. Under the lock, mailboxes, the locks for
// events and the clock are used.
type breakers struct {
	cfg   Breakers
	clock kernel.Clock
	rand  kernel.Rand
	emit  func(session.Event)

	mu    sync.Mutex
	all   map[breakerKey]*guard
	room  int    // how many breakers there may be before some are forgotten
	used  uint64 // counts the uses of all breakers
	last  uint64 // the id that was used last
	asked map[uint64]asker
	most  int // of asked, so far

	// suspect: a breaker of a provider knows of a failure. For routers, which tell of a
	// success only then.
	suspect atomic.Bool
}

// breakerKey identifies what a breaker protects.
type breakerKey struct {
	kind session.BreakerKind
	name string // for people
	of   any    // distinguishes breakers of one name; comparable
}

// guard is a breaker and its timer.
type guard struct {
	*breaker.Breaker
	key   breakerKey
	timer kernel.Timer // nil: none
	used  uint64       // the value of breakers.used at its last use under the lock
	// calm: it lets everything begin, and a success would change nothing. It is written
	// under the lock, and false once the breaker is forgotten.
	calm atomic.Bool
}

// asker gets the outcome of its request, under the lock.
type asker interface {
	granted(id uint64)
	held(key breakerKey, why string)
	refused(err *session.BreakerOpenError)
}

const (
	// minRoom is the least room for breakers.
	minRoom = 64
	// maxKnowing is how many breakers that know something may stay when there is no
	// room left. A program may have any number of program paths, servers and credentials.
	maxKnowing = 1024
)

func newBreakers(cfg Breakers, sys *kernel.System, emit func(session.Event)) *breakers {
	return &breakers{
		cfg: cfg, clock: sys.Clock(), rand: sys.Rand(), emit: emit,
		all: make(map[breakerKey]*guard), asked: make(map[uint64]asker),
	}
}

// guard returns the breaker with the key.
func (b *breakers) guard(key breakerKey) *guard {
	b.used++
	g := b.all[key]
	if g == nil {
		if len(b.all) >= b.room {
			b.makeRoom()
		}
		g = &guard{Breaker: breaker.New(b.cfg.of(key), b.rand), key: key}
		b.all[key] = g
	}
	g.used = b.used
	return g
}

// makeRoom forgets breakers that know nothing, and then, while there are too many, those
// that were used longest ago and that no start waits for.
func (b *breakers) makeRoom() {
	now := b.clock.Now()
	maps.DeleteFunc(b.all, func(_ breakerKey, g *guard) bool {
		idle := g.timer == nil && g.Idle(now)
		if idle {
			g.calm.Store(false)
		}
		return idle
	})
	if len(b.all) > maxKnowing {
		free := make([]*guard, 0, len(b.all))
		for _, g := range b.all {
			if g.timer == nil && len(g.Held) == 0 {
				free = append(free, g)
			}
		}
		slices.SortFunc(free, func(x, y *guard) int { return cmp.Compare(x.used, y.used) })
		for _, g := range free[:min(len(free), len(b.all)-maxKnowing/2)] {
			g.calm.Store(false)
			delete(b.all, g.key)
		}
	}
	b.room = max(minRoom, 2*len(b.all))
}

// ask asks a breaker for something, and returns its id.
func (b *breakers) ask(key breakerKey, ask breaker.Ask, who asker) uint64 {
	b.last++
	ask.ID = b.last
	b.asked[ask.ID] = who
	b.most = max(b.most, len(b.asked))
	b.step(key, ask)
	return ask.ID
}

// drop gives up what was asked for.
func (b *breakers) drop(key breakerKey, id uint64) {
	delete(b.asked, id)
	b.step(key, breaker.Drop{ID: id})
}

// step gives a breaker an input and carries out what it asks for.
func (b *breakers) step(key breakerKey, in breaker.Input) {
	g := b.guard(key)
	effects := g.Step(b.clock.Now(), in, nil)
	g.calm.Store(g.Calm())
	for _, e := range effects {
		switch e := e.(type) {
		case breaker.Grant:
			if who := b.asked[e.ID]; who != nil {
				delete(b.asked, e.ID)
				who.granted(e.ID)
			}
		case breaker.Refuse:
			if who := b.asked[e.ID]; who != nil {
				delete(b.asked, e.ID)
				who.refused(e.Err)
			}
		case breaker.Hold:
			if who := b.asked[e.ID]; who != nil {
				who.held(key, e.Why)
			}
		case breaker.SetTimer:
			b.setTimer(g, e.At)
		case breaker.Emit:
			b.emit(e.Event)
		}
	}
	if len(b.asked) == 0 && b.most > minRoom {
		b.asked, b.most = make(map[uint64]asker), 0 // a map never gives memory back
	}
}

func (b *breakers) setTimer(g *guard, at time.Time) {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if at.IsZero() {
		return
	}
	g.timer = b.clock.AfterFunc(at.Sub(b.clock.Now()), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		g.timer = nil
		b.step(g.key, breaker.Tick{})
	})
}

// Breaker describes a breaker in a [Tree].
type Breaker struct {
	Kind        session.BreakerKind  `json:"kind"`         // agent, provider or mcp_server
	Name        string               `json:"name"`         // the program, the backend with the host of its provider, or the server
	State       session.BreakerState `json:"state"`        // closed, open or half_open
	Since       time.Time            `json:"since"`        // when it opened, or closed again; zero: it was never open
	Failures    int                  `json:"failures"`     // failures in a row
	LastFailure string               `json:"last_failure"` // the last of the present or the last failures; empty: none
	NextProbe   time.Time            `json:"next_probe"`   // when a probe may pass, of an open one; else zero
	Held        int                  `json:"held"`         // starts that wait
	// StartsPerSecond is the limit in force for restarts, and for all starts while the
	// breaker is not trusted; 0: no limit.
	StartsPerSecond int `json:"starts_per_second"`
}

// describe lists the breakers by kind, name, and time.
func (b *breakers) describe() []Breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Breaker, 0, len(b.all))
	for _, g := range b.all { //troupe:maporder sorted below
		s, cfg := &g.State, g.Config()
		list = append(list, Breaker{
			Kind: cfg.Kind, Name: cfg.Name, State: s.Phase, Since: s.Since, Failures: s.Failures, LastFailure: s.LastFailure,
			NextProbe: s.NextProbe, Held: len(s.Held), StartsPerSecond: cfg.Rate,
		})
	}
	slices.SortFunc(list, func(x, y Breaker) int {
		return cmp.Or(strings.Compare(string(x.Kind), string(y.Kind)), strings.Compare(x.Name, y.Name),
			x.Since.Compare(y.Since), cmp.Compare(x.Failures, y.Failures), cmp.Compare(x.Held, y.Held), strings.Compare(fmt.Sprint(x), fmt.Sprint(y)))
	})
	return list
}

// identity is what stands for x in a key: x itself, or otherwise if x cannot be
// compared.
func identity(x, otherwise any) any {
	if reflect.ValueOf(x).Comparable() {
		return x
	}
	return otherwise
}
