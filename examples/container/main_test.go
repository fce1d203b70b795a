package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) {
	if os.Getenv(agentEnv) != "" {
		agent.Main(program())
		return
	}
	os.Exit(m.Run())
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	in := container{"podman", "agents:1", []string{"HOME"}}
	home, ok := os.LookupEnv("HOME")
	require.True(t, ok)
	c := &session.Command{
		Names: []string{"claude"}, Args: []string{"--settings", "{{file:s.json}}"}, Dir: "/repo",
		Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "SECRET=x"}, Files: []session.File{{Name: "s.json"}},
	}
	assert.Equal(t, "podman run --rm -i --init --name a1 -v /repo:/repo -w /repo -e HOME -e SECRET"+
		" -v {{file:s.json}}:{{file:s.json}}:ro agents:1 claude --settings {{file:s.json}}",
		strings.Join(in.commandLine("a1", c), " "))
}
