// Package dispatch runs user callbacks for the actors that call the user
// back: each on a task of its own, with a scope that the agent can cancel, a
// deadline, and exactly one answer, whatever the callback does.
//
// What must not live here: what a callback means.
package dispatch
