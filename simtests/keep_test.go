package simtests_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// cabinet is a machine on which agents store sessions, and programs that follow each
// other remove old ones.
type cabinet struct {
	*testing.T
	home, state, script string
	bin                 string
}

func newCabinet(t *testing.T) *cabinet {
	t.Helper()
	bin, err := scriptedBinary()
	require.NoError(t, err)
	c := &cabinet{T: t, home: t.TempDir(), state: t.TempDir(), bin: bin, script: filepath.Join(t.TempDir(), "script.yaml")}
	require.NoError(t, os.WriteFile(c.script, []byte("transcript: true\ndefault: [text: hello]\n"), 0o600))
	return c
}

// program is the life of one; in it f may use the runtime. What it has to remove is gone
// when program returns.
func (c *cabinet) program(keep time.Duration, f func(rt *runtime.Runtime)) {
	c.Helper()
	rt, err := runtime.New(runtime.Config{StateDir: c.state, TempDir: c.TempDir(), KeepSessions: keep})
	require.NoError(c, err)
	f(rt)
	require.NoError(c, rt.Shutdown(c.Context()))
}

func (c *cabinet) options(rt *runtime.Runtime) *sdk.Options {
	return &sdk.Options{
		Runtime: rt, Backend: sdk.Claude(sdk.ClaudeConfig{Path: c.bin}), Cwd: c.home,
		Env: map[string]string{"HOME": c.home, "TROUPE_SCRIPT": c.script, "ANTHROPIC_API_KEY": "k"}, UnsetEnv: []string{"CLAUDE_CONFIG_DIR"},
	}
}

// converse returns the id of a session that has ended.
func (c *cabinet) converse(rt *runtime.Runtime) string {
	c.Helper()
	r, err := sdk.Run(c.Context(), "hi", c.options(rt))
	require.NoError(c, err)
	return r.SessionID
}

func (c *cabinet) file(id string) string {
	c.Helper()
	found, err := filepath.Glob(filepath.Join(c.home, ".claude", "projects", "*", id+".jsonl"))
	require.NoError(c, err)
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

func (c *cabinet) age(file string, by time.Duration) {
	c.Helper()
	at := time.Now().Add(-by)
	require.NoError(c, os.Chtimes(file, at, at))
}

func TestOldSessionsAreRemoved(t *testing.T) {
	t.Parallel()
	c := newCabinet(t)
	var old, recent, forever string
	c.program(24*time.Hour, func(rt *runtime.Runtime) { old, recent = c.converse(rt), c.converse(rt) })
	c.program(0, func(rt *runtime.Runtime) { forever = c.converse(rt) })
	stranger := filepath.Join(filepath.Dir(c.file(old)), "3f2b8c1e-0000-4000-8000-000000000001.jsonl")
	require.NoError(t, os.WriteFile(stranger, []byte("{}\n"), 0o600))
	for _, dir := range []string{filepath.Join(filepath.Dir(c.file(old)), old, "subagents"), filepath.Join(c.home, ".claude", "file-history", old)} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	c.age(c.file(old), 25*time.Hour)
	c.age(c.file(recent), 23*time.Hour)
	c.age(c.file(forever), 9000*time.Hour)
	c.age(stranger, 9000*time.Hour)
	was := c.file(old)

	c.program(0, func(*runtime.Runtime) {})
	require.FileExists(t, was, "nobody asked for it")
	c.program(24*time.Hour, func(*runtime.Runtime) {
		require.Eventually(t, func() bool { return c.file(old) == "" }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool { return c.records() == 1 }, time.Minute, time.Millisecond)
	})
	require.NoDirExists(t, filepath.Join(filepath.Dir(was), old))
	require.NoDirExists(t, filepath.Join(c.home, ".claude", "file-history", old))
	require.FileExists(t, c.file(recent))
	require.FileExists(t, c.file(forever), "it was not recorded")
	require.FileExists(t, stranger, "it is another program's")
}

func (c *cabinet) records() int {
	all, err := os.ReadDir(filepath.Join(c.state, "sessions"))
	require.NoError(c, err)
	return len(all)
}

// A session that runs stays, however old its transcript is.
func TestARunningSessionIsKept(t *testing.T) {
	t.Parallel()
	c := newCabinet(t)
	c.program(time.Hour, func(rt *runtime.Runtime) {
		client := sdk.NewClient(c.options(rt))
		require.NoError(t, client.Connect(t.Context()))
		turn, err := client.Send(t.Context(), sdk.UserText("hi"))
		require.NoError(t, err)
		_, err = turn.Result(t.Context())
		require.NoError(t, err)
		id := client.SessionID()
		require.NoError(t, client.AwaitIdle(t.Context()))
		require.Eventually(t, func() bool { return c.file(id) != "" }, time.Minute, time.Millisecond)
		c.age(c.file(id), 2*time.Hour)
		other := c.converse(rt)
		c.age(c.file(other), 2*time.Hour)
		c.program(time.Hour, func(*runtime.Runtime) { // looks at the same records
			require.Eventually(t, func() bool { return c.file(other) == "" }, time.Minute, time.Millisecond)
		})
		require.FileExists(t, c.file(id), "its lease is taken")
		require.NoError(t, client.Close(t.Context()))
	})
}

func TestKeepSessionsIsChecked(t *testing.T) {
	t.Parallel()
	for _, cfg := range []runtime.Config{{KeepSessions: -1, StateDir: t.TempDir()}, {KeepSessions: time.Hour}} {
		_, err := runtime.New(cfg)
		bad, ok := errors.AsType[*session.ConfigError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "KeepSessions", bad.Option)
	}
}
