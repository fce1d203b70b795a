package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/session"
)

const (
	userLine   = `{"type":"user","uuid":"u1","message":{"role":"user","content":"go"}}` + "\n"
	callLine   = `{"type":"assistant","uuid":"a1","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}` + "\n"
	resultLine = `{"type":"user","uuid":"r1","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}` + "\n"
	queuedLine = `{"type":"attachment","uuid":"x1","attachment":{"type":"queued_command","source_uuid":"u2"}}` + "\n"
)

// TestHistory reads transcripts in every state.
func TestHistory(t *testing.T) {
	t.Parallel()
	wanted := machine.Wanted{
		Messages: []string{"u1", "u2"}, Shown: []string{"a1", "r1", "a2"}, Calls: []machine.ToolCall{{ID: "t1"}, {ID: "t2"}},
	}
	known := machine.History{Known: true}
	missing := machine.History{Known: true, Missing: true}
	all := machine.History{Known: true, Messages: []string{"u1"}, Shown: []string{"a1", "r1"}, Calls: []string{"t1"}, Results: []string{"t1"}}
	called := machine.History{Known: true, Messages: []string{"u1"}, Shown: []string{"a1"}, Calls: []string{"t1"}}
	for name, c := range map[string]struct {
		make func(t *testing.T, config string) // what is in the configuration directory
		want machine.History
	}{
		"all of it":              {transcriptOf(userLine + callLine + resultLine), all},
		"no last newline":        {transcriptOf(userLine + callLine + strings.TrimSpace(resultLine)), all},
		"torn":                   {transcriptOf(userLine + callLine + resultLine[:30]), called},
		"garbage between":        {transcriptOf(userLine + "\x00\x00\n{]\n\n" + callLine + "null\n[1]\n"), called},
		"in the turn of another": {transcriptOf(queuedLine), machine.History{Known: true, Messages: []string{"u2"}}},
		"empty":                  {transcriptOf(""), known},
		"of another session":     {inFolder("other.jsonl", userLine), machine.History{}},
		"no directory":           {func(*testing.T, string) {}, machine.History{}},
		"never stored":           {liveOf(`{"pid":1,"sessionId":"s"}`), missing},
		"another lives":          {liveOf(`{"pid":1,"sessionId":"z"}`), machine.History{}},
		"who lives is not clear": {liveOf(`{`), machine.History{}},
		"a directory": {func(t *testing.T, config string) {
			t.Helper()
			require.NoError(t, os.MkdirAll(filepath.Join(config, "projects", "-w", "s.jsonl"), 0o700))
		}, machine.History{}},
		"huge, its end": {func(t *testing.T, config string) {
			t.Helper()
			transcriptOf("x"+userLine)(t, config)
			path := filepath.Join(config, "projects", "-w", "s.jsonl")
			require.NoError(t, os.Truncate(path, historyTail+1<<20)) // a hole
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString("\n" + callLine + resultLine)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}, machine.History{Known: true, Shown: []string{"a1", "r1"}, Calls: []string{"t1"}, Results: []string{"t1"}}},
		"huge, of others": {func(t *testing.T, config string) {
			t.Helper()
			transcriptOf(userLine+callLine)(t, config)
			require.NoError(t, os.Truncate(filepath.Join(config, "projects", "-w", "s.jsonl"), historyTail+1<<20))
		}, machine.History{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := t.TempDir()
			c.make(t, config)
			s := &Session{dialect: claude.New()}
			in := &dialect.Input{Options: session.Options{Env: map[string]string{"CLAUDE_CONFIG_DIR": config}, CleanEnv: true}}
			read := s.history(&Spec{Dialect: s.dialect, Options: session.Options{MaxRestarts: 1}})
			require.NotNil(t, read)
			assert.Equal(t, c.want, read(t.Context(), in, "s", wanted))
			assert.Equal(t, machine.History{}, read(t.Context(), in, "../s", wanted))
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if c.want.Known && !c.want.Missing && name != "empty" {
				assert.Equal(t, machine.History{}, read(ended, in, "s", wanted))
			}
		})
	}
}

// TestNobodyReads where the agent may run elsewhere, or what it stores was never observed.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	local := session.Options{MaxRestarts: 1}
	s, other := &Session{dialect: claude.New()}, &Session{dialect: qoder.New()}
	assert.Nil(t, other.history(&Spec{Options: local}))
	assert.Nil(t, s.history(&Spec{}), "nothing follows a death")
	far := local
	far.Spawner = transport.InMemory{}
	assert.Nil(t, s.history(&Spec{Options: far}))
	assert.NotNil(t, s.history(&Spec{Options: local}))
}

// inFolder makes a file in the folder of a directory.
func inFolder(name, content string) func(*testing.T, string) {
	return func(t *testing.T, config string) {
		t.Helper()
		dir := filepath.Join(config, "projects", "-w")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(config, "projects", "a file"), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

func transcriptOf(content string) func(*testing.T, string) { return inFolder("s.jsonl", content) }

func liveOf(content string) func(*testing.T, string) {
	return func(t *testing.T, config string) {
		t.Helper()
		require.NoError(t, os.Mkdir(filepath.Join(config, "sessions"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(config, "sessions", "1.json"), []byte(content), 0o600))
	}
}
