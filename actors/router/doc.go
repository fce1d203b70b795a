// Package router owns the routing of a session. Its actor gives each message to
// [machine.Routing] as an input, and carries out the effects, which are messages to other
// actors. The [Box] outlives the actor, so that the next incarnation continues where this
// one ended. The table of kinds says of which kind a request of the agent is, which actor
// answers it, and what the answer is if no callback gives one.
//
// What a session knows and decides is the machine's, and must not live here, nor the
// callbacks' decisions.
package router
