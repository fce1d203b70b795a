package command

import (
	"context"
	"sync"
	"time"
)

// How long a question waits for the call it is about to be printed. An agent
// need not report the calls of its subagents.
const (
	sightingLimit    = 3 * time.Second
	subsightingLimit = 300 * time.Millisecond
)

// sightings are the tool calls that were printed: the question about a call
// comes after it, though messages and questions take different ways. The zero
// value has seen nothing.
type sightings struct {
	mu    sync.Mutex
	calls map[string]chan struct{} // closed when printed; by tool use id
}

func (s *sightings) call(id string) chan struct{} {
	if s.calls == nil {
		s.calls = map[string]chan struct{}{}
	}
	if s.calls[id] == nil {
		s.calls[id] = make(chan struct{})
	}
	return s.calls[id]
}

// printed says that everything up to and with the call was printed.
func (s *sightings) printed(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.call(id): // an agent may repeat itself
	default:
		close(s.call(id))
	}
}

// await waits until the call was printed, but no longer than that.
func (s *sightings) await(ctx context.Context, id string, within time.Duration) {
	s.mu.Lock()
	call := s.call(id)
	s.mu.Unlock()
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-call:
	case <-limit.C:
	case <-ctx.Done():
	}
}
