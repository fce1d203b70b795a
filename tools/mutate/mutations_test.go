package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/tools/mutation"
)

// Each mutation still fits its file, compiles, and is about a closed row.
func TestMutationsFit(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	ledger, err := parity.Read(root)
	require.NoError(t, err)
	all, err := mutation.Parse("mutations.txt", mutationsFile)
	require.NoError(t, err)
	require.NoError(t, mutation.Compile(root, all))
	rows := map[string]bool{}
	for _, m := range all {
		rows[m.ID] = true
		if row := ledger.Row(m.ID); assert.NotNil(t, row, m.ID) {
			assert.NotEmpty(t, row.Test, "%s is open", m.ID)
		}
		content, err := os.ReadFile(filepath.Join(root, m.File))
		require.NoError(t, err)
		broken, err := m.Apply(string(content))
		require.NoError(t, err)
		assert.NotEqual(t, string(content), broken, m.ID)
	}
	assert.GreaterOrEqual(t, len(rows), 100)
}

func TestCommand(t *testing.T) {
	t.Parallel()
	pkg, pattern := command("dialect/claude.TestEveryOption/option/mcpServers.sdk")
	assert.Equal(t, "dialect/claude", pkg)
	assert.Equal(t, `^TestEveryOption$/^option$/^mcpServers\.sdk$`, pattern)
}
