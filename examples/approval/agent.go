package main

import (
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent always does the same.
func options(who *choice.Agent, plan bool) (*sdk.Options, error) {
	steps := works()
	if plan {
		steps = plans()
	}
	return who.OrScript(scripted.New(scripted.WithTurns(scripted.Turn{Steps: steps})))
}

func works() scripted.Steps {
	return scripted.Steps{
		&scripted.ToolUse{Name: "Read", Input: map[string]any{"file_path": "/repo/go.mod"}, Gate: agent.GateAsk, Result: "module example"},
		&scripted.ToolUse{Name: "Write", Input: map[string]any{"file_path": "/repo/notes.txt", "content": "A module."}, Result: "wrote ${input}"},
		&scripted.ToolUse{Name: "AskUserQuestion", Input: map[string]any{"questions": []any{map[string]any{
			"question": "Which tests?", "header": "Tests", "options": []any{map[string]any{"label": "all"}, map[string]any{"label": "short"}},
		}}}, Result: "answered ${input}"},
		&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "go test ./..."}, Gate: agent.GateAsk, Result: "ok"},
		scripted.Text("That is how far you let me go."),
	}
}

func plans() scripted.Steps {
	plan := func(text string) scripted.Step {
		return &scripted.ToolUse{Name: "ExitPlanMode", Input: map[string]any{"plan": text}, Result: "approved"}
	}
	return scripted.Steps{
		plan("1. Write hello.go."),
		plan("1. Write hello.go. 2. Write its test."),
		&scripted.ToolUse{Name: "Write", Input: map[string]any{"file_path": "hello.go", "content": "package hello"}, Result: "written"},
		scripted.Text("So be it."),
	}
}
