package ledger

import (
	"bytes"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Echo looks for the host's own words in a line of the agent, whole or cut: a
// control request that begins like one of the calls that set the agent up. It fails
// the start
// then, and reports true.
func (l *Ledger) Echo(line []byte) bool {
	const open = `{"type":"control_request","request_id":`
	if !bytes.HasPrefix(line, []byte(open)) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls.inOrder() {
		if c.Setup && c.written && bytes.HasPrefix(line[len(open):], []byte(protocol.TextID(c.ID))) {
			l.facts.initFailure = &session.EchoError{}
			return true
		}
	}
	return false
}
