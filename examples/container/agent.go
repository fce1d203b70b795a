package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// agentEnv makes this program play the agent.
const agentEnv = "TROUPE_EXAMPLE_AGENT"

// program is an agent with a fixed answer.
func program() agent.Program {
	return scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{scripted.Text("In no container: there was no image.")}}))
}

// rehearsal prints the command line, and starts this program as the agent.
func rehearsal(in container) session.Spawner {
	return sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
		fmt.Println("would start:", strings.Join(in.commandLine("agent-NAME", c), " "))
		self, err := os.Executable()
		c.Env = append(c.Env, agentEnv+"=1")
		return append([]string{self}, c.Args...), nil, err
	})
}
