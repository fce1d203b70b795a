// Package router is the actor that tells the others of a session what is due: the
// callback actors of requests that wait for them, and the session of what has
// changed. What came and what goes is sorted by the routing, in the ledger.
package router
