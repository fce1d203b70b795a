package command

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestModelsOfTheEmbeddedAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model, path string
		env         map[string]string
		want        string // "": it works
	}{
		"a local server":   {"http://localhost:1/v1#m", "", nil, ""},
		"by variable":      {"", "", map[string]string{"TROUPE_MODEL": "http://localhost:1/v1#m"}, ""},
		"a key":            {"anthropic/claude-x", "", map[string]string{"ANTHROPIC_API_KEY": "k"}, ""},
		"another key":      {"anthropic/claude-x", "", map[string]string{"TROUPE_MODEL_KEY": "k"}, ""},
		"no key":           {"anthropic/claude-x", "", nil, "set ANTHROPIC_API_KEY"},
		"no model":         {"", "", nil, "TROUPE_MODEL"},
		"no such provider": {"x/y", "", nil, `no provider is called "x"`},
		"a name alone":     {"gpt-5", "", nil, "it has no provider"},
		"a path":           {"http://localhost:1/v1#m", "/x", nil, "--path"},
	} {
		s := &settings{agent: "embedded", path: c.path}
		s.opts.Model = c.model
		_, err := s.chooseAgent(func(n string) string { return c.env[n] })
		if c.want != "" {
			require.ErrorContains(t, err, c.want, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, "embedded", s.opts.Backend.AgentName(), name)
		assert.NotContains(t, s.opts.Model, "/", name)
	}
}

func TestRunWithTheEmbeddedAgent(t *testing.T) {
	t.Parallel()
	answers := []string{
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"Write","arguments":"{\"file_path\":\"made.txt\",\"content\":\"x\"}"}}]},"finish_reason":"tool_calls"}]}`,
		`{"choices":[{"delta":{"content":"It is made."},"finish_reason":"stop"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: " + answers[0] + "\n\ndata: [DONE]\n\n"))
		answers = answers[1:]
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	w := newWorld()
	assert.Equal(t, exitOK, w.run("run", "--agent", "embedded", "--model", server.URL+"/v1#qwen", "--yes", "--cwd", dir, "--env", "XDG_STATE_HOME="+t.TempDir(), "Make a file."))
	assert.Contains(t, w.out.String(), "It is made.")
	assert.Contains(t, w.err.String(), "asks qwen at "+server.URL+"/v1; no limit of money")
	_, err := os.Stat(filepath.Join(dir, "made.txt"))
	require.NoError(t, err)
}
