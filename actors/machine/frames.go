package machine

import (
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// LargeLine is the length in bytes above which a line draws on the runtime's
// budget.
const LargeLine = 1 << 20

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

// Short truncates s, a text of the agent, to 256 bytes, because events and errors retain
// it.
func Short(s string) string {
	if len(s) > 256 {
		return strings.Clone(s[:256]) + "…"
	}
	return s
}

// read routes a batch.
func (m *Routing) read(frames []protocol.Frame) {
	for i := range frames {
		f := &frames[i]
		m.left = len(frames) - i
		var calls []toolBlock
		if f.Type == "assistant" || f.Type == "user" {
			calls = toolBlocks(f)
			m.Memory.calls(m.now, calls)
		}
		m.progress(f, calls)
		m.witness(f, calls)
		switch {
		case m.EOF: // the session did not wait for it
			m.giveBack(len(f.Raw))
		case f.Oversize() != nil:
			m.skipped(*f)
		case IsControl(f.Type):
			m.control(f)
		default:
			m.content(f)
		}
	}
	if m.Flow.weight() > m.cfg.Limits.HardBytes && m.Flow.Partials > 0 {
		m.deliver()
		m.do(Trim{m.cfg.Limits.HardBytes * 3 / 4})
	}
}

// control handles a frame for the host.
func (m *Routing) control(f *protocol.Frame) {
	m.giveBack(len(f.Raw))
	switch f.Type {
	case protocol.TypeControlRequest:
		if m.echo(f.Raw) {
			return
		}
		if f.Subtype == "hook_callback" {
			m.Proof.hookCalled()
			if len(m.Strays.Kept) > 0 && isPromptHook(session.KindHook, f) {
				m.begunAfterStrays()
			}
		}
		m.deliver() // what came before it
		m.request(*f)
	case protocol.TypeControlResponse:
		m.deliver()
		m.response(*f)
	case protocol.TypeControlCancel, protocol.TypeControlCancelAlias:
		m.deliver()
		m.withdraw(*f)
	case "transcript_mirror":
		m.mirror(f.Raw)
	}
}

// content handles a message for the user.
func (m *Routing) content(f *protocol.Frame) {
	m.judgeStrays(f)
	e := Delivery{Frame: *f}
	m.place(&e)
	switch {
	case f.Type == "stream_event":
	case m.isStray(f):
		m.keepStray(&e)
	default:
		m.observe(&e)
	}
	m.push(e)
	if f.Type == "result" {
		m.mirror(nil)
	}
}

// mirror passes on what the agent stores; nil: what was passed on is due.
func (m *Routing) mirror(report []byte) {
	if m.cfg.Mirrored {
		m.do(Mirror{report})
	}
}

// push puts a message into the stream.
func (m *Routing) push(e Delivery) {
	if m.Flow.Discard {
		if m.cfg.Traced {
			m.do(Dropped{e.Frame})
		}
		m.giveBack(len(e.Frame.Raw))
		for _, o := range e.Ends {
			m.do(TurnOver{o})
		}
		if m.Flow.Overflows {
			m.Flow.Lost++
		}
		return
	}
	m.Flow.hold(&e)
	e.Seq = m.Flow.Pushed
	m.Flow.Pushed++
	if m.entries == nil {
		m.entries = make([]Delivery, 0, max(m.left, 1))
	}
	m.entries = append(m.entries, e)
}

// deliver hands over what was pushed.
func (m *Routing) deliver() {
	if len(m.entries) > 0 {
		m.do(Deliver{m.entries})
		m.entries = nil
	}
}

// giveBack returns what a line that is not delivered had of the budget.
func (m *Routing) giveBack(n int) {
	if n > LargeLine {
		m.do(Charge{-int64(n)})
	}
}

func lostInClose(n int) session.Event {
	return &session.WarningIssued{Problem: fmt.Sprintf("messages that came during the close were dropped, since nobody read those before them: %d", n)}
}
