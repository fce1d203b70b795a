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

// Each bug still fits its file, and has its row in the table of docs/simulation.md.
func TestBugsFit(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "simulation.md"))
	require.NoError(t, err)
	all, err := mutation.Parse("bugs.txt", bugsFile)
	require.NoError(t, err)
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

func TestFound(t *testing.T) {
	t.Parallel()
	for out, want := range map[string][2]string{
		"    reach_test.go:12: answered-once: agent#1 got 2 answers\n\n seed 6, after 7 histories, in 8 steps": {"7", "answered-once"},
		"    fleet_test.go:9: one-cut: \"4 -> 2: x\"\n\n seed 3, after 4 histories, in 9 steps":                {"4", "one-cut"},
		"simtests: TestPlantedBugs, seed 9, token sim1-9\nno step in 5s":                                       {"10", "watchdog"},
		"panic: oh\n\ngoroutine 213 [running, synctest bubble 11]:\n":                                          {"11", "panic"},
		"signal: killed": {"?", "the end of the test's process"},
	} {
		took, by := found(out)
		assert.Equal(t, want, [2]string{took, by}, out)
	}
}
