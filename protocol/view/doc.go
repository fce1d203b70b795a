// Package view computes the state that a user interface shows from a session's messages:
// messages while they are written ([Drafts]), tool calls with their results ([ToolCalls]),
// the tree of subagents ([Agents]), background tasks ([Tasks]), todos and tasks
// ([Todos]), costs ([Costs]) and the status of the session ([Status]).
//
// Each is a small pure type. Pass every message, in order, to Add. The zero value is ready
// to use. No type is safe for concurrent use. The values that Add and the other methods
// return are valid until the next Add, and must not be changed.
//
// A message that arrives twice counts once; see [Replayed].
//
// Package sdk has no aliases for these types.
//
// I/O, clocks, sessions, and code that makes decisions must not live here.
package view
