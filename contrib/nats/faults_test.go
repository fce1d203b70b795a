package troupenats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// faults is a network between programs and a server that loses requests, loses answers, and delivers
// requests again and late, as a seed says. One call is under way at a time.
type faults struct {
	rand *rand.Rand
	now  int // calls so far
	late []late
}

// late is a request that arrives before a call with that number.
type late struct {
	at   int
	send func()
}

// faulty is what a program has instead of the servers.
type faulty struct {
	jetstream.JetStream

	net *faults
}

func (f *faulty) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	again := func() {
		_, _ = f.JetStream.PublishMsg(context.WithoutCancel(ctx), &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}, options...)
	}
	switch f.net.rand.IntN(12) {
	case 0: // the request is lost
		return nil, nats.ErrTimeout
	case 1: // the answer is
		again()
		return nil, nats.ErrTimeout
	case 2: // the request is late
		f.net.late = append(f.net.late, late{f.net.now + f.net.rand.IntN(8), again})
		return nil, nats.ErrTimeout
	case 3: // it arrives twice, and the first answer is lost
		again()
	case 4: // it arrives again, late
		f.net.late = append(f.net.late, late{f.net.now + f.net.rand.IntN(8), again})
	}
	return f.JetStream.PublishMsg(ctx, m, options...)
}

// pass delivers what is late before the next call.
func (f *faults) pass(all bool) {
	f.now++
	var still []late
	for _, l := range f.late {
		if all || l.at < f.now {
			l.send()
		} else {
			still = append(still, l)
		}
	}
	f.late = still
}

// truth is what must be so of a task.
type truth struct {
	live   *queue.Lease // nil if no program has it
	holder int
	old    []queue.Lease // leases that have ended
	starts int
	note   string
	result string // "": it is not over
	fence  uint64 // of the result
}

// history is a sequence of calls of three programs, and what must have come of them.
type history struct {
	t      *testing.T
	net    *faults
	q      []*Queue
	tasks  []*truth
	fence  uint64 // the highest one
	decide int
}

// The network loses, repeats and delays requests and answers. All the same a lease is one program's, a call
// under a lease that has ended changes nothing, and what was acknowledged stays. 12 seeds; TROUPE_FULL: 300.
func TestFaultsFromSeeds(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: t.TempDir(), DontListen: true, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	seeds := 12
	if os.Getenv("TROUPE_FULL") != "" {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := &history{t: t, net: &faults{rand: rand.New(rand.NewPCG(uint64(seed), 1))}}
			cfg := Config{Job: job(), TTL: time.Minute, deletable: true}
			for range 3 {
				nc, err := nats.Connect("", nats.InProcessServer(s))
				require.NoError(t, err)
				t.Cleanup(nc.Close)
				q := opened(t, nc, cfg)
				q.js = &faulty{q.js, h.net}
				h.q = append(h.q, q)
			}
			h.run()
		})
	}
}

func (h *history) run() {
	ctx, r := h.t.Context(), h.net.rand
	for i := range 3 {
		require.NoError(h.t, h.q[i].Offer(ctx, queue.Offer{Task: fmt.Sprint("t", i), Hash: "h"}))
		h.tasks = append(h.tasks, &truth{})
	}
	for range 60 {
		h.net.pass(false)
		i := r.IntN(len(h.tasks))
		h.step(ctx, i, h.tasks[i], r.IntN(20))
	}
	h.net.pass(true)
	for i, is := range h.tasks {
		if is.result == "" {
			h.end(ctx, i)
			h.step(ctx, i, is, 0) // the note is there
		}
	}
	h.check(ctx)
}

func name(i int) string { return fmt.Sprint("t", i) }

