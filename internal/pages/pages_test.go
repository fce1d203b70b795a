package pages_test

import (
	"io/fs"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/pages"
)

// TestNothingIsFetchedFromElsewhere: no file names another host, and no markup is made of text.
func TestNothingIsFetchedFromElsewhere(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(pages.Files, "*")
	require.NoError(t, err)
	require.Greater(t, len(names), 15)
	for _, name := range names {
		text := pages.Text(name)
		assert.Empty(t, regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|javascript:`).FindAllString(text, -1), name)
		for _, address := range regexp.MustCompile(`https?://[^'"\s)]+`).FindAllString(text, -1) {
			assert.Equal(t, "http://www.w3.org/2000/svg", address, name)
		}
	}
}

// TestAScriptHasNoImports: modules as one script stand alone.
func TestAScriptHasNoImports(t *testing.T) {
	t.Parallel()
	script := pages.Script("ui.js", "charts.js", "tasks.js")
	assert.Empty(t, regexp.MustCompile(`(?m)^(import|export) .*`).FindAllString(script, -1))
	assert.Contains(t, script, "class Chart {")
	style, life := pages.Life()
	assert.Contains(t, life, "const lanes = ")
	assert.NotContains(t, life, "import ")
	assert.Contains(t, style, "--work-f:")
	assert.Contains(t, style, ".c-lanes{")
	assert.NotContains(t, style, "body{", "the page that shows it has a style of its own")
	assert.Contains(t, pages.Sprite(), `id="g-work"`)
}
