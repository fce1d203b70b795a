package main

import (
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(who *choice.Agent) (*sdk.Options, error) {
	shell := func(command, result string) scripted.Step {
		return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": command}, Gate: agent.GateAsk, Result: result}
	}
	read := func(path string) scripted.Step {
		return &scripted.ToolUse{Name: "Read", Input: map[string]any{"file_path": path}, Result: "what is in " + path}
	}
	return who.OrScript(scripted.New(scripted.WithTurns(
		scripted.Turn{Steps: scripted.Steps{
			read("go.mod"),
			read("deploy/.env"),
			shell("git log --oneline | go test ./...", "ok"),
			shell("git status; sudo -u ci git push", "pushed"),
			shell("git log > /etc/motd", "written"),
			scripted.Text("The rules are strict."),
		}},
	)))
}
