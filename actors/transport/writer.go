package transport

import (
	"errors"
	"io"
	"sync"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// Bounds of the write queue, in bytes. A small line, such as a deny, always
// finds room: there are no more of them than requests, calls and turns, which
// have bounds of their own.
const (
	writeBound = 32 << 20
	smallLine  = 64 << 10
)

// writer is the one writer of an agent's stdin. Its task runs only while
// there is something to write. Safe for concurrent use; nothing blocks but the
// task.
type writer struct {
	exec    kernel.Executor
	out     io.WriteCloser
	pressed func()      // called when a write begins
	failed  func(error) // called once, when a write fails
	room    func()      // called when there is room again after a refusal

	mu      sync.Mutex
	queue   []byte
	spare   []byte
	writing bool
	refused bool // somebody waits for room
	ending  bool // close stdin when the queue is empty
	err     error
}

// Write implements ledger.Outlet.
func (w *writer) Write(lines []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.ending {
		return io.ErrClosedPipe
	}
	if len(lines) > writeBound {
		return ledger.ErrTooLarge
	}
	if len(w.queue)+len(lines) > writeBound && len(lines) > smallLine {
		w.refused = true
		return ledger.ErrNoRoom
	}
	w.queue = append(w.queue, lines...)
	w.start()
	return nil
}

// CloseAfterFlush closes stdin once everything queued is written.
func (w *writer) CloseAfterFlush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	w.start()
}

// Pending reports whether the agent has yet to take something.
func (w *writer) Pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writing
}

func (w *writer) start() {
	if !w.writing {
		w.writing = true
		w.exec.Go(w.run)
	}
}

func (w *writer) run() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 || w.err != nil {
			closing := w.ending
			w.writing = false
			w.spare = nil
			w.mu.Unlock()
			if closing {
				_ = w.out.Close()
			}
			return
		}
		chunk := w.queue
		w.queue, w.spare = w.spare[:0], nil
		w.mu.Unlock()

		w.pressed()
		_, err := w.out.Write(chunk)

		w.mu.Lock()
		if w.refused {
			w.refused = false
			defer w.room()
		}
		if cap(chunk) <= smallLine {
			w.spare = chunk[:0]
		}
		if err != nil && w.err == nil {
			w.err = err
			w.mu.Unlock()
			w.failed(err)
			continue
		}
		w.mu.Unlock()
	}
}

// fail makes every later write fail.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

var errExited = errors.New("the agent has exited")
