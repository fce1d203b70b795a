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
			&scripted.ToolUse{Name: "Read", Input: map[string]any{"file_path": "/repo/go.mod"}, Result: "module example"},
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm -rf build"}},
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls; echo $(sudo -u ci rm -rf build)"}},
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "echo hi"}, Result: "hi"},
			scripted.Text("The directory is still there."),
		}},
	)))
}
