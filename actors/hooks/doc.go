// Package hooks answers the agent's hook_callback requests with the user's hooks. A gate
// that fails denies.
package hooks
