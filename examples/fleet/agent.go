package main

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent.
func options(name string) (*sdk.Options, error) {
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{
			scripted.Text("Let me see."),
			scripted.Delay(200 * time.Millisecond),
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make deploy"}, Gate: agent.GateAsk, Result: "deployed"},
			scripted.Text("You said: ${prompt}"),
		}}), scripted.WithHistory(&scripted.MemoryHistory{}))}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt("")}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
}
