package kernel_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// recorder writes down what a tracer is called with.
type recorder struct {
	mu    sync.Mutex
	depth int // actors that run
	lines []string
	sent  []any
	taken []any
}

func (r *recorder) Tell(id any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, id)
}

func (r *recorder) Enter(path string, o kernel.Occasion) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.depth++
	r.lines = append(r.lines, path+" "+string(o))
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.depth--
	}
}

func (r *recorder) Handle(id any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = append(r.taken, id)
}

func TestTracerFollowsAMessage(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	s := sim.New(1)
	defer s.Close()
	config := s.Config()
	config.Tracer = r
	sys := kernel.NewSystem(config)
	parent := root(t, sys, &node{})
	var at kernel.Address[msg]
	askSpawn(t, parent, "child#1", &at, &node{})
	at.Tell(nil, boom{})
	died := func() {
		require.NoError(t, s.Run(1000))
		require.False(t, at.Live())
	}
	died()
	askSpawn(t, parent, "child#2", &at, &node{}) // handles the message again
	died()
	require.NoError(t, kernel.StopAndWait(t.Context(), parent))

	r.mu.Lock()
	defer r.mu.Unlock()
	require.Zero(t, r.depth, "who has entered has left")
	require.Equal(t, "root start", r.lines[0])
	for _, line := range []string{"root message", "root/child#1 start", "root/child#1 message", "root/child#1 stopped", "root child down", "root/child#2 message", "root stopping", "root stopped"} {
		require.Contains(t, r.lines, line)
	}
	times := make(map[any]int)
	for _, id := range r.taken {
		require.Contains(t, r.sent, id, "it was sent")
		times[id]++
	}
	require.Equal(t, 2, times[r.sent[1]], "the message that both incarnations died of")
	require.Len(t, times, len(r.sent))
}
