package recorded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// remembering is an agent whose model runs a command in its first answer, and then says how many
// messages it was given.
func remembering(cwd, storeDir, home string) *sdk.Options {
	m := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		if n := len(r.Messages); n > 1 {
			return modeltest.Say(modeltest.Text(fmt.Sprintf("I was given %d messages.", n)))
		}
		return modeltest.Say(modeltest.Text("I look."), modeltest.Call("Read", map[string]any{"file_path": "notes.txt"}))
	}}
	return &sdk.Options{
		Backend: embedded.New(embedded.Config{Model: m.Anthropic(model.Config{}), Name: "claude-sonnet-4-5", Dir: home}),
		Cwd:     cwd, SessionStore: store.NewDir(storeDir), AllowedTools: []string{"Read"},
	}
}

func recordStore(t *testing.T, to string) {
	t.Helper()
	cwd, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(cwd, "notes.txt"), []byte("buy bread\n"), 0o600))
	result, err := sdk.Run(t.Context(), "What do the notes say?", remembering(cwd, dir, t.TempDir()))
	require.NoError(t, err)
	require.Equal(t, "I was given 3 messages.", result.Result)
	copyDir(t, filepath.Join(dir, transcript.FolderName(transcript.Claude, cwd)), filepath.Join(to, "project"))
}

// A session in a store of an earlier release is listed, read and continued by this one.
func TestAStoredSession(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		t.Run(filepath.Base(release), func(t *testing.T) {
			t.Parallel()
			cwd, dir := t.TempDir(), t.TempDir()
			copyDir(t, filepath.Join(release, "store", "project"), filepath.Join(dir, transcript.FolderName(transcript.Claude, cwd)))
			sessions := &transcript.Sessions{Vendor: transcript.Claude, Store: store.NewDir(dir), Dir: cwd}
			all, err := sessions.List(t.Context(), transcript.ListOptions{})
			require.NoError(t, err)
			require.Len(t, all, 1)
			var said []string
			for m, err := range sessions.Messages(t.Context(), all[0].SessionID, transcript.ShownOptions{}) {
				require.NoError(t, err)
				said = append(said, string(m.Message))
			}
			require.Len(t, said, 5)
			assert.Contains(t, said[0], "What do the notes say?")
			assert.Contains(t, said[3], "buy bread")
			assert.Contains(t, said[4], "I was given 3 messages.")

			o := remembering(cwd, dir, t.TempDir())
			o.Resume = all[0].SessionID
			result, err := sdk.Run(t.Context(), "And now?", o)
			require.NoError(t, err)
			assert.Equal(t, "I was given 5 messages.", result.Result)
		})
	}
}

// A cassette of an earlier release is played to a host of this one, which does what the
// host of the recording did.
func TestACassette(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		t.Run(filepath.Base(release), func(t *testing.T) {
			t.Parallel()
			cassette, err := simtests.LoadCassette(filepath.Join(release, "cassette.jsonl"))
			require.NoError(t, err)
			dir := t.TempDir()
			simtests.Explore(t, simtests.Config{Seeds: 1, DoNotKeep: true}, func(w *simtests.World) {
				var asked []string
				c := w.OpenCassette(shop(w, dir, &asked), cassette)
				_, result, err := w.Ask(c, "refund order 7 [[scn:shop]]")
				require.NoError(w, err)
				require.Equal(w, "Refunded.", sdk.TextOf(result))
				require.Equal(w, []string{"Bash", "mcp__shop__refund"}, asked)
				require.NoError(w, c.Close(w.Context()))
			})
		})
	}
}

// shop are the options of the host in the cassette: a hook, a permission and a tool.
func shop(t require.TestingT, dir string, asked *[]string) *sdk.Options {
	server, err := sdk.NewMCPServer("shop", "", sdk.NewTool("refund", "Refunds an order.", func(context.Context, struct {
		Order int `json:"order"`
	}) (*sdk.ToolResult, error) {
		return sdk.Text("refunded"), nil
	}))
	require.NoError(t, err)
	return &sdk.Options{
		SDKMCPServers: []*sdk.MCPServer{server}, Cwd: dir, AdditionalDirectories: []string{dir}, SettingSources: sdk.None(),
		Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{}, nil
		}, sdk.Match("Bash"))},
		CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			if *asked = append(*asked, r.ToolName); r.ToolName == "Bash" {
				return sdk.Deny("not now"), nil
			}
			return sdk.Allow(), nil
		},
	}
}
