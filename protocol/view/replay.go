package view

import "github.com/agent-troupe/troupe/protocol"

// Replayed reports whether m repeats an earlier message: the echo of a user message, or
// history that a resumed session shows.
func Replayed(m protocol.Message) bool {
	switch m := known(m).(type) {
	case *protocol.UserMessage:
		return m.IsReplay || m.Historical
	case *protocol.AssistantMessage:
		return m.Historical
	case *protocol.CompactBoundaryMessage:
		return m.Historical
	}
	return false
}

// known returns what is known of a message of which some field did not decode.
func known(m protocol.Message) protocol.Message {
	if u, ok := m.(*protocol.UnknownMessage); ok && u.Partial != nil {
		return u.Partial
	}
	return m
}
