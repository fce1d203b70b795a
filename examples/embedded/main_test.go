package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/sdk"
)

func none(string) string { return "" }

// play runs the example, with its files below a directory of the test.
func play(t *testing.T, opts *sdk.Options) (string, error) {
	t.Helper()
	opts.Env = map[string]string{"TMPDIR": t.TempDir(), "XDG_STATE_HOME": t.TempDir()}
	var out strings.Builder
	err := run(t.Context(), opts, "Run the tests, and fix what fails.", &out)
	return out.String(), err
}

func TestTheDemonstration(t *testing.T) {
	t.Parallel()
	opts, err := options("", ".", embedded.Confine{}, none)
	require.NoError(t, err)
	said, err := play(t, opts)
	require.NoError(t, err)
	assert.Contains(t, said, "I am Troupe's demonstration")
	assert.Contains(t, said, `  -> Edit {"file_path":"words.sh","new_string":"echo $#"`)
	assert.Contains(t, said, "The check passes: 3 cases.")
	assert.True(t, strings.HasSuffix(said, "troupe-demo: 0 tokens in, 0 out, $0.0000\n"), said)
}

// A local server speaks chat completions, and its model edits a file.
func TestALocalServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("helo\n"), 0o600))
	call := func(name, arguments string) string {
		return `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"` + name + `","function":{"name":"` + name + `","arguments":"` + strings.ReplaceAll(arguments, `"`, `\"`) + `"}}]},"finish_reason":"tool_calls"}]}`
	}
	answers := []string{
		call("Read", `{"file_path":"hello.txt"}`),
		call("Edit", `{"file_path":"hello.txt","old_string":"helo","new_string":"hello"}`),
		call("Bash", `{"command":"make install"}`),
		`{"choices":[{"delta":{"content":"It was a typo."},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":7}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: " + answers[0] + "\n\ndata: [DONE]\n\n"))
		answers = answers[1:]
	}))
	t.Cleanup(server.Close)
	opts, err := options(server.URL+"/v1#qwen", dir, embedded.Confine{}, none)
	require.NoError(t, err)
	said, err := play(t, opts)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "hello.txt"))
	require.NoError(t, err)
	assert.Equal(t, "hello\n", string(text))
	assert.Contains(t, said, "It was a typo.\nqwen: 100 tokens in, 7 out, $0.0000\n")
	assert.Contains(t, said, `  -> Bash {"command":"make install"}`)
	assert.NotContains(t, said, "make: ", "no rule allows it, and nobody is asked")
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	_, err := options("qwen", ".", embedded.Confine{}, none)
	require.ErrorContains(t, err, "it has no provider")
	opts, err := options("anthropic/claude-x", t.TempDir(), embedded.Confine{}, none)
	require.NoError(t, err)
	_, err = play(t, opts)
	require.ErrorContains(t, err, "ANTHROPIC_API_KEY is not set")
}
