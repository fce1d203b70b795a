package ledger

import (
	"bytes"

	"github.com/agent-troupe/troupe/protocol"
)

// EchoError says that what the host writes to the agent's stdin comes back on its
// stdout: a terminal stands between them, as with docker run -t or ssh -t.
type EchoError struct{}

func (*EchoError) Error() string {
	return "the agent's stdin is echoed on its stdout by a terminal: start the agent without one " +
		"(docker run -i without -t, ssh -T) or switch the echo off (stty -echo -icanon)"
}

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
			l.facts.initFailure = &EchoError{}
			return true
		}
	}
	return false
}
