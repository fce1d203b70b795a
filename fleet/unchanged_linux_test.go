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

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// A workspace that has not changed since a command rejected it is not judged again, ignored
// files and a change back included.
func TestAnUnchangedWorkspaceIsJudgedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(dir string) error // before the agent answers the feedback
		runs   int
	}{
		"nothing changes": {func(string) error { return nil }, 1},
		"a new file":      {func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) }, 2},
		"a mode":          {func(dir string) error { return os.Chmod(filepath.Join(dir, "file"), 0o700) }, 2},
		"the same text":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, count := t.TempDir(), filepath.Join(t.TempDir(), "count")
			require.NoError(t, os.WriteFile(filepath.Join(source, "file"), []byte("text"), 0o600))
			results, err := collect(t, fleet.Job{
				Options: backend(), Out: t.TempDir(), Workspace: &fleet.Workspace{Kind: "copy", From: source},
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
