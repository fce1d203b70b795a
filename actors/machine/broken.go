package machine

import (
	"bytes"
	"errors"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// unwritable ends an agent that will never hear anything again: at once if it waits
// for the decision of a gate.
func (m *Routing) unwritable() {
	const why = "its stdin could not be written"
	if len(m.requests) > 0 {
		m.do(Climb{m.Gen, Killed, why})
	} else {
		m.do(Climb{m.Gen, ClosedStdin, why})
	}
}

// mute ends an agent that still runs after the end of its stdout, because it can no longer
// send an answer or a result.
func (m *Routing) mute() {
	const why = "its stdout had ended"
	if m.InFlight() {
		m.do(Climb{m.Gen, Terminated, why})
	} else {
		m.do(Climb{m.Gen, ClosedStdin, why})
	}
}

var errEcho = errors.New("a broken line that begins like a call of the host's")

// EchoOpen begins a line that may be the host's own words.
const EchoOpen = `{"type":"control_request","request_id":`

// echo looks for the host's own words in a line of the agent, whole or cut: a control
// request that begins like one of the calls that set the agent up. It fails the start
// then, and reports true.
func (m *Routing) echo(line []byte) bool {
	id, ok := bytes.CutPrefix(line, []byte(EchoOpen))
	if !ok {
		return false
	}
	for i := range m.Calls {
		if c := &m.Calls[i]; c.Setup && c.Written && bytes.HasPrefix(id, []byte(protocol.TextID(c.ID))) {
			m.fail(&session.EchoError{})
			return true
		}
	}
	return false
}
