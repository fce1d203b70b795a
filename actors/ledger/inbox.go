package ledger

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Put appends frames that the reader has cut. It reports whether the router
// must be told, because the inbox was empty. Past the hard bound it drops
// partial stream events, oldest first. For each line above [LargeLine] the
// reader has already acquired its length from the budget; it is released when
// the line is consumed.
func (l *Ledger) Put(frames []protocol.Frame) (tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.eof { // the session did not wait for it
		for _, f := range frames {
			if n := int64(len(f.Raw)); n > LargeLine {
				l.cfg.Budget.Release(n)
			}
		}
		return false
	}
	l.lastRead = l.cfg.Clock.Now()
	tell = l.inbox.len() == 0 && len(frames) > 0
	for _, f := range frames {
		l.arrive(f)
	}
	if l.stream.weight() > l.cfg.Limits.HardBytes && l.stream.partials > 0 {
		if count, bytes := l.stream.dropPartials(l.cfg.Limits.HardBytes * 3 / 4); count > 0 {
			l.cfg.Emit(session.MessagesDropped{Count: count, Bytes: bytes})
		}
	}
	return tell
}

// LastRead is when the agent was last heard of; the zero value if it never was.
func (l *Ledger) LastRead() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastRead
}

// PutSkipped appends a line of which only the head is known: one above the
// ceiling, or, with the length 0, one that is no JSON. Somebody may wait for it, so
// it keeps its place. It reports whether the router must be told.
func (l *Ledger) PutSkipped(f protocol.Frame) (tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.eof {
		return false
	}
	tell = l.inbox.len() == 0
	l.arrive(f)
	return tell
}

func (l *Ledger) arrive(f protocol.Frame) {
	l.inbox.push(f)
	l.stream.hold(len(f.Raw))
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
	full := l.stream.held >= l.cfg.Limits.Messages || l.stream.heldBytes >= l.cfg.Limits.Bytes
	if !full || l.stream.discard && l.inbox.len() == 0 {
		l.stream.unstall()
		return nil
	}
	if l.stream.discard { // what is held waits for the router, not for a consumer
		return l.reader.wait()
	}
	// Calls of the host and the end of a closing session lie behind what is
	// unread, so the bound gives way for them, up to the hard one.
	mayExceed := pressed || l.closing || l.calls.waiting() > 0
	if mayExceed && l.stream.firm() < l.cfg.Limits.HardBytes {
		l.stream.unstall()
		return nil
	}
	if l.stream.abandoned && l.stream.consumer == nil {
		// The close must not wait for a reader that may never come.
		l.stream.discard, l.stream.overflows = true, true
		if l.inbox.len() == 0 {
			return nil
		}
		return l.reader.wait()
	}
	if l.inbox.len() == 0 { // else the router is about to deliver, and wakes the reader
		for _, c := range l.calls.inOrder() {
			l.dropCall(c, fmt.Errorf("control request %s: %w", c.Subtype, session.ErrConsumerStalled))
		}
	}
	if !l.stream.stalled {
		l.stream.stalled, l.stream.stalledAt = true, l.cfg.Clock.Now()
	}
	return l.reader.wait()
}

// WakeReader makes a waiting reader ask again.
func (l *Ledger) WakeReader() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reader.fire()
}

// EndOfInput says that the agent's stdout has ended. It reports whether the
// router must be told.
func (l *Ledger) EndOfInput() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.eof = true
}

// Drained reports whether the agent's stdout has ended and every frame of it
// was handled.
func (l *Ledger) Drained() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.eof && l.inbox.len() == 0 && len(l.strays.kept) == 0
}

// DeliverContent moves frames from the inbox to the user's stream, up to the
// next control frame, which it returns and leaves where it is. ok is false
// when the inbox is empty. edge reports that turns, tasks or the agent's state
// changed.
func (l *Ledger) DeliverContent() (control protocol.Frame, edge, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	moved := false
	for l.inbox.len() > 0 {
		f := l.inbox.front()
		if f.Oversize() != nil {
			edge = l.deliverSkipped(*f) || edge
			moved = true
			continue
		}
		if IsControl(f.Type) {
			control, ok = *f, true
			if f.Type == protocol.TypeControlRequest && f.Subtype == "hook_callback" {
				l.proof.hookCalled()
				if len(l.strays.kept) > 0 && isPromptHook(&Request{Kind: Hook, Frame: *f}) {
					edge = l.begunAfterStrays() || edge
				}
			}
			break
		}
		edge = l.judgeStrays(f) || edge
		e := Entry{Frame: *f}
		l.place(&e)
		switch {
		case f.Type == "stream_event":
		case l.isStray(f):
			l.keepStray(&e)
			edge = true // the router sets a timer
		default:
			edge = l.observe(&e) || edge
		}
		l.inbox.pop()
		l.stream.push(e)
		moved = true
	}
	if !ok && l.straysOver() {
		edge, moved = l.takeStrays() || edge, true
	}
	if moved {
		l.stream.wake.fire()
		if l.stream.discard || l.stream.stalled {
			l.reader.fire()
		}
	}
	return control, edge, ok
}

// popControl takes the control frame at the head of the inbox.
func (l *Ledger) popControl() {
	f := l.inbox.pop()
	l.stream.release(len(f.Raw))
	l.reader.fire()
}

// Skip drops the control frame at the head of the inbox.
func (l *Ledger) Skip() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inbox.len() > 0 {
		l.popControl()
	}
}

// IsControl says whether frames of that type are for the host, and not for the
// user's stream.
func IsControl(typ string) bool {
	switch typ {
	case protocol.TypeControlRequest, protocol.TypeControlResponse,
		protocol.TypeControlCancel, protocol.TypeControlCancelAlias,
		protocol.TypeKeepAlive, "keepalive", "transcript_mirror":
		return true
	}
	return false
}
