package main

import (
	"fmt"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(name string) (*sdk.Options, error) {
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted.New(scripted.WithTurns(
			scripted.Turn{Steps: scripted.Steps{
				&scripted.ToolUse{Name: "Read", Input: map[string]any{"file_path": "/repo/go.mod"}, Gate: agent.GateAsk, Result: "module example"},
				&scripted.ToolUse{Name: "Write", Input: map[string]any{"file_path": "/repo/notes.txt", "content": "A module."}, Result: "wrote ${input}"},
				&scripted.ToolUse{Name: "AskUserQuestion", Input: map[string]any{"questions": []any{map[string]any{
					"question": "Which tests?", "header": "Tests", "options": []any{map[string]any{"label": "all"}, map[string]any{"label": "short"}},
				}}}, Result: "answered ${input}"},
				&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "go test ./..."}, Gate: agent.GateAsk, Result: "ok"},
				scripted.Text("That is how far you let me go."),
			}},
		))}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt("")}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
}
