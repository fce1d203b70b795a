// Package router is the registry of the agent's requests: the kind of each request, the
// actor that answers a kind, and the answer if no callback gives one.
//
// The actor that routes requests, and the decisions of callbacks, must not live here.
package router
