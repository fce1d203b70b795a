package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The types in the repository are those of the schema in the repository.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../schema/v1.json")
	require.NoError(t, err)
	files, err := Generate(data)
	require.NoError(t, err)
	there, err := filepath.Glob("../../" + prefix + "*.go")
	require.NoError(t, err)
	var names []string
	for _, path := range there {
		names = append(names, filepath.Base(path))
	}
	assert.Equal(t, slices.Sorted(maps.Keys(files)), slices.Sorted(slices.Values(names)), "go generate ./acp")
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: go generate ./acp", name)
	}
}

func TestGoName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"sessionId": "SessionID", "McpServerHttp": "MCPServerHTTP", "agent_message_chunk": "AgentMessageChunk",
		"$/cancel_request": "CancelRequest", "date-time": "DateTime", "uri": "URI",
	} {
		assert.Equal(t, want, goName(in), in)
	}
}
