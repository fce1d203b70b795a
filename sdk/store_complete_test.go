package sdk_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// The store gets what the files of a killed process have, also those of a session that was
// loaded from the store, whose files are removed with it, and those of subagents.
func TestTheStoreGetsWhatAKilledProcessHasStored(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	state, cwd, home, s := t.TempDir(), t.TempDir(), t.TempDir(), &store.Memory{}
	rt, err := runtime.New(runtime.Config{StateDir: state})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Shutdown(context.Background())) })
	const answers = `{transcript: true, turns: [{when: die, steps: [{text: bye}, {exit: {signal: KILL}}]}], default: [{text: fine}]}`
	write := func(name, line string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(line + "\n")
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	// run has a session of two prompts. Before the second one, of which the process dies, lines
	// are stored that the agent does not know of.
	run := func(resume, uuid string) (id string) {
		c := sdk.NewClient(&sdk.Options{
			Runtime: rt, Backend: sdk.Claude(sdk.ClaudeConfig{}), Cwd: cwd, SessionStore: s, Resume: resume, CleanEnv: true,
			Env: map[string]string{"HOME": home, "ANTHROPIC_API_KEY": "sk-x", "CLAUDE_CODE_EXECUTABLE": program, agentEnv: answers},
			OnEvent: func(r session.EventRecord) {
				if e, ok := r.Event.(*session.MirrorFailed); ok {
					t.Error(e)
				}
			},
		})
		require.NoError(t, c.Connect(t.Context()))
		turn, err := c.Send(t.Context(), sdk.UserText("hello"))
		require.NoError(t, err)
		_, err = turn.Result(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Mirrored(t.Context()))
		root := filepath.Join(home, ".claude")
		if resume != "" {
			root = filepath.Join(state, "config", "*")
		}
		files, err := filepath.Glob(filepath.Join(root, "projects", "*", c.SessionID()+".jsonl"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		write(files[0], `{"type":"assistant","uuid":"`+uuid+`","parentUuid":null,"message":{"role":"assistant","content":[]}}`)
		write(filepath.Join(strings.TrimSuffix(files[0], ".jsonl"), "subagents", "agent-a.jsonl"), `{"type":"user","uuid":"sub `+uuid+`","parentUuid":null}`)
		turn, err = c.Send(t.Context(), sdk.UserText("die"))
		require.NoError(t, err)
		_, err = turn.Result(t.Context())
		require.Error(t, err)
		_ = c.Close(context.Background()) // of a process that was killed
		return c.SessionID()
	}
	id := run("", "one")
	key := keyOf(cwd, id)
	sub := key
	sub.Subpath = "subagents/agent-a"
	require.ElementsMatch(t, strings.Fields("user assistant assistant user"), types(t, s, key))
	require.Len(t, types(t, s, sub), 1)
	run(id, "two")
	all := types(t, s, key)
	require.ElementsMatch(t, strings.Fields("user assistant assistant user user assistant assistant user"), all, "each once")
	require.Len(t, types(t, s, sub), 2)
	left, err := filepath.Glob(filepath.Join(state, "config", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "the private directory is removed")
}
