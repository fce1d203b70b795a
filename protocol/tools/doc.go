// Package tools types the built-in tools of Claude Code and qodercli: the
// input of a call and the structured output that a result carries.
//
// A tool call on the wire is a name and an object ([protocol.ToolUseBlock],
// the request of a permission callback, the input of a hook). [DecodeInput]
// turns the two into a typed value, [DecodeOutput] does the same for
// "tool_use_result" of a user line and the "tool_response" of a hook.
// [EncodeInput] goes the other way, for callbacks that change an input.
//
// Each tool has one type for both vendors, because most fields are the same; the comment of
// a field says if only one vendor has it. If sources disagree, observations take precedence
// over the agent's declarations, and declarations over the vendor's documents. Outputs of
// qodercli were never observed, because that needs an account; they follow its declarations.
//
// The set is open. A tool that this release does not know, such as a tool of an MCP server,
// decodes to a type that keeps the bytes. Unknown fields are kept in Extra. Only the shape
// of values is validated: a model sometimes omits required fields (observed on Claude Code
// 2.1.329).
//
// I/O, clocks, and knowledge of messages, sessions and permission rules must not live here.
package tools
