package machine

import "time"

// Flow is what was delivered and is not consumed, and what open requests hold.
type Flow struct {
	Held         int   // messages
	Bytes        int64 // of them
	Partials     int   // of Held, what could still be dropped
	PartialBytes int64
	LargeBytes   int64  // of Bytes, lines that draw on the budget
	Pushed       uint64 // messages ever

	RequestBytes  int64 // of the open requests up to LargeLine
	LargeRequests int64 // of the others

	Reader    bool // the stream has a consumer
	Discard   bool
	Abandoned bool // the user closes: unread messages must not hold that up
	Overflows bool // and there are more than may be kept
	Lost      int  // messages that were not kept then
	Stalled   bool // the reader waits for a consumer
	StalledAt time.Time
	Paused    bool // the reader was paused
	Pressed   bool // it has to continue if it may, see ReaderAsks
}

// MessageCost is what a message takes besides its line, in bytes.
const MessageCost = 256

// weight is the memory of what is held.
func (f *Flow) weight() int64 { return f.Bytes + int64(f.Held)*MessageCost }

// firm is the memory of messages that can neither be dropped nor have a separate
// budget.
func (f *Flow) firm() int64 {
	return f.weight() - f.PartialBytes - int64(f.Partials)*MessageCost - f.LargeBytes
}

func (f *Flow) hold(e *Delivery) {
	n := int64(len(e.Frame.Raw))
	f.Held++
	f.Bytes += n
	if n > LargeLine {
		f.LargeBytes += n
	}
	if e.Frame.Type == "stream_event" {
		f.Partials++
		f.PartialBytes += n
	}
}

// Weight is the memory of what was delivered and is not consumed.
func (m *Routing) Weight() int64 { return m.Flow.weight() }

func (m *Routing) unstall() { m.Flow.Stalled, m.Flow.StalledAt = false, time.Time{} }

// resume checks whether a waiting reader may continue.
func (m *Routing) resume() {
	if m.Flow.Paused {
		m.judgeReader()
	}
}

// goOn lets the reader continue.
func (m *Routing) goOn() {
	if m.Flow.Paused {
		m.Flow.Paused = false
		m.do(ReadOn{})
	}
}

func (m *Routing) full() bool {
	return m.Flow.Held >= m.cfg.Limits.Messages || m.Flow.Bytes >= m.cfg.Limits.Bytes
}

// judgeReader decides whether the reader may continue. Calls of the host whose answers
// follow more unread messages than the hard bound end with
// [session.ErrConsumerStalled].
func (m *Routing) judgeReader() {
	if !m.full() || m.Flow.Discard {
		m.unstall()
		m.goOn()
		return
	}
	// Calls of the host and the end of a closing session lie behind what is
	// unread, so the bound gives way for them, up to the hard one.
	mayExceed := m.Flow.Pressed || m.Closing || len(m.Calls) > 0
	if mayExceed && m.Flow.firm() < m.cfg.Limits.HardBytes {
		m.unstall()
		m.goOn()
		return
	}
	if m.Flow.Abandoned && !m.Flow.Reader {
		// The close must not wait for a reader that may never come.
		m.Flow.Discard, m.Flow.Overflows = true, true
		m.goOn()
		return
	}
	m.dropCalls()
	if !m.Flow.Stalled {
		m.Flow.Stalled, m.Flow.StalledAt = true, m.now
	}
	if !m.Flow.Paused {
		m.Flow.Paused = true
		m.do(Pause{})
	}
}

// consumed takes credit back.
func (m *Routing) consumed(in Consumed) {
	f := &m.Flow
	f.Held -= in.Messages
	f.Bytes -= in.Bytes
	f.Partials -= in.Partials
	f.PartialBytes -= in.PartialBytes
	f.LargeBytes -= in.LargeBytes
	if !f.Stalled || in.Dropped {
		return
	}
	if in.Messages > 0 {
		f.StalledAt = m.now // there is a consumer
	}
	if in.Empty || f.Held <= m.cfg.Limits.Messages/2 && f.Bytes <= m.cfg.Limits.Bytes/2 {
		m.unstall()
		m.goOn()
	}
}
