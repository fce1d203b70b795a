// Package inquiry answers what the agent asks of its host besides hooks,
// permissions, tools and models: elicitations of MCP servers, dialogs, tokens to
// log in with, whether a turn is worth a memory or a review, and where the files
// of a session are.
//
// What must not live here: anything that decides whether a tool may run.
package inquiry