// step is one call.
func (h *history) step(ctx context.Context, i int, is *truth, what int) {
	r := h.net.rand
	switch {
	case what < 7:
		h.lease(ctx, i, is)
	case what < 9 && len(is.old) > 0: // of a lease that has ended
		l := is.old[r.IntN(len(is.old))]
		q := h.q[r.IntN(len(h.q))]
		for _, err := range []error{q.Extend(ctx, l)[0], q.Note(ctx, l, json.RawMessage(`"void"`)), q.Release(ctx, l)} {
			require.ErrorIs(h.t, err, queue.ErrLeaseLost)
		}
		if err := q.Finish(ctx, l, json.RawMessage(`"void"`)); is.result == "" || is.fence != l.Fence {
			require.ErrorIs(h.t, err, queue.ErrLeaseLost)
		} else {
			require.NoError(h.t, err, "it repeats the call that has finished the task")
		}
	case what == 9:
		h.decide++
		d := queue.Decision{ID: fmt.Sprint("d", h.decide), Op: "pause", Task: name(i)}
		require.NoError(h.t, h.q[r.IntN(len(h.q))].Decide(ctx, d))
		d.Op = "resume"
		require.ErrorIs(h.t, h.q[r.IntN(len(h.q))].Decide(ctx, d), queue.ErrDecided)
	case is.live == nil:
	case what < 14:
		is.live.Starts, is.note = is.live.Starts+1, fmt.Sprintf(`"note %d"`, h.net.now)
		is.starts = is.live.Starts
		require.NoError(h.t, h.q[is.holder].Note(ctx, *is.live, json.RawMessage(is.note)))
	case what < 16:
		require.NoError(h.t, h.q[is.holder].Extend(ctx, *is.live)[0])
	case what < 17:
		require.NoError(h.t, h.q[is.holder].Release(ctx, *is.live))
		is.old, is.live = append(is.old, *is.live), nil
	case what < 19:
		h.end(ctx, i)
	default:
		is.result, is.fence = fmt.Sprintf(`"result %d"`, h.net.now), is.live.Fence
		require.NoError(h.t, h.q[is.holder].Finish(ctx, *is.live, json.RawMessage(is.result)))
		is.old, is.live = append(is.old, *is.live), nil
	}
}

func (h *history) lease(ctx context.Context, i int, is *truth) {
	by := h.net.rand.IntN(len(h.q))
	l, err := h.q[by].Lease(ctx, name(i), fmt.Sprint("w", by))
	_, leased := errors.AsType[*queue.LeasedError](err)
	switch {
	case is.result != "":
		require.ErrorIs(h.t, err, queue.ErrFinished)
	case is.live != nil:
		require.True(h.t, leased, "%v", err)
	case leased: // a request for a lease that came late: no program knows of it
		h.end(ctx, i)
	default:
		require.NoError(h.t, err)
		require.Greater(h.t, l.Fence, h.fence)
		require.Equal(h.t, is.starts, l.Starts)
		require.Equal(h.t, is.note, string(l.Note))
		h.fence, is.live, is.holder = l.Fence, &l, by
	}
}

// end has the server end the lease of a task.
func (h *history) end(ctx context.Context, i int) {
	is := h.tasks[i]
	now, err := h.q[0].read(ctx, h.q[0].subject(name(i)))
	require.NoError(h.t, err)
	if now.state != queue.Leased {
		return
	}
	require.NoError(h.t, h.q[0].stream.DeleteMsg(ctx, now.seq))
	for _, q := range h.q {
		require.NoError(h.t, q.mirror.current(ctx))
		q.mirror.look(name(i), now)
	}
	if is.live != nil {
		is.old, is.live = append(is.old, *is.live), nil
	}
}

// check compares what all programs see at the end.
func (h *history) check(ctx context.Context) {
	for _, q := range h.q {
		seen, decisions := 0, 0
		for c, err := range q.Watch(ctx) {
			require.NoError(h.t, err)
			if c.State == queue.Current {
				break
			}
			if c.Decision != nil {
				decisions++
				require.Equal(h.t, "pause", c.Decision.Op, "the first one counts")
				continue
			}
			var i int
			_, err := fmt.Sscanf(c.Task, "t%d", &i)
			require.NoError(h.t, err)
			is := h.tasks[i]
			require.Equal(h.t, is.result != "", c.State == queue.Over, c.Task)
			require.Equal(h.t, is.result, string(c.Result))
			if is.result != "" {
				require.Equal(h.t, is.fence, c.Fence)
			}
			seen++
		}
		require.Equal(h.t, len(h.tasks), seen)
		require.Equal(h.t, h.decide, decisions)
	}
}
