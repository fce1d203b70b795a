package command

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The guide to the command and the help say the same about exit codes.
func TestGuideListsTheExitCodes(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/command.md")
	require.NoError(t, err)
	codes := regexp.MustCompile(`(?m)^ +([0-9]) +(.+)$`).FindAllStringSubmatch(exitCodes, -1)
	assert.Len(t, codes, 8)
	plain := regexp.MustCompile("`").ReplaceAllString(string(guide), "")
	for _, c := range codes {
		assert.Contains(t, plain, "| "+c[1]+" | "+c[2]+" |\n")
	}
}

// What the README tells a new user to run, works, and says what it is.
func TestReadmeCommand(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	prompt := regexp.MustCompile(`go run \./cmd/troupe run "([^"]+)"`).FindSubmatch(readme)
	require.NotNil(t, prompt)
	w := newUser(t, nil)
	assert.Equal(t, exitOK, w.run("run", string(prompt[1]), "-e", "HOME="+t.TempDir()))
	assert.Contains(t, w.err.String(), "This is a demonstration: ")
	assert.Contains(t, w.err.String(), "→ Bash")
	assert.Contains(t, w.err.String(), "✗ Exit code 1", "it fails before it is repaired")
	assert.NotContains(t, w.err.String(), "denied")
	assert.Contains(t, w.out.String(), "The check passes")
}
