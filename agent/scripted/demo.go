package scripted

import (
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// Demo returns the script of an [Agent] without a script: it greets, thinks, streams
// text, asks for permission to run a command, and answers every further prompt.
func Demo() *Script {
	pause := 15 * time.Millisecond
	return &Script{
		Turns: []Turn{
			{Match: `(?i)\b(tool|bash|run|list|files?)\b`, Steps: Steps{
				Thinking("The user wants something done; a command will do it."),
				&Partial{Text: "Let me look at the working directory.", Chunk: 6, Pause: pause},
				&ToolUse{
					Name: "Bash", Input: map[string]any{"command": "ls", "description": "List files"},
					Gate: agent.GateAsk, Result: "README.md\ngo.mod\nmain.go", Takes: 100 * time.Millisecond,
				},
				&Partial{Text: "That is what there is to see.", Chunk: 6, Pause: pause},
			}},
			{Steps: Steps{
				Thinking("A first message. Greet, then show what a turn is made of."),
				&Partial{
					Text:  "Hello! I am the scripted agent: no model, no network, the same words every time.",
					Chunk: 6, Pause: pause,
				},
				&ToolUse{
					Name: "Bash", Input: map[string]any{"command": "echo hello from a tool", "description": "Say hello"},
					Gate: agent.GateAsk, Result: "hello from a tool", Takes: 50 * time.Millisecond,
				},
				&Partial{Text: "That was a tool call, as far as you allowed it. You said: ${prompt}", Chunk: 6, Pause: pause},
			}},
		},
		Default: Steps{
			Thinking("Nothing special was asked."),
			&Partial{Text: "Turn ${turn}. You said: ${prompt}", Chunk: 6, Pause: pause},
		},
	}
}
