// Package router is the actor between the transport and the rest of a session:
// it sorts the agent's frames, correlates control requests both ways, keeps
// their deadlines, and writes what waits for the agent.
//
// What must not live here: the content of callbacks, and the process.
package router
