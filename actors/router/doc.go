// Package router is the registry of the agent's requests: which kind a request is of,
// what answers the requests of a kind, and what is answered when no callback does.
//
// What must not live here: the actor that routes, and what a callback decides.
package router
