package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
)

// Each mutation still fits its file, and is about a closed row.
func TestMutationsFit(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	ledger, err := parity.Read(root)
	require.NoError(t, err)
	all, err := parse(mutationsFile)
	require.NoError(t, err)
	rows := map[string]bool{}
	for _, m := range all {
		rows[m.row] = true
		if row := ledger.Row(m.row); assert.NotNil(t, row, m.row) {
			assert.NotEmpty(t, row.Test, "%s is open", m.row)
		}
		content, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err)
		broken, err := m.apply(string(content))
		require.NoError(t, err)
		assert.NotEqual(t, string(content), broken, m.row)
	}
	assert.GreaterOrEqual(t, len(rows), 100)
}

func TestParse(t *testing.T) {
	t.Parallel()
	all, err := parse("# a remark\n\na/b/c\nf.go\n- old\n+ new\n\n\na/b/d\ng.go\n- x\n+ y\n")
	require.NoError(t, err)
	assert.Equal(t, []mutation{{"a/b/c", "f.go", "old", "new"}, {"a/b/d", "g.go", "x", "y"}}, all)
	for _, bad := range []string{"a\nf\n- o\n", "a\nf\no\n+ n\n", "a\nf\n+ n\n- o\n"} {
		_, err := parse(bad)
		assert.Error(t, err, bad)
	}
	_, err = all[0].apply("old old")
	assert.Error(t, err)
	_, err = all[0].apply("")
	assert.Error(t, err)
}

func TestCommand(t *testing.T) {
	t.Parallel()
	pkg, pattern := command("dialect/claude.TestEveryOption/option/mcpServers.sdk")
	assert.Equal(t, "dialect/claude", pkg)
	assert.Equal(t, `^TestEveryOption$/^option$/^mcpServers\.sdk$`, pattern)
}
