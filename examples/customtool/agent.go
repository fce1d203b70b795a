package main

import (
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/demo"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(name string) (*sdk.Options, error) {
	return demo.Options(name, scripted.New(scripted.WithTurns(
		scripted.Turn{Steps: scripted.Steps{
			&scripted.MCPCall{Server: "orders", Tool: "lookup", Arguments: map[string]any{"order_id": "O-1001"}},
			scripted.Text("It has been shipped."),
		}},
	)))
}
