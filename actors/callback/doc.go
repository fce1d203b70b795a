// Package callback runs the user's callbacks for the agent's requests. Its actor runs
// each callback as a task, with a context that the agent can cancel, a deadline, and
// exactly one answer, whatever the callback does. A [Request] is one request of the agent,
// a [Job] the callback that answers it, and the errors say who may read their text.
//
// The kinds without a separate package are here too: permission with the policy of the
// options ([EnforcePolicy]), model policy, and inquiry, which is everything else that a
// session asks its user (elicitations, dialogs, login tokens, decisions about memories and
// reviews after a turn, places of files). Hooks and MCP have sibling packages.
//
// The routing of requests must not live here.
package callback
