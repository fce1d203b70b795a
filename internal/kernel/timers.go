package kernel

import (
	"slices"
	"sync"
	"time"
)

// timers are those of one actor. They end with it.
type timers struct {
	mu   sync.Mutex
	live []*ownTimer
}

type ownTimer struct {
	Timer
	of *timers
}

func (t *timers) after(clock Clock, d time.Duration, fn func()) Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := &ownTimer{of: t}
	own.Timer = clock.AfterFunc(d, func() {
		t.forget(own)
		fn()
	})
	t.live = append(t.live, own)
	return own
}

// Stop implements [Timer].
func (o *ownTimer) Stop() bool {
	o.of.forget(o)
	return o.Timer.Stop()
}

func (t *timers) forget(o *ownTimer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.live, o); i >= 0 {
		t.live = slices.Delete(t.live, i, i+1)
	}
}

// end stops the remaining timers; t is nil for an actor that never set one.
func (t *timers) end() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.live {
		o.Timer.Stop()
	}
	t.live = nil
}
