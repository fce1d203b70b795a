package main

import (
	"fmt"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent dies in its first
// turn, and continues when it is resumed.
func options(name string) (*sdk.Options, error) {
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{
			Transcript: true,
			Turns:      []scripted.Turn{{Steps: scripted.Steps{scripted.Text("One moment."), &scripted.Exit{Signal: "KILL"}}}},
			Resumed:    []scripted.Turn{{Steps: scripted.Steps{scripted.Text("Good morning.")}}},
		}), scripted.WithHistory(&scripted.MemoryHistory{}))}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{})}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
}
