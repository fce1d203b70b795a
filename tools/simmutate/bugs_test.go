package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/tools/mutation"
)

// Each bug still fits its file, compiles, and has its row in the table of docs/simulation.md.
func TestBugsFit(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "simulation.md"))
	require.NoError(t, err)
	all, err := mutation.Parse("bugs.txt", bugsFile)
	require.NoError(t, err)
	require.NoError(t, mutation.Compile(root, all))
	ids := map[string]bool{}
	for _, m := range all {
		assert.False(t, ids[m.ID], "%s is there twice", m.ID)
		ids[m.ID] = true
		content, err := os.ReadFile(filepath.Join(root, m.File))
		require.NoError(t, err)
		_, err = m.Apply(string(content))
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(page), "| "+m.ID+" |"), "rows of %s in docs/simulation.md", m.ID)
	}
	assert.GreaterOrEqual(t, len(ids), 20)
}
