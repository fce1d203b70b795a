package ledger

import (
	"bytes"
	"time"

	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol"
)

// Put takes frames that the reader has cut. It reports whether the router must be
// told, because something is [Due]. For each line above [machine.LargeLine] the
// reader has already acquired its length from the budget; it is released when
// the line is consumed.
func (l *Ledger) Put(frames []protocol.Frame) (tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastRead = l.cfg.Clock.Now()
	if l.stream.unpaid.Bytes > paysAt || l.stream.unpaid.Messages > paysAt/messageBytes {
		l.pay(machine.Consumed{})
	}
	l.step(machine.FramesRead{Frames: frames})
	return l.due.any()
}

// LastRead is when the agent was last heard of; the zero value if it never was.
func (l *Ledger) LastRead() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastRead
}

// PutSkipped takes a line of which only the head is known: one above the ceiling,
// or, with the length 0, one that is no JSON.
func (l *Ledger) PutSkipped(f protocol.Frame) (tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(machine.FramesRead{Frames: []protocol.Frame{f}})
	return l.due.any()
}

// ReadWait tells the reader whether it may read on: a nil channel means yes,
// otherwise it waits for the channel and asks again. pressed says that the
// agent does not take what is written to it, or is already gone; then the
// reader must go on, or both sides would wait for each other.
//
// Calls of the host whose answers lie behind more than the hard bound of what
// nobody reads end with [session.ErrConsumerStalled].
func (l *Ledger) ReadWait(pressed bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.routing.Full() && !l.sum.Stalled {
		return nil
	}
	l.pay(machine.Consumed{})
	l.paused = false
	l.step(machine.ReaderAsks{Pressed: pressed})
	if !l.paused {
		return nil
	}
	return l.reader.wait()
}

// WakeReader makes a waiting reader ask again.
func (l *Ledger) WakeReader() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reader.fire()
}

// ReaderWaits notes what the reader waits for, other than its consumer: "" when
// it does not.
func (l *Ledger) ReaderWaits(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readerWaits, l.readerSince = what, l.cfg.Clock.Now()
}

// EndOfInput says that the agent's stdout has ended.
func (l *Ledger) EndOfInput() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(machine.OutputEnded{})
}

// Echo looks for the host's own words in a line of the agent, whole or cut: a
// control request that begins like one of the calls that set the agent up. It fails
// the start then, and reports true.
func (l *Ledger) Echo(line []byte) bool {
	const open = `{"type":"control_request","request_id":`
	if !bytes.HasPrefix(line, []byte(open)) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.routing.Calls {
		c := &l.routing.Calls[i]
		if c.Setup && c.Written && bytes.HasPrefix(line[len(open):], []byte(protocol.TextID(c.ID))) {
			l.step(machine.Echoed{})
			return true
		}
	}
	return false
}
