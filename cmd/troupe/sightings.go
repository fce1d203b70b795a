package main

import (
	"context"
	"sync"
	"time"
)

// sightingLimit is how long a question waits for the call it is about to be
// printed. Calls of subagents may never be.
const sightingLimit = 300 * time.Millisecond

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

// await waits until the call was printed, for a while.
func (s *sightings) await(ctx context.Context, id string) {
	s.mu.Lock()
	call := s.call(id)
	s.mu.Unlock()
	limit := time.NewTimer(sightingLimit)
	defer limit.Stop()
	select {
	case <-call:
	case <-limit.C:
	case <-ctx.Done():
	}
}
