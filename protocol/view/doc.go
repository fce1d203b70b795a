// Package view folds a session's messages into what a user interface shows:
// messages while they are written ([Drafts]), tool calls with their results
// ([ToolCalls]), the tree of subagents ([Agents]), background tasks ([Tasks]),
// the plan ([Plan]), what it costs ([Costs]) and how the session stands
// ([Status]).
//
// Each is a small pure type: feed it every message, in order, with Add. The
// zero value is ready to use. None is safe for concurrent use; what Add and the
// other methods return is good until the next Add, and must not be changed.
//
// A message that comes again counts once: see [Replayed].
//
// What must not live here: I/O, clocks, sessions, and anything that decides.
package view

import "github.com/agent-troupe/troupe/protocol"

// Replayed reports whether m tells again what was told before: the echo of a
// user line, or history that a resumed session shows.
func Replayed(m protocol.Message) bool {
	switch m := known(m).(type) {
	case *protocol.UserMessage:
		return m.IsReplay
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
