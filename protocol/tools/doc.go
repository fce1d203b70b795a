// Package tools types the built-in tools of Claude Code and qodercli: the
// input of a call and the structured output that a result carries.
//
// A tool call on the wire is a name and an object ([protocol.ToolUseBlock],
// the request of a permission callback, the input of a hook). [DecodeInput]
// turns the two into a typed value, [DecodeOutput] does the same for
// "tool_use_result" of a user line and the "tool_response" of a hook.
// [EncodeInput] goes the other way, for callbacks that change an input.
//
// Both vendors stand in one type for each tool, for most of their fields are
// the same; what only one of them has says so. Where sources disagree, what
// was observed on the wire wins over what the agent declares, and that over
// the vendors' documents. Outputs of qodercli were never observed, for want of
// an account: they follow its own declarations.
//
// The set is open. A tool that is not known here, and one of an MCP server or
// of next week, decodes to a type that keeps the bytes. A field that a type
// does not know is kept in Extra. Nothing is validated beyond its shape: a
// model forgets required fields at times (observed on Claude Code 2.1.329).
//
// What must not live here: I/O, clocks, and knowledge of messages, sessions
// and permission rules.
package tools
