package main

import (
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/demo"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. No callback decides about
// permissions here, so a real agent can only do what needs no permission.
func options(name string) (*sdk.Options, error) {
	const pause = 40 * time.Millisecond
	return demo.Options(name, scripted.New(scripted.WithScript(&scripted.Script{Default: scripted.Steps{
		&scripted.Partial{Text: "Turn ${turn}. Let me look at what there is.", Chunk: 4, Pause: pause},
		&scripted.ToolUse{
			Name: "Glob", Input: map[string]any{"pattern": "*.go"}, Takes: 400 * time.Millisecond,
			Result: "agent.go\nmain.go\nsessions.go\nvisit.go",
		},
		&scripted.Partial{Text: "Four files. You said: ${prompt}", Chunk: 4, Pause: pause},
	}})))
}
