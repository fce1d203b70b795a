// Package view folds a session's messages into what a user interface shows:
// messages while they are written ([Drafts]), tool calls with their results
// ([ToolCalls]), the tree of subagents ([Agents]), background tasks ([Tasks]),
// its todos and tasks ([Todos]), what it costs ([Costs]) and how the session stands
// ([Status]).
//
// Each is a small pure type: feed it every message, in order, with Add. The
// zero value is ready to use. None is safe for concurrent use; what Add and the
// other methods return is good until the next Add, and must not be changed.
//
// A message that comes again counts once: see [Replayed].
//
// Programs import this package for it; package sdk has no names of its own for
// these types.
//
// What must not live here: I/O, clocks, sessions, and anything that decides.
package view
