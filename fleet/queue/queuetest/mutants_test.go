package queuetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/fleet/queue/queuetest"
)

// remote is a queue behind a network that can be cut: calls wait for it.
type remote struct {
	queue.Queue
	net *network
}

type network struct {
	mu sync.Mutex
	up chan struct{} // closed while there is a network
}

func newNetwork() *network {
	n := &network{up: make(chan struct{})}
	close(n.up)
	return n
}

func (n *network) cut() (restore func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up = make(chan struct{})
	return func() { close(n.up) }
}

func (n *network) wait(ctx context.Context) error {
	n.mu.Lock()
	up := n.up
	n.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r remote) Offer(ctx context.Context, all ...queue.Offer) error {
	if err := r.net.wait(ctx); err != nil {
		return err
	}
	return r.Queue.Offer(ctx, all...)
}

func (r remote) Lease(ctx context.Context, task, worker string) (queue.Lease, error) {
	if err := r.net.wait(ctx); err != nil {
		return queue.Lease{}, err
	}
	return r.Queue.Lease(ctx, task, worker)
}

func (r remote) Extend(ctx context.Context, l queue.Lease) (queue.Lease, error) {
	if err := r.net.wait(ctx); err != nil {
		return queue.Lease{}, err
	}
	return r.Queue.Extend(ctx, l)
}

func (r remote) Finish(ctx context.Context, l queue.Lease, result json.RawMessage) error {
	if err := r.net.wait(ctx); err != nil {
		return err
	}
	return r.Queue.Finish(ctx, l, result)
}

func (r remote) Release(ctx context.Context, l queue.Lease) error {
	if err := r.net.wait(ctx); err != nil {
		return err
	}
	return r.Queue.Release(ctx, l)
}

func TestAQueueBehindANetwork(t *testing.T) {
	t.Parallel()
	queuetest.RunQueue(t, func(*testing.T) queuetest.Queue {
		c, n := newClock(), newNetwork()
		q := remote{queue.NewMemory(queue.MemoryConfig{TTL: time.Minute, Clock: c}), n}
		return queuetest.Queue{
			Queue: q, Expire: func() { c.pass(time.Minute) }, Half: func() { c.pass(40 * time.Second) },
			Again: func(*testing.T) queue.Queue { return q }, Cut: n.cut,
		}
	})
}

// mutant is a wrong queue, and the case that fails with it.
type mutant struct {
	queuetest.Queue
	found string
}

func mutants(c *clock, right *queue.Memory) map[string]mutant {
	cfg, n := queue.MemoryConfig{TTL: time.Minute, Clock: c}, newNetwork()
	return map[string]mutant{
		"Extend writes nothing":              {queuetest.Queue{Queue: lazy{right}}, "a_lease_that_is_extended_outlives"},
		"Finish looks and then writes":       {queuetest.Queue{Queue: hasty{right}}, "Finish_at_the_moment"},
		"each program has its own":           {queuetest.Queue{Queue: right, Again: func(*testing.T) queue.Queue { return queue.NewMemory(cfg) }}, "two_programs"},
		"Watch drops what it cannot tell":    {queuetest.Queue{Queue: dropping{right}}, "a_Watch_loop_that_is_slow"},
		"calls do not end without a network": {queuetest.Queue{Queue: deaf{remote{right, n}}, Cut: n.cut}, "no_network"},
		"a lost network is a lost lease":     {queuetest.Queue{Queue: rash{remote{right, n}}, Cut: n.cut}, "no_network"},
	}
}

// lazy answers Extend by itself.
type lazy struct{ queue.Queue }

func (lazy) Extend(_ context.Context, l queue.Lease) (queue.Lease, error) { return l, nil }

// hasty finishes a task in two steps.
type hasty struct{ queue.Queue }

func (h hasty) Finish(ctx context.Context, l queue.Lease, result json.RawMessage) error {
	_, err := h.Lease(ctx, l.Task, "nobody")
	if taken := (*queue.LeasedError)(nil); !errors.As(err, &taken) || taken.Worker != l.Worker {
		return h.Queue.Finish(ctx, l, result)
	}
	time.Sleep(time.Millisecond)       // as a call over a network takes
	_ = h.Queue.Finish(ctx, l, result) // it has looked
	return nil
}

// dropping reports at most one change for each look.
type dropping struct{ queue.Queue }

func (d dropping) Watch(ctx context.Context) iter.Seq2[queue.Change, error] {
	return func(yield func(queue.Change, error) bool) {
		last := make(chan queue.Change, 1)
		go func() {
			for c, err := range d.Queue.Watch(ctx) {
				if err != nil {
					return
				}
				select {
				case last <- c:
				default:
				}
			}
		}()
		for {
			select {
			case c := <-last:
				if !yield(c, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// deaf does not hear the end of a context.
type deaf struct{ remote }

func (d deaf) Finish(ctx context.Context, l queue.Lease, result json.RawMessage) error {
	return d.remote.Finish(context.WithoutCancel(ctx), l, result)
}

// rash takes a call that failed for a lease that is lost.
type rash struct{ remote }

func (r rash) Extend(ctx context.Context, l queue.Lease) (queue.Lease, error) {
	longer, err := r.remote.Extend(ctx, l)
	if err != nil {
		err = queue.ErrLeaseLost
	}
	return longer, err
}

const mutantEnv = "TROUPE_TEST_MUTANT"

func TestTheSuiteFindsWrongQueues(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(mutantEnv); name != "" {
		queuetest.RunQueue(t, func(*testing.T) queuetest.Queue {
			c := newClock()
			q := mutants(c, queue.NewMemory(queue.MemoryConfig{TTL: time.Minute, Clock: c}))[name].Queue
			q.Expire, q.Half = func() { c.pass(time.Minute) }, func() { c.pass(40 * time.Second) }
			return q
		})
		return
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, m := range mutants(newClock(), nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), exe, "-test.run", "^TestTheSuiteFindsWrongQueues$/^"+m.found, "-test.timeout", "2m")
			cmd.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "the suite passes")
			assert.Contains(t, string(out), "--- FAIL: TestTheSuiteFindsWrongQueues/"+m.found)
		})
	}
}
