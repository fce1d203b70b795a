package queuetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"slices"
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

func (r remote) Extend(ctx context.Context, all ...queue.Lease) []error {
	if err := r.net.wait(ctx); err != nil {
		return slices.Repeat([]error{err}, len(all))
	}
	return r.Queue.Extend(ctx, all...)
}

func (r remote) Note(ctx context.Context, l queue.Lease, note json.RawMessage) error {
	if err := r.net.wait(ctx); err != nil {
		return err
	}
	return r.Queue.Note(ctx, l, note)
}

func (r remote) Decide(ctx context.Context, d queue.Decision) error {
	if err := r.net.wait(ctx); err != nil {
		return err
	}
	return r.Queue.Decide(ctx, d)
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
		"only the first lease is extended":   {queuetest.Queue{Queue: frugal{right}}, "each_of_many_leases"},
		"a note ends with its lease":         {queuetest.Queue{Queue: forgetful{right}}, "a_note_outlives"},
		"Note does not look at the lease":    {queuetest.Queue{Queue: open{right}}, "a_note_after_the_lease"},
		"each decision counts":               {queuetest.Queue{Queue: fickle{right}}, "two_decisions_with_one_id"},
		"offered results are dropped":        {queuetest.Queue{Queue: fresh{right}}, "a_result_is_offered_while"},
	}
}

// lazy answers Extend by itself.
type lazy struct{ queue.Queue }

func (lazy) Extend(_ context.Context, all ...queue.Lease) []error { return make([]error, len(all)) }

// frugal extends the first lease, and answers the others by itself.
type frugal struct{ queue.Queue }

func (f frugal) Extend(ctx context.Context, all ...queue.Lease) []error {
	if len(all) < 2 {
		return f.Queue.Extend(ctx, all...)
	}
	return append(f.Queue.Extend(ctx, all[0]), make([]error, len(all)-1)...)
}

// forgetful keeps a note no longer than its lease.
type forgetful struct{ queue.Queue }

func (f forgetful) Lease(ctx context.Context, task, worker string) (queue.Lease, error) {
	l, err := f.Queue.Lease(ctx, task, worker)
	l.Starts, l.Note = 0, nil
	return l, err
}

// open keeps the note of a lease that is lost.
type open struct{ queue.Queue }

func (o open) Note(ctx context.Context, l queue.Lease, note json.RawMessage) error {
	if err := o.Queue.Note(ctx, l, note); err != nil && !errors.Is(err, queue.ErrLeaseLost) {
		return err
	}
	return nil
}

// fickle takes another decision with an ID for a repetition.
type fickle struct{ queue.Queue }

func (f fickle) Decide(ctx context.Context, d queue.Decision) error {
	if err := f.Queue.Decide(ctx, d); !errors.Is(err, queue.ErrDecided) {
		return err
	}
	return nil
}

// fresh does not take results that are offered.
type fresh struct{ queue.Queue }

func (f fresh) Offer(ctx context.Context, all ...queue.Offer) error {
	all = slices.Clone(all)
	for i := range all {
		all[i].Result = nil
	}
	return f.Queue.Offer(ctx, all...)
}

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

func (r rash) Extend(ctx context.Context, all ...queue.Lease) []error {
	errs := r.remote.Extend(ctx, all...)
	for i := range errs {
		if errs[i] != nil {
			errs[i] = queue.ErrLeaseLost
		}
	}
	return errs
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
