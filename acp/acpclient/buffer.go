package acpclient

import (
	"context"
	"io"
	"sync"

	"github.com/agent-troupe/troupe/session"
)

// buffer is a byte queue between tasks. All waits go through the executor. The lock guards all
// fields but exec; nothing is called under it.
type buffer struct {
	exec session.Executor

	mu       sync.Mutex
	data     []byte
	ended    bool // nothing is added any more: reads drain, then end
	broken   bool // the reader is gone: further bytes are dropped
	onChange chan struct{}
}

// add appends p, and never waits.
func (b *buffer) add(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.broken {
		return
	}
	b.data = append(b.data, p...)
	b.changed()
}

// changed wakes the waiters; mu is held.
func (b *buffer) changed() {
	if b.onChange != nil {
		close(b.onChange)
		b.onChange = nil
	}
}

// change returns what the next change closes; mu is held.
func (b *buffer) change() <-chan struct{} {
	if b.onChange == nil {
		b.onChange = make(chan struct{})
	}
	return b.onChange
}

// await waits for a change; mu is held, and is released.
func (b *buffer) await() error {
	c := b.change()
	b.mu.Unlock()
	return b.exec.Await(context.Background(), c)
}

// Read implements io.Reader.
func (b *buffer) Read(p []byte) (int, error) {
	for {
		b.mu.Lock()
		if n := copy(p, b.data); n > 0 {
			if b.data = b.data[n:]; len(b.data) == 0 {
				b.data = nil // a long line is not kept
			}
			b.changed()
			b.mu.Unlock()
			return n, nil
		}
		if b.ended || b.broken {
			b.mu.Unlock()
			return 0, io.EOF
		}
		if err := b.await(); err != nil {
			return 0, err
		}
	}
}

// take returns all that is queued, and waits for something; false: nothing more comes.
func (b *buffer) take() ([]byte, bool) {
	for {
		b.mu.Lock()
		if len(b.data) > 0 {
			data := b.data
			b.data = nil
			b.changed()
			b.mu.Unlock()
			return data, true
		}
		if b.ended || b.broken {
			b.mu.Unlock()
			return nil, false
		}
		if b.await() != nil {
			return nil, false
		}
	}
}

// waitBelow waits until fewer than n bytes are queued, or the reader is gone.
func (b *buffer) waitBelow(n int) {
	for {
		b.mu.Lock()
		if len(b.data) < n || b.broken {
			b.mu.Unlock()
			return
		}
		if b.await() != nil {
			return
		}
	}
}

// end says that nothing more is added.
func (b *buffer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.changed()
}

// abandon says that the reader is gone.
func (b *buffer) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken, b.data = true, nil
	b.changed()
}

// state reports whether buffer was ended, and whether it was abandoned.
func (b *buffer) state() (ended, broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended, b.broken
}
