package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// A workspace that has not changed since a command rejected it is not judged again, ignored
// files and a change back included. Commands of the agent may change what is elsewhere.
func TestAnUnchangedWorkspaceIsJudgedOnce(t *testing.T) {
	t.Parallel()
	nothing := func(string) error { return nil }
	file := func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) }
	for name, c := range map[string]struct {
		change func(dir string) error // before the agent answers the feedback
		use    string                 // the tool that it calls then
		link   bool                   // the workspace is a link, and is used as it is
		runs   int
	}{
		"nothing changes":               {change: nothing, runs: 1},
		"a call that reads":             {change: nothing, use: "Read", runs: 1},
		"a command":                     {change: nothing, use: "Bash", runs: 2},
		"a tool that is not known":      {change: nothing, use: "deploy", runs: 2},
		"nothing changes behind a link": {change: nothing, link: true, runs: 1},
		"a new file":                    {change: file, runs: 2},
		"a new file behind a link":      {change: file, link: true, runs: 2},
		"a mode":                        {change: func(dir string) error { return os.Chmod(filepath.Join(dir, "file"), 0o700) }, runs: 2},
		"the same text":                 {change: func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600) }, runs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, count := t.TempDir(), filepath.Join(t.TempDir(), "count")
			require.NoError(t, os.WriteFile(filepath.Join(source, "file"), []byte("text"), 0o600))
			space := &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: source}
			if c.link {
				space = &fleet.Workspace{From: filepath.Join(t.TempDir(), "link")}
				require.NoError(t, os.Symlink(source, space.From))
			}
			steps := []scripted.Step{scripted.Text("done")}
			if c.use != "" {
				steps = append([]scripted.Step{&scripted.ToolUse{Name: c.use, Input: map[string]any{}, Gate: agent.GateAllow, Result: "done"}}, steps...)
			}
			results, err := collect(t, fleet.Job{
				Options: backend(when("again", steps...)), Out: t.TempDir(), Workspace: space,
				Tasks: []fleet.Task{{ID: "a", Prompt: "go", Verify: &fleet.Verify{
					Command: fmt.Sprintf("echo ran >> %s; echo wrong; exit 1", count), Prompt: "It is {{.Output}}: again.", Rounds: 1,
				}}},
				Configure: func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
					o.Hooks = append(o.Hooks, sdk.OnUserPromptSubmit(func(_ context.Context, in *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
						if strings.Contains(in.Prompt, "again") {
							assert.NoError(t, c.change(in.Cwd))
						}
						return sdk.UserPromptSubmitOutput{}, nil
					}))
					return nil
				},
			})
			require.NoError(t, err)
			r := results["a"]
			assert.Equal(t, fleet.Rejected, r.Status, r.Error)
			require.NotNil(t, r.Verdict)
			assert.Equal(t, "wrong\n", r.Verdict.Output)
			ran, err := os.ReadFile(count)
			require.NoError(t, err)
			assert.Equal(t, c.runs, strings.Count(string(ran), "ran"))
		})
	}
}
