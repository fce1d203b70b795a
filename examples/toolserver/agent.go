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
			&scripted.MCPCall{Server: "records", Tool: "import", Arguments: map[string]any{"source": "crm", "records": 3}},
			&scripted.MCPCall{Server: "records", Tool: "count"},
			scripted.Text("There are three records, all from the crm."),
		}},
	)))
}
