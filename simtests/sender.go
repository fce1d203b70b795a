package simtests

import (
	"context"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// The lanes that are neither actors nor agents.
const (
	laneScenario  = "scenario"  // the user's code
	laneCallbacks = "callbacks" // of the user's, until they wait in their own code
	laneTask      = "task"      // what Troupe does outside of actors, such as to read a pipe
	laneTimer     = "timer"     // a timer of Troupe's that fires
	laneWorld     = "world"     // the world's own end
)

// baton is the world's scheduler, which also knows who runs: one goroutine at a time
// has the baton, and its lane is noted when the goroutine gets it and restored when
// the goroutine gets it back. Code of the user's that runs without the baton, such as
// a goroutine that has slept, counts as the scenario.
type baton struct {
	*sim.Bubble
	w    *World
	lane string         // who runs; guarded by w.mu
	sent map[any]origin // messages on their way; guarded by w.mu
	head any            // the message that an actor handles; guarded by w.mu
}

// origin is where a message comes from.
type origin struct {
	lane  string
	at    time.Duration
	after int // the number of the last event before it was sent
}

func newBaton(w *World, s *sim.Bubble) *baton {
	return &baton{Bubble: s, w: w, lane: laneScenario, sent: make(map[any]origin)}
}

// Config is a kernel configuration in which every seam is b.
func (b *baton) Config() kernel.Config {
	return kernel.Config{Clock: b, Dispatcher: b, Executor: b, Rand: b, Tracer: b}
}

// be makes lane the one that runs, and returns the one that did.
func (b *baton) be(lane string) (before string) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	before, b.lane = b.lane, lane
	return before
}

// running is the lane that runs.
func (b *baton) running() string {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.lane
}

// GoAs is Go for a task that has a lane.
func (b *baton) GoAs(lane string, fn func()) {
	b.Bubble.Go(func() {
		b.be(lane)
		fn()
	})
}

// Go implements [kernel.Dispatcher] and [kernel.Executor].
func (b *baton) Go(fn func()) { b.GoAs(laneTask, fn) }

// Yield implements [kernel.Dispatcher].
func (b *baton) Yield(at *kernel.Seat, actor bool) {
	lane := b.running()
	b.Bubble.Yield(at, actor)
	b.be(lane)
}

// Await implements [kernel.Executor].
func (b *baton) Await(ctx context.Context, done <-chan struct{}) error {
	lane := b.running()
	defer b.be(lane)
	return b.Bubble.Await(ctx, done)
}

// Quiet is [sim.Bubble.Quiet].
func (b *baton) Quiet() {
	lane := b.running()
	b.Bubble.Quiet()
	b.be(lane)
}

// AfterFunc implements [kernel.Clock].
func (b *baton) AfterFunc(d time.Duration, fn func()) kernel.Timer {
	return b.Bubble.AfterFunc(d, func() {
		defer b.be(b.be(laneTimer))
		fn()
	})
}

// OnStep has fn called at each step. The baton is free then.
func (b *baton) OnStep(fn func()) {
	b.Bubble.OnStep(func() {
		b.be(laneScenario)
		fn()
	})
}

// Tell implements [kernel.Tracer].
func (b *baton) Tell(id any) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.sent[id] = origin{lane: b.lane, at: b.w.Elapsed(), after: b.w.count}
}

// Enter implements [kernel.Tracer].
func (b *baton) Enter(path string, o kernel.Occasion) (leave func()) {
	lane := actorLane(path)
	before := b.be(lane)
	if o == kernel.OnStart || o == kernel.OnStopped {
		b.w.note(Event{Kind: "actor", Lane: lane, What: string(o)})
	}
	if o == kernel.OnStart {
		b.w.began(lane)
	}
	return func() { b.be(before) }
}

// Handle implements [kernel.Tracer].
func (b *baton) Handle(id any) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.head = id
}

// received is where the message comes from that an actor handles now.
func (b *baton) received() origin {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.sent[b.head]
}

// handled forgets the message that an actor has handled.
func (b *baton) handled() {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	delete(b.sent, b.head)
}

// actorLane is the lane of an actor: its path, without the fleet that all have in
// common.
func actorLane(path string) string {
	if rest, ok := strings.CutPrefix(path, "fleet/"); ok {
		return rest
	}
	return path
}
