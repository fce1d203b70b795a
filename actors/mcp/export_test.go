package mcp

// Calls is the number of calls that the bridge has under way.
func (b *Bridge) Calls() int { return len(b.calls) }
