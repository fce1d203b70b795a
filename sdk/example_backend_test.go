package sdk_test

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/sdk"
)

// parrot is a backend of the program's own: an agent in this process that speaks Claude
// Code's protocol. It could as well be a process (Dialect alone), or a connection.
type parrot struct{ word string }

func (parrot) AgentName() string { return "parrot" }

// Agent implements backend.Backend. It gets the session's options, and refuses those that
// the agent cannot honor.
func (p parrot) Agent(in *dialect.Input) (backend.Agent, error) {
	if in.Model != "" {
		return backend.Agent{}, &sdk.ConfigError{Option: "Model", Backend: p.AgentName(), Problem: "is set, and a parrot has none", Fix: "leave it out"}
	}
	return backend.Agent{
		Dialect: claude.New(),
		NewProgram: func(backend.Seams) agent.Program {
			return scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{scripted.Text(p.word)}}))
		},
	}, nil
}

func ExampleBackend() {
	result, err := sdk.Run(context.Background(), "hello", &sdk.Options{Backend: parrot{"hello yourself"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Result)
	// Output: hello yourself
}
