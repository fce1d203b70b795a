package main

import (
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent dies in its first
// turn, and continues when it is resumed.
func options(agent *choice.Agent) (*sdk.Options, error) {
	return agent.OrScript(scripted.New(scripted.WithScript(&scripted.Script{
		Transcript: true,
		Turns:      []scripted.Turn{{Steps: scripted.Steps{scripted.Text("One moment."), &scripted.Exit{Signal: "KILL"}}}},
		Resumed:    []scripted.Turn{{Steps: scripted.Steps{scripted.Text("Good morning.")}}},
	}), scripted.WithHistory(&scripted.MemoryHistory{})))
}
