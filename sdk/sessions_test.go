package sdk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

const restID = "5e550000-0000-4000-8000-000000000001"

// homeWithSession makes an agent's home with one session of two messages.
func homeWithSession(t *testing.T, folder, dir string) string {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, folder, "projects", transcript.FolderName(transcript.Claude, dir))
	require.NoError(t, os.MkdirAll(path, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, restID+".jsonl"), []byte(
		`{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","parentUuid":null,"isSidechain":false,"message":{"role":"user","content":"hello"},"sessionId":"`+restID+`","cwd":"`+dir+`","timestamp":"2026-11-22T00:00:00.000Z"}`+"\n"+
			`{"type":"assistant","uuid":"00000000-0000-4000-8000-000000000002","parentUuid":"00000000-0000-4000-8000-000000000001","isSidechain":false,"message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hi"}]},"sessionId":"`+restID+`","timestamp":"2026-11-22T00:00:01.000Z"}`), 0o600))
	return home
}

// TestSessionsAtRest lists, reads, renames, forks and deletes a session through package
// sdk, for both agents.
func TestSessionsAtRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, folder string
		backend      sdk.Backend
	}{
		{"claude", ".claude", sdk.Claude(sdk.ClaudeConfig{})},
		{"nil", ".claude", nil},
		{"qoder", ".qoder", sdk.Qoder(sdk.QoderConfig{})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "claude" {
				parity.Covers(t, "claude/function/listSessions", "claude/function/getSessionMessages", "claude/function/forkSession",
					"claude/function/renameSession", "claude/function/deleteSession")
			}
			home := homeWithSession(t, c.folder, "/w/proj")
			s, err := sdk.Sessions(&sdk.Options{Backend: c.backend, Cwd: "/w/proj", UnsetEnv: []string{"CLAUDE_CONFIG_DIR", "QODER_CONFIG_DIR"}, Env: map[string]string{"HOME": home}})
			require.NoError(t, err)
			ctx := t.Context()
			list, err := s.List(ctx, transcript.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Equal(t, "hello", list[0].Summary)

			var texts []string
			for m, err := range s.Messages(ctx, restID, transcript.ShownOptions{}) {
				require.NoError(t, err)
				texts = append(texts, m.Type+": "+m.Text())
			}
			assert.Equal(t, []string{"user: hello", "assistant: hi"}, texts)

			require.NoError(t, s.Rename(ctx, restID, "greeting"))
			fork, err := s.Fork(ctx, restID, transcript.ForkOptions{UpTo: "00000000-0000-4000-8000-000000000001"})
			require.NoError(t, err)
			info, err := s.Info(ctx, fork)
			require.NoError(t, err)
			assert.Equal(t, "greeting (fork)", info.Summary)

			require.NoError(t, s.Delete(ctx, restID))
			_, err = s.Info(ctx, restID)
			require.ErrorIs(t, err, os.ErrNotExist)
			require.Error(t, s.Rename(ctx, restID, "again"), "an unknown session cannot be renamed")
		})
	}
}

func TestSessionsOfNoAgent(t *testing.T) {
	t.Parallel()
	var config *sdk.ConfigError
	for _, b := range []sdk.Backend{scripted.New(), acpclient.Backend("agent")} {
		_, err := sdk.Sessions(&sdk.Options{Backend: b})
		require.ErrorAs(t, err, &config)
		assert.Equal(t, "Backend", config.Option)
	}
	_, err := sdk.Sessions(&sdk.Options{CleanEnv: true})
	require.ErrorAs(t, err, &config)
	assert.ErrorContains(t, err, "CLAUDE_CONFIG_DIR")
}
