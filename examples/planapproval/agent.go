package main

import (
	"fmt"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(name string) (*sdk.Options, error) {
	plan := func(text string) scripted.Step {
		return &scripted.ToolUse{Name: "ExitPlanMode", Input: map[string]any{"plan": text}, Result: "approved"}
	}
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted.New(scripted.WithTurns(
			scripted.Turn{Steps: scripted.Steps{
				plan("1. Write hello.go."),
				plan("1. Write hello.go.\n2. Write its test."),
				&scripted.ToolUse{Name: "Write", Input: map[string]any{"file_path": "hello.go", "content": "package hello"}, Result: "written"},
				scripted.Text("So be it."),
			}},
		))}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt("")}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
}
