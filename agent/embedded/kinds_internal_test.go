package embedded

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file names the tools of a type in each form that Claude Code takes.
func TestToolsInTheFileOfASubagent(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]bool{ // whether it has Read, and Bash
		"model: inherit":    {true, true},
		`tools: "*"`:        {true, true},
		"tools: ['*']":      {true, true},
		"tools: Read, Grep": {true, false},
		"tools: [Read]":     {true, false},
		"tools: []":         {false, false},
	} {
		k := parseKind("---\nname: one\ndescription: One.\n" + line + "\n---\nDo it.\n")
		require.NotNil(t, k, line)
		assert.Equal(t, want, [2]bool{k.has("Read"), k.has("Bash")}, line)
	}
}
