package troupenats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/session"
)

// killing kills the servers of a cluster in turn until stop is called: each is back after 1.5 s.
func (c *clustered) killing(t *testing.T, every time.Duration) (stop func() (kills int)) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan int)
	go func() {
		for kills := 0; ; kills++ {
			select {
			case <-end:
				ended <- kills
				return
			case <-time.After(every):
			}
			i := kills % len(c.all)
			assert.NoError(t, c.all[i].Process.Kill())
			_ = c.all[i].Wait()
			time.Sleep(1500 * time.Millisecond)
			c.start(t, i) //nolint:testifylint // it ends the test's killing, too
		}
	}()
	return func() int { close(end); return <-ended }
}

// promises are what the queue has answered.
type promises struct {
	mu      sync.Mutex
	fences  map[uint64]string
	valid   map[string]map[uint64]time.Time // until when the holder of a lease may rely on it
	results map[string]queue.Change
	left    int
	lost    int
	longest time.Duration
}

// The servers of a cluster are killed in turn while twelve callers on three connections lease, extend,
// give back and finish 3,000 tasks, or drop them.
func TestServersDieInTurn(t *testing.T) {
	t.Parallel()
	onlyFull(t)
	const tasks, callers, ttl = 3000, 12, 3 * time.Second
	c, urls := cluster(t, 15722)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cfg := Config{Job: job(), TTL: ttl, Try: 2 * time.Second}
	var handles []*Queue
	for range 3 {
		handles = append(handles, opened(t, reach(t, urls), cfg))
	}
	p := &promises{fences: map[uint64]string{}, valid: map[string]map[uint64]time.Time{}, results: map[string]queue.Change{}, left: tasks}
	var offers []queue.Offer
	for i := range tasks {
		offers = append(offers, queue.Offer{Task: fmt.Sprint("t", i), Hash: "h"})
		p.valid[offers[i].Task] = map[uint64]time.Time{}
	}
	require.NoError(t, handles[0].Offer(ctx, offers...))
	end := c.killing(t, 4*time.Second)
	var all sync.WaitGroup
	for w := range callers {
		all.Go(func() {
			for p.more() && ctx.Err() == nil {
				for _, i := range rand.Perm(tasks) {
					if !p.more() || !p.call(ctx, t, handles[w%3], offers[i].Task, fmt.Sprint("w", w), ttl) {
						break
					}
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	all.Wait()
	kills := end()
	require.NoError(t, ctx.Err())
	seen := map[string]queue.Change{}
	for change, err := range opened(t, reach(t, urls), cfg).Watch(ctx) {
		require.NoError(t, err)
		if change.State == queue.Current {
			break
		}
		seen[change.Task] = change
	}
	assert.Equal(t, p.results, seen)
	t.Logf("%d kills, %d leases lost, longest call %s", kills, p.lost, p.longest.Round(time.Millisecond))
}

func (p *promises) more() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left > 0
}

// call takes a task, if it is free, and does something with it. It returns false when ctx has ended, or a
// promise was broken.
func (p *promises) call(ctx context.Context, t *testing.T, q *Queue, task, me string, ttl time.Duration) bool {
	t.Helper()
	sent := time.Now()
	l, err := q.Lease(ctx, task, me)
	_, leased := errors.AsType[*queue.LeasedError](err)
	switch {
	case leased || errors.Is(err, queue.ErrFinished):
		return true
	case ctx.Err() != nil || !assert.NoError(t, err):
		return false
	}
	p.mu.Lock()
	p.longest = max(p.longest, time.Since(sent))
	_, twice := p.fences[l.Fence]
	assert.False(t, twice, "fence %d of %s", l.Fence, task)
	p.fences[l.Fence] = task
	for f, until := range p.valid[task] {
		assert.False(t, time.Now().Before(until), "two leases of %s, %d and %d", task, f, l.Fence)
	}
	p.valid[task][l.Fence] = sent.Add(ttl * 7 / 8)
	p.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	what := rand.IntN(12)
	if what < 2 { // gives it back, or drops it
		p.mu.Lock()
		delete(p.valid[task], l.Fence)
		p.mu.Unlock()
	}
	result := json.RawMessage(fmt.Sprintf(`{"by":%q,"n":%d}`, me, rand.Int()))
	sent = time.Now()
	switch what {
	case 0:
		err = q.Release(ctx, l)
	case 1:
		return true
	case 2:
		err = q.Extend(ctx, l)[0]
		fallthrough
	default:
		if err == nil {
			err = q.Finish(ctx, l, result)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.valid[task], l.Fence)
	switch {
	case errors.Is(err, queue.ErrLeaseLost):
		p.lost++
		return true
	case ctx.Err() != nil || !assert.NoError(t, err):
		return false
	}
	p.longest = max(p.longest, time.Since(sent))
	if what != 0 {
		_, twice := p.results[task]
		assert.False(t, twice, "two results of %s", task)
		p.results[task] = queue.Change{Task: task, State: queue.Over, Worker: me, Fence: l.Fence, Result: result}
		p.left--
	}
	return true
}

// A host appends to a session and reads it while the servers are killed in turn: each entry is there once,
// in its place.
func TestASessionOutlivesItsServers(t *testing.T) {
	t.Parallel()
	onlyFull(t)
	c, urls := cluster(t, 15822)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	name := job()
	a, b := transcripts(t, reach(t, urls), name), transcripts(t, reach(t, urls), name)
	l := leased(t, a, "a", time.Hour)
	under := session.WithLease(ctx, l)
	end := c.killing(t, 4*time.Second)
	n := 0
	for began := time.Now(); time.Since(began) < 30*time.Second; n++ {
		require.NoError(t, a.Append(under, aSession, lines(n, n+1)))
		if n%10 == 0 {
			require.NoError(t, a.RenewLease(ctx, l, time.Hour))
			require.Equal(t, lines(0, n+1), loaded(t, b))
		}
		time.Sleep(20 * time.Millisecond)
	}
	kills := end()
	assert.Equal(t, lines(0, n), loaded(t, b))
	t.Logf("%d entries, %d kills", n, kills)
}
