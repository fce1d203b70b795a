//go:build unix

// Unix: the container runtime of the test is a shell script.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The runner is a script that notes what it is asked, and plays the agent.
func TestTheContainerIsRemoved(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	runner, notes := filepath.Join(dir, "docker"), filepath.Join(dir, "notes")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\nif [ \"$1\" = run ]; then %s=1 exec %s; fi\n", notes, agentEnv, self)
	require.NoError(t, os.WriteFile(runner, []byte(script), 0o700))
	require.NoError(t, run(t.Context(), container{runner: runner, image: "agents:1"}, "hi"))
	said, err := os.ReadFile(notes)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], " agents:1 claude --output-format stream-json")
	name := strings.Fields(lines[0])[5]
	assert.Equal(t, "rm -f "+name, lines[1])
}
