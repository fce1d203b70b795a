// Package permission answers the agent's can_use_tool requests with the
// user's callback. It is a gate: whatever goes wrong is a deny.
package permission
