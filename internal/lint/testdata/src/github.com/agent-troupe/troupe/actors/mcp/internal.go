package mcp

import "github.com/agent-troupe/troupe/internal/machine"

// Users do not import this package.
func Route(*machine.Routing) {}
