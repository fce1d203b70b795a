package kernel_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// parcel is a message of a sender: the n-th of its messages.
type parcel struct{ sender, n int }

func (parcel) isMsg() {}

// clerk checks that parcels of a sender come in order, and dies now and then.
type clerk struct{ desk *desk }

// desk is what outlives the clerks.
type desk struct {
	at    kernel.Address[msg]
	next  []int
	wrong atomic.Int32
	took  atomic.Int32
	all   int32
	done  chan struct{}
	lives int
}

func (clerk) Start(*kernel.Context[msg]) error { return nil }
func (k clerk) Handle(c *kernel.Context[msg], m msg) error {
	p, ok := m.(parcel)
	if !ok {
		return nil
	}
	early := p.n%97 == 0 && k.desk.at.Tries() == 0
	if early {
		return assert.AnError
	}
	if k.desk.next[p.sender] != p.n {
		k.desk.wrong.Add(1)
	}
	k.desk.next[p.sender] = p.n + 1
	if k.desk.took.Add(1) == k.desk.all {
		close(k.desk.done)
	}
	if p.n%89 == 0 {
		c.Commit()
		return assert.AnError
	}
	return nil
}
func (clerk) Stop(*kernel.Context[msg]) {}

func (d *desk) Start(c *kernel.Context[msg]) error { return d.open(c) }
func (d *desk) Handle(c *kernel.Context[msg], m msg) error {
	if _, ok := m.(respawn); ok {
		c.StopChild(&d.at)
	}
	return nil
}
func (d *desk) ChildDown(c *kernel.Context[msg], _ kernel.Down) error { return d.open(c) }
func (d *desk) Stop(*kernel.Context[msg])                             {}
func (d *desk) open(c *kernel.Context[msg]) error {
	d.lives++
	return kernel.Spawn(c, fmt.Sprintf("clerk#%d", d.lives), &d.at, clerk{d})
}

// TestGoroutinesShareAMailbox: senders on goroutines of their own, some of which wait
// for room, while incarnations die of messages and are stopped from outside. Each
// message is handled once, those of a sender in order.
func TestGoroutinesShareAMailbox(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 3000
	s := kernel.NewSystem(kernel.Config{})
	d := &desk{next: make([]int, senders), all: senders * each, done: make(chan struct{})}
	var at kernel.Address[msg]
	require.NoError(t, kernel.SpawnRoot(s, "desk", &at, d))
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for n := range each {
				for wait := d.at.Room(64); i%2 == 0 && wait != nil; wait = d.at.Room(64) {
					<-wait
				}
				var w *kernel.Worker
				if n%3 == 0 {
					w = s.Guest()
				}
				d.at.Tell(w, parcel{i, n})
				if w != nil {
					w.Run()
				}
				if n%500 == 0 {
					at.Tell(nil, respawn{})
				}
			}
		})
	}
	wg.Wait()
	<-d.done
	assert.Zero(t, d.wrong.Load(), "messages out of order")
	require.NoError(t, kernel.StopAndWait(t.Context(), &at))
	assert.Zero(t, d.at.Depth())
	assert.Zero(t, s.DeadLetters())
	assert.Greater(t, d.lives, each/97, "clerks died")
	for i := range senders {
		assert.Equal(t, each, d.next[i])
	}
}

// TestGoroutinesFindAnAddressClosed: every message is handled or counted as a dead
// letter, whenever the address is closed.
func TestGoroutinesFindAnAddressClosed(t *testing.T) {
	t.Parallel()
	const senders, each = 4, 200
	for range 50 {
		s := kernel.NewSystem(kernel.Config{})
		d := &desk{next: make([]int, senders), all: -1}
		var at kernel.Address[msg]
		require.NoError(t, kernel.SpawnRoot(s, "desk", &at, counted{d}))
		var wg sync.WaitGroup
		for i := range senders {
			wg.Go(func() {
				for n := range each {
					d.at.Tell(nil, parcel{i, n})
					if i == 0 && n == each/2 {
						d.at.Close()
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, kernel.StopAndWait(t.Context(), &at))
		d.at.Close()
		assert.EqualValues(t, senders*each, int64(d.took.Load())+s.DeadLetters())
		assert.Zero(t, d.at.Depth())
	}
}

// counted is a desk whose clerk only counts.
type counted struct{ *desk }

func (d counted) Start(c *kernel.Context[msg]) error {
	return kernel.Spawn(c, "clerk", &d.at, quick{d.desk})
}
func (counted) ChildDown(*kernel.Context[msg], kernel.Down) error { return nil }

type quick struct{ desk *desk }

func (quick) Start(*kernel.Context[msg]) error { return nil }
func (k quick) Handle(*kernel.Context[msg], msg) error {
	k.desk.took.Add(1)
	return nil
}
func (quick) Stop(*kernel.Context[msg]) {}

// TestASenderWaitsForRoom: no more than it allows are told, and it is woken.
func TestASenderWaitsForRoom(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 20) {
		s := sim.New(seed)
		sys := kernel.NewSystem(s.Config())
		d := &desk{next: make([]int, 1), all: -1}
		var at kernel.Address[msg]
		require.NoError(t, kernel.SpawnRoot(sys, "desk", &at, counted{d}))
		most, told := 0, make(chan struct{})
		s.Go(func() {
			for n := range 30 {
				for wait := d.at.Room(3); wait != nil; wait = d.at.Room(3) {
					assert.NoError(t, s.Await(t.Context(), wait))
				}
				d.at.Tell(nil, parcel{0, n})
				most = max(most, d.at.Depth())
			}
			close(told)
		})
		require.NoError(t, s.Await(t.Context(), told), "seed %d", seed)
		require.NoError(t, s.Run(1000), "seed %d", seed)
		assert.EqualValues(t, 30, d.took.Load(), "seed %d", seed)
		assert.LessOrEqual(t, most, 3, "seed %d", seed)
		d.at.Tell(nil, parcel{0, 30})
		d.at.Close()
		assert.Zero(t, d.at.Depth())
		s.Close()
	}
}

// TestGoroutinesStopWhatTheyClose: an actor stops, whoever closes its address at the
// same time.
func TestGoroutinesStopWhatTheyClose(t *testing.T) {
	t.Parallel()
	s := kernel.NewSystem(kernel.Config{})
	for i := range 2000 {
		d := &desk{next: make([]int, 1), all: -1}
		var at kernel.Address[msg]
		require.NoError(t, kernel.SpawnRoot(s, fmt.Sprintf("desk%d", i), &at, counted{d}))
		var wg sync.WaitGroup
		wg.Go(d.at.Close)
		wg.Go(at.Close)
		wg.Go(func() { d.at.Tell(nil, parcel{0, 1}) })
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			assert.NoError(t, kernel.StopAndWait(ctx, &at))
		})
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}
