package transport

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agent-troupe/troupe/actors/machine"
)

// Bounds, in bytes. The routing bounds the queue; of small answers there may be
// answerBound before nothing more is read that could want one.
const (
	smallLine   = 64 << 10
	answerBound = 8 << 20
	takenStep   = 1 << 20 // the agent has taken that much before it is said
)

// writer is the one writer of an agent's stdin. Its task, run, runs only while
// there is something to write. Safe for concurrent use; nothing blocks but the
// task.
type writer struct {
	out     io.WriteCloser
	pressed func()      // called when a write begins
	failed  func()      // called once, when a write fails
	taken   func(int64) // called with the bytes that the agent has taken, now and then
	busy    atomic.Bool // writing, for those who only want to know
	// answers is the bytes of answers that never wait and that the agent has not taken
	// yet; mu is held where it changes.
	answers atomic.Int64

	// Used only by the goroutine that writes.
	chunk []byte
	asked int64 // answers when chunk was taken

	mu      sync.Mutex
	queue   []byte
	eased   chan struct{} // closed when they are fewer; nil without a waiter
	writing bool
	untold  int64 // bytes that the agent has taken since taken was called
	ending  bool  // close stdin when the queue is empty
	err     error
}

// Write queues whole lines, which must not change from then on. It reports whether the caller has to
// call run. Lines after the end are dropped: the end of the process follows.
func (w *writer) Write(lines []byte, as machine.Class) (start bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil || w.ending:
		return false
	case as == machine.Again && w.answers.Load() > answerBound:
		w.untold += int64(len(lines)) // it was given before, and is dropped
		return false
	}
	if as == machine.Denial || as != machine.FromHost && len(lines) <= smallLine {
		w.answers.Add(int64(len(lines)))
	}
	if w.queue == nil {
		w.queue = slices.Clip(lines) // others may keep the line: nothing is appended in place
	} else {
		w.queue = append(w.queue, lines...)
	}
	return w.start()
}

// crammed is the backpressure of answers: it returns nil, or a channel that is closed
// when the reader may read further requests.
//
// An agent may be unable to read before it is read from, so pending writes must never
// stop the reader (see mustRead): two full pipes would wait for each other. Small
// answers and denials are the exception, as nothing else bounds them: the agent asked
// for each, and one that has answerBound of them before it in its stdin was written to
// all the time and did not read. Lines of the user do not count, of any size: messages,
// calls, and large answers, which are denied when there is no room.
func (w *writer) crammed() <-chan struct{} {
	if w.answers.Load() <= answerBound {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answers.Load() <= answerBound {
		return nil
	}
	if w.eased == nil {
		w.eased = make(chan struct{})
	}
	return w.eased
}

// eases notes that the agent has taken some answers, or never will; mu is held.
func (w *writer) eases(answers int64) {
	if left := w.answers.Add(-answers); w.eased != nil && left <= answerBound {
		close(w.eased)
		w.eased = nil
	}
}

// giveUp fails every later write and drops what is queued; mu is held.
func (w *writer) giveUp(err error) {
	w.err = err
	w.queue = nil
	w.eases(w.answers.Load())
}

// CloseAfterFlush closes stdin once everything queued is written. It reports whether
// the caller has to call run.
func (w *writer) CloseAfterFlush() (start bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	return w.start()
}

// start makes the caller the writer of the queue, unless there is one; mu is held.
func (w *writer) start() bool {
	if w.writing {
		return false
	}
	w.writing = true
	w.busy.Store(true)
	w.next()
	return true
}

// next takes what is queued; mu is held.
func (w *writer) next() {
	w.chunk, w.asked = w.queue, w.answers.Load()
	w.queue = nil
}

// run writes what is queued.
func (w *writer) run() {
	for {
		var err error
		if len(w.chunk) > 0 {
			w.pressed()
			_, err = w.out.Write(w.chunk)
		}
		w.mu.Lock()
		w.wrote(err)
		if len(w.queue) == 0 || w.err != nil {
			break
		}
		w.next()
		w.mu.Unlock()
	}
	closing := w.ending
	w.writing = false
	w.busy.Store(false)
	w.mu.Unlock()
	if closing {
		_ = w.out.Close()
	}
}

// wrote notes how a write ended. mu is held, and given up while others are called.
func (w *writer) wrote(err error) {
	n := int64(len(w.chunk))
	w.chunk = nil
	switch {
	case w.err != nil:
	case err != nil:
		w.giveUp(err)
		w.mu.Unlock()
		w.failed()
		w.mu.Lock()
		return
	default:
		w.eases(w.asked)
		w.untold += n
	}
	if told := w.untold; told >= takenStep {
		w.untold = 0
		w.mu.Unlock()
		w.taken(told)
		w.mu.Lock()
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

// A line keeps the chunk that it was read into, 32 KiB. Where what is kept is a
// small part of what is read, it is copied.
const (
	smallPart = 16 << 10 // lines from here on are a large part of any chunk
	spill     = 32 << 10 // may be read and not kept before copying begins
)

// thrift decides when lines are copied: small lines are copied when less than a quarter
// of the bytes that were read is retained, because a retained line keeps its whole chunk
// in memory.
type thrift struct{ wasted int }

// read notes that n bytes were read, of which kept bytes are retained. Memory is at most
// four times what the user's side counts, plus spill.
func (t *thrift) read(n, kept int) {
	t.wasted = min(max(t.wasted+n-4*kept, 0), 2*spill)
}

// keep returns the line, or a copy of it that keeps nothing else.
func (t *thrift) keep(line []byte) []byte {
	if t.wasted > spill && len(line) < smallPart {
		return bytes.Clone(line)
	}
	return line
}
