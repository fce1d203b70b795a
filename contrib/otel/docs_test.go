package troupeotel_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guide returns what docs/events.md says about telemetry.
func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/events.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "\n## Telemetry\n")
	require.True(t, found)
	section, _, _ := strings.Cut(after, "\n## ")
	return section
}

// TestTheGuideShowsTheExample: the code in the guide is the program in example.
func TestTheGuideShowsTheExample(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(guide(t), -1)
	require.Len(t, blocks, 1)
	program, err := os.ReadFile("example/main.go")
	require.NoError(t, err)
	_, program, _ = bytes.Cut(program, []byte("\n")) // its first line is the comment of the command
	assert.Equal(t, string(program), blocks[0][1])
}

// TestTheGuideListsEachName: the guide has each name that is in the golden files and in the
// code, and none besides.
func TestTheGuideListsEachName(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`\b(?:troupe|gen_ai)(?:\.[a-z_]+)+`)
	listed := names.FindAllString(guide(t), -1)
	code, err := os.ReadDir(".")
	require.NoError(t, err)
	var used []string
	for _, f := range code {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			source, err := os.ReadFile(f.Name())
			require.NoError(t, err)
			used = append(used, regexp.MustCompile(`"(troupe\.[a-z_.]+)"`).FindAllString(string(source), -1)...)
		}
	}
	for i := range used {
		used[i] = strings.Trim(used[i], `"`)
	}
	require.NotEmpty(t, used)
	golden, err := os.ReadDir("testdata")
	require.NoError(t, err)
	for _, f := range golden {
		seen, err := os.ReadFile("testdata/" + f.Name())
		require.NoError(t, err)
		used = append(used, names.FindAllString(string(seen), -1)...)
	}
	for _, name := range used {
		assert.Contains(t, listed, name)
	}
	content := []string{"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
	for _, name := range listed {
		assert.Contains(t, append(content, used...), name, "the guide has a name that nothing sends")
	}
}
