package sdk_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// lodging is where the agents of a test work.
type lodging struct {
	*testing.T
	rt     *runtime.Runtime
	shared string // the shared configuration directory
	cwd    string

	mu     sync.Mutex
	events []*session.Isolated // of the session that runs
	ended  chan struct{}       // it has ended, and the events are complete
}

func lodge(t *testing.T, cfg runtime.Config) *lodging {
	t.Helper()
	rt, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = rt.Shutdown(context.Background()) })
	h := &lodging{T: t, rt: rt, shared: t.TempDir(), cwd: "/work"}
	for name, content := range map[string]string{
		"settings.json": `{"model":"x","enabledPlugins":{"a":true}}`, "CLAUDE.md": "be kind", "agents/deep/a.md": "agent",
		".credentials.json": `{"claudeAiOauth":{}}`, ".claude.json": `{}`, "projects/-x/old.jsonl": "{}",
	} {
		path := filepath.Join(h.shared, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return h
}

// options are those of a session that asks for privacy, with a key.
func (h *lodging) options() *sdk.Options {
	said := turn(scripted.Text("hello"))
	return &sdk.Options{
		Runtime: h.rt, Isolation: session.IsolationPrivate, Cwd: h.cwd,
		Graces:  session.Graces{EOF: 20 * time.Second, Output: 20 * time.Second}, // also a busy machine runs the agent in them
		Backend: scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Turns: []scripted.Turn{said, said, said}})),
		Env:     map[string]string{"CLAUDE_CONFIG_DIR": h.shared, "ANTHROPIC_API_KEY": "k"},
	}
}

// observe notes the events of the next session.
func (h *lodging) observe(o *sdk.Options) {
	ended := make(chan struct{})
	h.events, h.ended = nil, ended
	o.OnEvent = func(r sdk.EventRecord) {
		switch e := r.Event.(type) {
		case *session.Isolated:
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, e)
		case *session.Ended:
			close(ended)
		}
	}
}

// run runs one prompt and returns the session's id and what was said of its directory.
func (h *lodging) run(o *sdk.Options) (string, *session.Isolated) {
	h.Helper()
	h.observe(o)
	result, err := sdk.Run(h.Context(), "hi", o)
	require.NoError(h, err)
	return result.SessionID, h.where()
}

// where is the event about the directory of a session that has ended.
func (h *lodging) where() *session.Isolated {
	h.Helper()
	<-h.ended
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Len(h, h.events, 1, "one event says where")
	return h.events[0]
}

func transcripts(t *testing.T, dir string) (ids []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "projects", "*", "*.jsonl"))
	require.NoError(t, err)
	for _, path := range found {
		ids = append(ids, filepath.Base(path))
	}
	return ids
}

