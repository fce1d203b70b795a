// Package inquiry answers the agent's requests other than hooks, permissions, tools and
// models: elicitations of MCP servers, dialogs, login tokens, decisions about memories and
// reviews after a turn, and the places of a session's files.
//
// Code that decides whether a tool may run must not live here.
package inquiry
