package troupenats

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/fleet/queue/queuetest"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/storetest"
)

func TestOneServer(t *testing.T) {
	t.Parallel()
	conformance(t, single(t))
}

func TestThreeServers(t *testing.T) {
	t.Parallel()
	processes(t)
	conformance(t, three(t))
}

func conformance(t *testing.T, connect servers) {
	t.Helper()
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		queuetest.RunQueue(t, func(t *testing.T) queuetest.Queue {
			t.Helper()
			t.Parallel()
			return underTest(t, connect)
		})
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		queuetest.RunFiles(t, func(t *testing.T) queue.Files {
			t.Helper()
			t.Parallel()
			f, err := OpenFiles(t.Context(), connect(t, newNetwork()), Config{Job: job()})
			assert.NoError(t, err)
			return f
		})
	})
	t.Run("transcripts", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) session.Store {
			t.Helper()
			t.Parallel()
			return transcripts(t, connect(t, newNetwork()), job())
		})
	})
}

func underTest(t *testing.T, connect servers) queuetest.Queue {
	t.Helper()
	cfg := Config{Job: job(), TTL: time.Minute}
	_, name, _ := strings.Cut(t.Name(), "queue/")
	switch {
	case strings.Contains(name, "at_the_moment"): // the test ends them, 200 times
		cfg.deletable = true
	case strings.Contains(name, "result_is_offered"): // with fences of an older queue
		cfg.Above = 1000
	case strings.Contains(name, "outlives"): // on a busy machine
		cfg.TTL = 6 * time.Second
	case regexp.MustCompile("_end(s|ed)?(_|$)").MatchString(name):
		cfg.TTL = 3 * time.Second
	}
	n := newNetwork()
	h := &handles{cfg: cfg}
	return queuetest.Queue{
		Queue:  h.open(t, connect, n),
		Expire: func() { h.expire(t) },
		Half:   func() { time.Sleep(cfg.TTL/2 + 100*time.Millisecond) },
		Again:  func(t *testing.T) queue.Queue { t.Helper(); return h.open(t, connect, newNetwork()) },
		Cut:    n.cut,
	}
}

// handles are those of the programs that share a queue.
type handles struct {
	cfg Config
	mu  sync.Mutex
	all []*Queue
}

func (h *handles) open(t *testing.T, connect servers, n *network) *Queue {
	t.Helper()
	q := opened(t, connect(t, n), h.cfg)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, q)
	return q
}

// leased are the leases that a program knows of.
func (m *mirror) leased() map[string]record {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]record{}
	for task, r := range m.states {
		if r.state == queue.Leased {
			all[task] = r
		}
	}
	return all
}

// expire waits until the server has ended all leases, or ends them: to remove the message is what
// the server does.
func (h *handles) expire(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx := context.WithoutCancel(t.Context())
	if h.cfg.deletable {
		ended := h.all[0].mirror.leased()
		for _, r := range ended {
			_ = h.all[0].stream.DeleteMsg(ctx, r.seq) // Finish may have replaced it
		}
		for _, q := range h.all {
			assert.NoError(t, q.mirror.current(ctx))
			for task, r := range ended {
				q.mirror.look(task, r)
			}
		}
		return
	}
	time.Sleep(h.cfg.TTL)
	for _, q := range h.all {
		for task := range q.mirror.leased() {
			assert.Eventually(t, func() bool {
				now, err := q.read(ctx, q.subject(task))
				return err == nil && now.state != queue.Leased
			}, time.Minute, 50*time.Millisecond, task)
		}
	}
}
