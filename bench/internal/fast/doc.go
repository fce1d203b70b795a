// Package fast is an agent that costs next to nothing, so that what is
// measured is its host. It speaks as much of Claude Code's dialect as a turn
// needs, writes lines made beforehand, and decodes what is written to it.
//
// In this package: that agent. Not in this package: a realistic one; that is package
// agent/scripted.
package fast