func TestAPrivateDirectory(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	h := lodge(t, runtime.Config{TempDir: temp})
	before := files(t, h.shared)
	id, e := h.run(h.options())
	assert.Empty(t, e.Shared)
	assert.Equal(t, []string{"settings.json", "CLAUDE.md", "agents"}, e.Copied)
	assert.NotEqual(t, h.shared, e.Dir)
	assert.Equal(t, []string{id + ".jsonl"}, transcripts(t, e.Dir))
	assert.Equal(t, before, files(t, h.shared), "nothing was written to the shared one")
	assert.ElementsMatch(t, append([]string{"settings.json", "CLAUDE.md", "agents/deep/a.md"}, inProjects(t, e.Dir)...), files(t, e.Dir))
	settings, err := os.ReadFile(filepath.Join(e.Dir, "settings.json"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"model":"x"}`, string(settings))
	info, err := os.Stat(e.Dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	o := h.options()
	o.Resume = id
	again, resumed := h.run(o)
	assert.Equal(t, id, again)
	assert.Equal(t, e.Dir, resumed.Dir, "the directory outlives the session")
	assert.Empty(t, resumed.Shared)

	_, other := h.run(h.options())
	assert.NotEqual(t, e.Dir, other.Dir)

	o = h.options()
	o.PersistSession = sdk.Some(false)
	_, brief := h.run(o)
	assert.NoDirExists(t, brief.Dir, "nobody can resume it")

	o = h.options()
	o.SettingSources = sdk.None()
	_, bare := h.run(o)
	assert.Empty(t, bare.Copied)

	require.NoError(t, h.rt.Shutdown(t.Context()))
	assert.Empty(t, files(t, temp))
	assert.NoDirExists(t, e.Dir)
}

func TestWhatStaysShared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*sdk.Options)
		why    string
	}{
		"no key":    {func(o *sdk.Options) { o.Env["ANTHROPIC_API_KEY"] = "" }, "no API key"},
		"continued": {func(o *sdk.Options) { o.Continue = true }, "the session that it resumes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := lodge(t, runtime.Config{TempDir: t.TempDir()})
			o := h.options()
			c.change(o)
			id, e := h.run(o)
			assert.Equal(t, h.shared, e.Dir)
			assert.Contains(t, e.Shared, c.why)
			assert.Empty(t, e.Copied)
			assert.Contains(t, transcripts(t, h.shared), id+".jsonl")

			// A session of the shared directory is resumed there.
			o = h.options()
			o.Resume = id
			again, e := h.run(o)
			assert.Equal(t, id, again)
			assert.Equal(t, h.shared, e.Dir)
		})
	}
}

// The next processes of a session find its transcript where the first has left it.
func TestLaterProcessesUseTheSameDirectory(t *testing.T) {
	t.Parallel()
	h := lodge(t, runtime.Config{TempDir: t.TempDir()})
	o := h.options()
	h.observe(o)
	c := sdk.NewClient(o)
	require.NoError(t, c.Connect(t.Context()))
	for range 2 {
		turn, err := c.Send(t.Context(), sdk.UserText("hi"))
		require.NoError(t, err)
		result, err := turn.Result(t.Context())
		require.NoError(t, err)
		assert.False(t, result.Failed())
		require.NoError(t, c.Passivate(t.Context()))
	}
	require.NoError(t, c.Close(t.Context()))
	assert.Len(t, transcripts(t, h.where().Dir), 1)
	assert.Equal(t, []string{"old.jsonl"}, transcripts(t, h.shared))
}

func TestAStateDirectoryKeepsPrivateOnes(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	h := lodge(t, runtime.Config{StateDir: state})
	id, e := h.run(h.options())
	require.NoError(t, h.rt.Shutdown(t.Context()))
	assert.DirExists(t, e.Dir)

	next := lodge(t, runtime.Config{StateDir: state})
	o := next.options()
	o.Resume = id
	again, resumed := next.run(o)
	assert.Equal(t, id, again)
	assert.Equal(t, e.Dir, resumed.Dir)
}

func TestMistakesInIsolation(t *testing.T) {
	t.Parallel()
	h := lodge(t, runtime.Config{})
	for name, change := range map[string]func(*sdk.Options){
		"unknown":          func(o *sdk.Options) { o.Isolation = "alone" },
		"started anywhere": func(o *sdk.Options) { o.Spawner = sdk.SpawnThrough(nil); o.Backend = sdk.Claude(sdk.ClaudeConfig{}) },
		"settings that are none": func(o *sdk.Options) {
			o.Env["CLAUDE_CONFIG_DIR"] = t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "settings.json"), []byte("{"), 0o600))
		},
	} {
		o := h.options()
		change(o)
		err := sdk.NewClient(o).Connect(t.Context())
		var wrong *sdk.ConfigError
		require.ErrorAs(t, err, &wrong, name)
		assert.Equal(t, "Isolation", wrong.Option, name)
	}
}

func TestQoderIsIsolated(t *testing.T) {
	t.Parallel()
	h := lodge(t, runtime.Config{TempDir: t.TempDir()})
	o := h.options()
	o.Backend = sdk.InMemory(scripted.New(), agent.Qoder)
	o.Auth = sdk.AccessToken("t")
	o.Env = map[string]string{"QODER_CONFIG_DIR": h.shared}
	_, e := h.run(o)
	assert.Equal(t, []string{"settings.json", "agents"}, e.Copied)
	o.Auth = sdk.QoderCLIAuth()
	_, e = h.run(o)
	assert.Equal(t, h.shared, e.Dir)
	assert.Contains(t, e.Shared, "Auth")
}

// files are the files below dir, by their names there.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	return names
}

func inProjects(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, name := range files(t, filepath.Join(dir, "projects")) {
		names = append(names, "projects/"+name)
	}
	return names
}
