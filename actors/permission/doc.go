// Package permission answers the agent's can_use_tool requests with the user's callback.
// Any failure is a denial.
package permission
