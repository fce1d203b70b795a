// Package inspect lets other programs look into a running program's sessions: which
// there are, what each waits for and since when, what was restarted, and what is unread.
// It answers "why does nothing happen?" without a debugger and without a restart.
//
// [Listen] opens a Unix socket that only the user can reach, or a port of this machine
// with a token; [Handler] is the same for an HTTP server that the program already has.
// The commands troupe ps, troupe top and troupe mcp read the socket, and so does
// [Fetch]. Nothing is open until one of them is called, and nothing can be changed
// through them.
//
// The views show [runtime.Tree]: no prompts, no answers, no secrets of the options. The
// names in it may come from an agent or a model. Every form, JSON too, has control and
// escape characters as visible escapes, so that nothing an agent says can steer a
// terminal.
//
// The views of a runtime, their access rules, and their client live here. Package
// runtime gathers the data.
package inspect
