package main

import (
	"fmt"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent plays its demo.
func options(name string) (*sdk.Options, error) {
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted.New()}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt("")}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
}
