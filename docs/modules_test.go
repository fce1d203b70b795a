package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A command of go in a module that go.work does not have fails unless it has GOWORK=off.
func TestCommandsInOtherModules(t *testing.T) {
	t.Parallel()
	work, err := os.ReadFile("../go.work")
	require.NoError(t, err)
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md", "../contrib/README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			for _, at := range regexp.MustCompile(`(GOWORK=off )?go -C (?:troupe/)?([\w./-]+)`).FindAllStringSubmatch(line, -1) {
				_, err := os.Stat(filepath.Join("..", at[2], "go.mod"))
				require.NoError(t, err, "%s: %s", page, line)
				found++
				assert.True(t, at[1] != "" || strings.Contains(string(work), "./"+at[2]+"\n"), "%s: needs GOWORK=off: %s", page, line)
			}
		}
	}
	assert.GreaterOrEqual(t, found, 3)
}
