package main

import (
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the agent. The run is unattended, so tools without a rule
// are denied.
func options(agent *choice.Agent) (*sdk.Options, error) {
	opts, err := agent.Options()
	if err != nil {
		return nil, err
	}
	if agent.Demonstrates() {
		opts.Backend = demo.New(demo.Config{InCwd: true}) // in the workspace of its task
	}
	opts.AllowedTools = append(demo.Rules(), "Grep", "Glob")
	return opts, nil
}

// ownJob has the example's own tasks work in copies of the demonstration's project, which it
// writes into dir, and whose check verifies them.
func ownJob(job *fleet.Job, dir string) error {
	project := filepath.Join(dir, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		return err
	}
	job.Workspace = &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: project, Setup: demo.Setup}
	job.Verify = &fleet.Verify{Command: demo.Check, Prompt: "The check fails:\n{{.Output}}"}
	return demo.Project(project)
}
