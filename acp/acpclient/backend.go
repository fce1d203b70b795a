package acpclient

import (
	"slices"

	"github.com/agent-troupe/troupe/agent/backend"
	base "github.com/agent-troupe/troupe/dialect"
	dialect "github.com/agent-troupe/troupe/dialect/acp"
	"github.com/agent-troupe/troupe/session"
)

// Backend returns the backend for an agent of the Agent Client Protocol, such as
// Backend("gemini", "--experimental-acp"). command is its program, by its path or by its name
// on the PATH of the agent's environment, and its arguments; Options.Cwd and Options.Env are
// for the process as for other agents. An option that the protocol cannot express is a
// *[session.ConfigError] before anything starts, such as Policy and Hooks: the protocol asks
// permission only for calls that the agent thinks need it. See docs/acp.md.
func Backend(command ...string) session.Backend { return &program{slices.Clone(command)} }

type program struct{ command []string }

func (*program) AgentName() string { return dialect.Name }

// Agent implements [backend.Backend].
func (p *program) Agent(in *base.Input) (backend.Agent, error) {
	d, maxLine := dialect.New(p.command...), in.MaxLine
	return backend.Agent{Dialect: d, Place: d.Place(), Translate: func(s backend.Seams, process session.Spawner) session.Spawner {
		return &Spawner{Process: process, MaxLine: maxLine, Seams: s}
	}}, nil
}
