package main

import (
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/demo"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent.
func options(name string) (*sdk.Options, error) {
	return demo.Options(name, scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{
		scripted.Text("Let me see."),
		scripted.Delay(200 * time.Millisecond),
		&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make deploy"}, Gate: agent.GateAsk, Result: "deployed"},
		scripted.Text("You said: ${prompt}"),
	}}), scripted.WithHistory(&scripted.MemoryHistory{})))
}
