package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
)

// With Approvals exactly the calls wait that are denied without it, whatever the mode: the
// agent runs many of them without asking.
func TestApprovalsAllowNoMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		use    scripted.ToolUse
		change func(*sdk.Options)
		runs   bool
	}{
		"a command":              {use: scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm -r build"}}},
		"a search":               {use: scripted.ToolUse{Name: "Grep", Input: map[string]any{"pattern": "TOKEN"}}},
		"a subagent":             {use: scripted.ToolUse{Name: "Agent", Input: map[string]any{"description": "x", "prompt": "y", "subagent_type": "z"}}},
		"an edit in acceptEdits": {use: scripted.ToolUse{Name: "Write", Input: map[string]any{"file_path": "a", "content": "b"}}, change: func(o *sdk.Options) { o.PermissionMode = sdk.ModeAcceptEdits }},
		"a command in bypass": {use: scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm -r build"}}, change: func(o *sdk.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		}},
		"a command without gate":  {use: scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm -r build"}, Gate: "allow"}},
		"another allowed command": {use: scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "cat x"}}, change: func(o *sdk.Options) { o.AllowedTools = []string{"Bash(ls)"} }},
		"an allowed command":      {use: scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls"}}, change: func(o *sdk.Options) { o.AllowedTools = []string{"Bash(ls)"} }, runs: true},
		"the list of tasks":       {use: scripted.ToolUse{Name: "TodoWrite", Input: map[string]any{"todos": []any{}}}, runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := func(a *fleet.Approvals) fleet.Job {
				use := c.use
				use.Result = "it has run"
				o := backend(turn(&use, scripted.Text("end")))
				o.Cwd = t.TempDir()
				if c.change != nil {
					c.change(o)
				}
				return fleet.Job{Tasks: tasks(1), Options: o, Out: t.TempDir(), Attempts: 1, Approvals: a}
			}
			results, err := collect(t, job(nil))
			require.NoError(t, err)
			assert.Equal(t, c.runs, results["t0"].Denied == 0, "without approvals")
			h, _ := begun(t, job(&fleet.Approvals{Hold: time.Hour}))
			if c.runs {
				results, err = rest(t, h)
				require.NoError(t, err)
				assert.Zero(t, results["t0"].Denied)
				return
			}
			a := asks(t, h)
			assert.Equal(t, c.use.Name, a.Tool)
			require.NoError(t, h.Decide(t.Context(), a.ID, false, "no"))
			results, err = rest(t, h)
			require.NoError(t, err)
			assert.Equal(t, 1, results["t0"].Denied)
		})
	}
}

// Options that would answer before the person are mistakes, also those of one task.
func TestApprovalsThatOthersWouldAnswer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sdk.Options){
		"a callback": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Allow(), nil
			}
		},
		"a tool":    func(o *sdk.Options) { o.PermissionPromptToolName = "mcp__x__y" },
		"the agent": func(o *sdk.Options) { o.Policy = &sdk.Policy{Default: policy.Agent} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := backend(turn(scripted.Text("end")))
			change(o)
			job := fleet.Job{Tasks: tasks(1), Options: o, Approvals: &fleet.Approvals{}}
			require.ErrorContains(t, job.Validate(), "Approvals: contradicts")
			job.Options = backend(turn(scripted.Text("end")))
			job.Configure = func(_ context.Context, _ *fleet.Task, o *sdk.Options) error { change(o); return nil }
			results, err := collect(t, job)
			require.NoError(t, err)
			assert.Equal(t, fleet.Invalid, results["t0"].Status)
			assert.Contains(t, results["t0"].Error, "Approvals: contradicts")
		})
	}
}
