package queuetest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/fleet/queue/queuetest"
	"github.com/agent-troupe/troupe/session"
)

// clock is one that the test sets.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*timer]bool
}

type timer struct {
	c  *clock
	at time.Time
	fn func()
}

func newClock() *clock { return &clock{now: time.Unix(1e9, 0), timers: map[*timer]bool{}} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) AfterFunc(d time.Duration, fn func()) session.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c, c.now.Add(d), fn}
	c.timers[t] = true
	return t
}

// Stop implements session.Timer.
func (t *timer) Stop() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	ran := t.c.timers[t]
	delete(t.c.timers, t)
	return ran
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*timer
	for t := range c.timers {
		if !t.at.After(c.now) {
			delete(c.timers, t)
			due = append(due, t)
		}
	}
	c.mu.Unlock()
	for _, t := range due {
		t.fn()
	}
}

func TestMemoryQueue(t *testing.T) {
	t.Parallel()
	queuetest.RunQueue(t, func(*testing.T) queuetest.Queue {
		c := newClock()
		return queuetest.Queue{
			Queue:  queue.NewMemory(queue.MemoryConfig{TTL: time.Minute, Clock: c}),
			Expire: func() { c.pass(time.Minute) },
			Half:   func() { c.pass(40 * time.Second) },
		}
	})
}

func TestMemoryQueueWithoutTTL(t *testing.T) {
	t.Parallel()
	queuetest.RunQueue(t, func(*testing.T) queuetest.Queue {
		return queuetest.Queue{Queue: queue.NewMemory(queue.MemoryConfig{})}
	})
}

func TestDirFiles(t *testing.T) {
	t.Parallel()
	queuetest.RunFiles(t, func(t *testing.T) queue.Files { return queue.DirFiles(t.TempDir()) })
}
