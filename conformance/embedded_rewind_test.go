//go:build conformance

package conformance_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// rewound is what a rewind says and does.
type rewound struct {
	Step   string
	Answer *protocol.RewindFilesResponse // of a dry run, if it was not an error
	Links  int64
	Error  string
	A, B   string // the content of the files, "" without a file
}

// The embedded agent rewinds files as Claude Code does; with TROUPE_FULL=1 also in later lives of
// the session.
func TestRewindsAreThoseOfClaudeCode(t *testing.T) { //nolint:tparallel // what both did is compared
	t.Parallel()
	var want, got []rewound
	t.Run("claude", func(t *testing.T) { want = playRewinds(t, false) })
	t.Run("embedded", func(t *testing.T) { got = playRewinds(t, true) })
	assert.Equal(t, want, got)
}

func playRewinds(t *testing.T, own bool) (seen []rewound) {
	r := newRig(t)
	file := func(name string) string { return filepath.Join(r.dir, name) }
	edit := func(from, to string) modelapi.Block {
		return modelapi.ToolUse("Edit", map[string]any{"file_path": file("a.txt"), "old_string": from, "new_string": to})
	}
	for name, steps := range map[string]modelapi.Scenario{
		"first":  {modelapi.Say(modelapi.ToolUse("Write", map[string]any{"file_path": file("a.txt"), "content": "one\n"})), modelapi.Say(modelapi.Text("done"))},
		"second": {modelapi.Say(edit("one", "two"), modelapi.ToolUse("Write", map[string]any{"file_path": file("b.txt"), "content": "new\n"})), modelapi.Say(modelapi.Text("done"))},
		"third":  {modelapi.Say(edit("two", "three\nfour")), modelapi.Say(modelapi.Text("done"))},
		"fourth": {modelapi.Say(modelapi.Text("done"))},
	} {
		r.model.Script(name, steps...)
	}
	o := r.options()
	if own {
		m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: r.model.URL() + "/v1"}})
		o.Backend, o.Spawner = embedded.New(embedded.Config{Model: m, Name: "claude-opus-5-5", Dir: filepath.Join(r.root, "sessions")}), nil
	}
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	o.EnableFileCheckpointing = session.Some(true)
	c := r.connect(o)
	var prompts []string
	ask := func(scenario string) {
		turn, err := c.Send(r.ctx, sdk.UserText("[[scn:"+scenario+"]]"))
		require.NoError(t, err)
		result, err := turn.Result(r.ctx)
		require.NoError(t, err)
		require.False(t, result.Failed())
		prompts = append(prompts, turn.UUID())
	}
	content := func(name string) string {
		b, err := os.ReadFile(file(name))
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		return string(b)
	}
	rewind := func(step, prompt string, dry bool) {
		w := rewound{Step: step}
		answer, err := c.RewindFiles(r.ctx, prompt, dry)
		var refused *session.ControlError
		switch {
		case errors.As(err, &refused):
			w.Error, _, _ = strings.Cut(refused.Message, ". ")
			w.Error = strings.TrimSuffix(w.Error, ".")
		case err != nil:
			require.NoError(t, err)
		case dry:
			w.Answer, answer.FilesChanged = answer, append([]string{}, answer.FilesChanged...) // not nil
			for i, f := range answer.FilesChanged {
				answer.FilesChanged[i] = filepath.Base(f)
			}
		default:
			assert.True(t, answer.CanRewind)
			w.Links = answer.SkippedLinks
		}
		w.A, w.B = content("a.txt"), content("b.txt")
		seen = append(seen, w)
	}
	for _, scenario := range []string{"first", "second", "third", "fourth"} {
		ask(scenario)
	}
	rewind("said", prompts[1], true)
	rewind("to the second", prompts[1], false)
	rewind("forward is said", prompts[3], true)
	rewind("forward", prompts[3], false)
	rewind("to the first", prompts[0], false)
	rewind("said again", prompts[0], true)
	rewind("forward to the third", prompts[2], false)
	rewind("unknown", "00000000-0000-4000-8000-000000000000", false)
	require.NoError(t, os.WriteFile(file("a.txt"), []byte("theirs\n"), 0o600))
	rewind("changed by others", prompts[3], false)
	require.NoError(t, os.Remove(file("a.txt")))
	rewind("deleted by others", prompts[2], false)
	require.NoError(t, os.WriteFile(file("other"), []byte("theirs\n"), 0o600))
	require.NoError(t, os.Remove(file("a.txt")))
	require.NoError(t, os.Symlink(file("other"), file("a.txt")))
	rewind("a link", prompts[1], false)
	require.NoError(t, os.Remove(file("a.txt")))
	if os.Getenv("TROUPE_FULL") == "" {
		require.NoError(t, c.Close(r.ctx))
		return seen
	}

	id := c.SessionID()
	for _, fork := range []bool{false, true} {
		require.NoError(t, c.Close(r.ctx))
		next := *o
		next.Resume, next.ForkSession = id, fork
		c = r.connect(&next)
		if ask("fourth"); fork {
			prompts = prompts[:4]
		}
		rewind("resumed", prompts[2], false)
		rewind("resumed, forward", prompts[3], false)
	}
	require.NoError(t, c.Close(r.ctx))
	o.EnableFileCheckpointing, o.Resume = session.Some(false), id
	c = r.connect(o)
	ask("fourth")
	rewind("it is off", prompts[2], false)
	require.NoError(t, c.Close(r.ctx))
	return seen
}
