package transport

import (
	"errors"
	"io"
	"sync"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/machine"
)

// Bounds, in bytes. The routing bounds the queue; of small answers there may be
// answerBound before nothing more is read that could want one.
const (
	smallLine   = 64 << 10
	answerBound = 8 << 20
	takenStep   = 1 << 20 // the agent has taken that much before it is said
)

// writer is the one writer of an agent's stdin. Its task runs only while
// there is something to write. Safe for concurrent use; nothing blocks but the
// task.
type writer struct {
	exec    kernel.Executor
	out     io.WriteCloser
	pressed func()      // called when a write begins
	failed  func(error) // called once, when a write fails
	taken   func(int64) // called with the bytes that the agent has taken, now and then

	mu      sync.Mutex
	queue   []byte
	spare   []byte
	answers int           // bytes of answers that never wait, not yet taken by the agent
	eased   chan struct{} // closed when they are fewer; nil when nobody waits
	writing bool
	untold  int64 // bytes that the agent has taken since taken was called
	ending  bool  // close stdin when the queue is empty
	err     error
}

// Write implements ledger.Outlet.
func (w *writer) Write(lines []byte, as machine.Class) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case w.ending:
		return io.ErrClosedPipe
	case as == machine.Again && w.answers > answerBound:
		w.untold += int64(len(lines)) // it was given before, and is dropped
		return nil
	}
	if as == machine.Denial || as != machine.FromHost && len(lines) <= smallLine {
		w.answers += len(lines)
	}
	w.queue = append(w.queue, lines...)
	w.start()
	return nil
}

// crammed returns nil, or what to wait for before anything is read that could
// want another answer.
//
// An agent may be unable to read before it is read from, so what is written to
// it must never stop the reader (see mustRead): two full pipes would wait for
// each other. Small answers and denials are the exception, as nothing else
// bounds them: the agent asked for each, and one that has answerBound of them
// before it in its stdin was written to all the time and did not read. What the
// user makes of any size does not count: messages, calls, and large answers,
// which are denied when there is no room.
func (w *writer) crammed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answers <= answerBound {
		return nil
	}
	if w.eased == nil {
		w.eased = make(chan struct{})
	}
	return w.eased
}

// eases notes that the agent has taken some answers, or never will; mu is held.
func (w *writer) eases(answers int) {
	w.answers -= answers
	if w.eased != nil && w.answers <= answerBound {
		close(w.eased)
		w.eased = nil
	}
}

// giveUp fails every later write and drops what is queued; mu is held.
func (w *writer) giveUp(err error) {
	w.err = err
	w.queue = nil
	w.eases(w.answers)
}

// Claim implements ledger.Flusher.
func (w *writer) Claim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing {
		return false
	}
	w.writing = true
	return true
}

// Flush implements ledger.Flusher.
func (w *writer) Flush() { w.run() }

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
		chunk, answers := w.queue, w.answers
		w.queue, w.spare = w.spare[:0], nil
		w.mu.Unlock()

		w.pressed()
		_, err := w.out.Write(chunk)

		w.mu.Lock()
		if cap(chunk) <= smallLine {
			w.spare = chunk[:0]
		}
		switch {
		case w.err != nil:
		case err != nil:
			w.giveUp(err)
			w.mu.Unlock()
			w.failed(err)
			continue
		default:
			w.eases(answers)
			w.untold += int64(len(chunk))
		}
		told := w.untold
		if told >= takenStep {
			w.untold = 0
		}
		w.mu.Unlock()
		if told >= takenStep {
			w.taken(told)
		}
	}
}

// fail makes every later write fail.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.giveUp(err)
	}
}

var errExited = errors.New("the agent has exited")
