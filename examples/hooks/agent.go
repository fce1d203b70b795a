package main

import (
	"fmt"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(name string) (*sdk.Options, error) {
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted.New(scripted.WithTurns(
			scripted.Turn{Steps: scripted.Steps{
				&scripted.ToolUse{Name: "Read", Input: map[string]any{"file_path": "/repo/go.mod"}, Result: "module example"},
				&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm -rf build"}},
				&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls; echo $(sudo -u ci rm -rf build)"}},
				&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "echo hi"}, Result: "hi"},
				scripted.Text("The directory is still there."),
			}},
		))}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt("")}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
}
