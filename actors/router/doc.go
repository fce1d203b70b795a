// Package router owns the routing of a session. Its actor gives each message to
// [machine.Routing] as an input, and carries out the effects, which are messages to other
// actors. The [Box] outlives the actor, so that the next incarnation continues where this
// one ended. The table of kinds has the kind of each request of the agent, the actor that
// answers it, and the answer if no callback gives one.
//
// The machine has the state and the decisions of a session; the callbacks decide about
// requests.
package router
