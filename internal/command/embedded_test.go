package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
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
		"no such provider": {"x/y", "", nil, `no provider is called "x"`},
		"a name alone":     {"gpt-5", "", nil, "it has no provider"},
		"a path":           {"http://localhost:1/v1#m", "/x", nil, "--path"},
		"a price":          {"budget anthropic/claude-sonnet-4-5", "", map[string]string{"ANTHROPIC_API_KEY": "k"}, ""},
		"no price":         {"budget http://localhost:1/v1#m", "", nil, "the price of m is not known"},
	} {
		s := &settings{agent: "embedded", path: c.path}
		var limited bool
		if s.opts.Model, limited = strings.CutPrefix(c.model, "budget "); limited {
			s.batch.job.Budget = &fleet.Budget{USD: 1}
		}
		err := s.chooseAgent(func(n string) string { return c.env[n] })
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
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: " + answers[0] + "\n\ndata: [DONE]\n\n"))
		answers = answers[1:]
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	w := newWorld()
	assert.Equal(t, exitOK, w.run("run", "--agent", "embedded", "--model", server.URL+"/v1#qwen", "--yes", "--cwd", dir, "--env", "XDG_STATE_HOME="+t.TempDir(), "Make a file."))
	assert.Contains(t, w.out.String(), "It is made.")
	assert.Contains(t, w.err.String(), "asks qwen at "+server.URL+"/v1, with no key; budget: none")
	_, err := os.Stat(filepath.Join(dir, "made.txt"))
	require.NoError(t, err)
	require.Len(t, bodies, 2)
	assert.Contains(t, bodies[1], `{"role":"assistant","content":null,"tool_calls":[`, "an answer without an id is part of the conversation")
}

// A failure of the embedded agent says where it is, and what to do.
func TestFailuresOfTheEmbeddedAgentSayWhatToDo(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.Split(r.URL.Path, "/")[1] {
		case "wrong":
			w.WriteHeader(http.StatusUnauthorized)
		case "unknown":
			w.WriteHeader(http.StatusNotFound)
		case "toolless":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"m does not support tools","type":"api_error"}}`))
		}
	}))
	t.Cleanup(server.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		url, dir, key string
		flags         []string
		code          int
		want          string
	}{
		"wrong key":     {server.URL + "/wrong", "", "k", nil, exitResult, "; check the key in TROUPE_MODEL_KEY, which was sent to " + server.URL + "/wrong\n"},
		"no key":        {server.URL + "/wrong", "", "", nil, exitResult, "; " + server.URL + "/wrong wants a key: set TROUPE_MODEL_KEY\n"},
		"unknown model": {server.URL + "/unknown", "", "", nil, exitResult, "; check that " + server.URL + "/unknown is the URL of the API (it ends with /v1 at most servers), and that the server has the model m\n"},
		"no tools":      {server.URL + "/toolless", "", "", nil, exitResult, "(api_error): API Error: 400 m does not support tools\n"},
		"no server":     {closed.URL, "", "", nil, exitResult, "; check that a server runs at " + closed.URL + "\n"},
		"no session":    {server.URL, "", "", []string{"--resume", "00000000-0000-4000-8000-000000000000"}, exitStart, "; troupe sessions list --agent embedded lists the stored sessions\n"},
		"no directory":  {server.URL, file, "", nil, exitResult, "; set TROUPE_EMBEDDED_DIR to a directory that can be written\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.getenv = func(name string) string { return map[string]string{"TROUPE_MODEL_KEY": c.key}[name] }
			if c.dir == "" {
				c.dir = t.TempDir()
			}
			args := append([]string{"run", "--model", c.url + "#m", "--cwd", t.TempDir(), "--env", "TROUPE_EMBEDDED_DIR=" + c.dir, "--env", "CLAUDE_CODE_MAX_RETRIES=0"}, c.flags...)
			assert.Equal(t, c.code, w.run(append(args, "hi")...), w.err.String())
			assert.Contains(t, w.err.String(), c.want)
		})
	}
}

// The budget of a job ends a turn of the embedded agent, not only the tasks after it.
func TestABudgetEndsATurnOfTheEmbeddedAgent(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"Bash","arguments":"{\"command\":\"true\"}"}}]},"finish_reason":"tool_calls"}],` +
			`"usage":{"prompt_tokens":100000,"completion_tokens":1000}}` + "\n\ndata: [DONE]\n\n"))
	}))
	t.Cleanup(server.Close)
	tasks := filepath.Join(t.TempDir(), "t.jsonl")
	require.NoError(t, os.WriteFile(tasks, []byte(`{"prompt": "Work."}`), 0o600))
	w := newWorld()
	w.run("batch", "--agent", "embedded", "--model", server.URL+"/v1#claude-sonnet-4-5", "--budget-usd", "0.01", "--max-turns", "4", "--cwd", t.TempDir(), "--env", "XDG_STATE_HOME="+t.TempDir(), tasks)
	assert.Contains(t, w.err.String(), "at most $0.01")
	assert.EqualValues(t, 1, requests.Load(), w.err)
}
