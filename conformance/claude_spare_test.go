//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// spare parks an agent outside of the working directory.
func (r *rig) spare(change func(*sdk.Options)) *sdk.Client {
	r.t.Helper()
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	o.Cwd = filepath.Join(r.root, "parked")
	require.NoError(r.t, os.MkdirAll(o.Cwd, 0o700))
	if change != nil {
		change(o)
	}
	c, err := sdk.Prewarm(r.ctx, o)
	require.NoError(r.t, err)
	return c
}

func TestASpareBecomesASession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	started := make(chan string, 4)
	c := r.spare(func(o *sdk.Options) {
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			started <- in.Cwd
			return sdk.PreToolUseOutput{}, nil
		}, sdk.Match("Bash"))}
	})
	said, err := c.Initialized()
	require.NoError(t, err)
	assert.NotEmpty(t, said.Commands, "a spare is initialized")
	claimed, err := c.Claim(r.ctx, sdk.Claim{
		Cwd: r.dir, PermissionMode: sdk.ModeAcceptEdits, Title: "claimed", AppendSystemPrompt: "Be brief.",
		Agents:   map[string]session.AgentDefinition{"helper": {Description: "helps", Prompt: "Help."}},
		Settings: json.RawMessage(`{"effortLevel":"high"}`),
	})
	require.NoError(t, err)
	resolved, err := filepath.EvalSymlinks(r.dir)
	require.NoError(t, err)
	assert.Equal(t, "ok", claimed.Status)
	assert.Equal(t, resolved, claimed.Cwd)
	assert.NotEmpty(t, claimed.SessionID)
	assert.Contains(t, string(claimed.Initialize), `"helper"`, "the answer tells of the session")

	all, result := r.ask(c, r.touch("made"))
	assert.False(t, result.Failed())
	assert.FileExists(t, r.at("made"), "the tool ran in the session's directory")
	assert.Len(t, started, 1, "the hooks of the spare are those of the session")
	assert.Equal(t, claimed.SessionID, c.SessionID())
	for _, m := range all {
		if init, ok := m.(*sdk.InitMessage); ok {
			assert.Equal(t, sdk.ModeAcceptEdits, init.PermissionMode)
			assert.Equal(t, resolved, init.Cwd)
		}
	}
	_, err = c.Claim(r.ctx, sdk.Claim{Cwd: r.dir})
	refusedAs(t, err, "not_a_spare")
	r.close(c)
}

func TestARefusedClaimLeavesTheSpareParked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.spare(nil)
	for reason, claim := range map[string]sdk.Claim{
		"cwd_not_found":         {Cwd: r.at("missing")},
		"env_key_not_claimable": {Cwd: r.dir, Env: map[string]string{"ANTHROPIC_BASE_URL": "http://localhost:1"}},
		"permission_mode":       {Cwd: r.dir, PermissionMode: sdk.ModeBypassPermissions},
	} {
		_, err := c.Claim(r.ctx, claim)
		refusedAs(t, err, reason)
	}
	_, err := c.Claim(r.ctx, sdk.Claim{Cwd: r.dir})
	require.NoError(t, err, "after all that it can be claimed")
	r.ask(c, r.touch("made"))
	assert.FileExists(t, r.at("made"))
	r.close(c)
}

func TestNothingIsSentBeforeTheClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.spare(nil)
	_, result := r.ask(c, r.touch("made"))
	assert.True(t, result.Failed())
	assert.Contains(t, result.Text(), "not_claimed")
	_, err := c.Claim(r.ctx, sdk.Claim{Cwd: r.dir})
	require.NoError(t, err)
	assert.NoFileExists(t, r.at("made"), "it is not made up for")
	r.close(c)
}

func TestAnOlderAgentIsNoSpare(t *testing.T) {
	t.Parallel()
	r := releases()[1].rig(t)
	_, err := sdk.Prewarm(r.ctx, r.options())
	var exit *sdk.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Contains(t, exit.StderrTail, "--await-claim")
}

func TestASpareThatIsNotWanted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close(r.spare(nil))
}

func TestASessionIsNoSpare(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	_, err := c.Claim(r.ctx, sdk.Claim{Cwd: r.dir})
	refusedAs(t, err, "not_a_spare")
	r.close(c)
}

// TestASpareIsParkedBelowTheAgentsDirectory is without a Spawner, as users have it.
func TestASpareIsParkedBelowTheAgentsDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.Spawner, o.Cwd = nil, ""
	c, err := sdk.Prewarm(r.ctx, o)
	require.NoError(t, err)
	spares := filepath.Join(r.home, ".claude", "spares")
	if dir := o.Env["CLAUDE_CONFIG_DIR"]; dir != "" {
		spares = filepath.Join(dir, "spares")
	}
	parked, err := os.ReadDir(spares)
	require.NoError(t, err)
	require.Len(t, parked, 1)
	r.close(c)
	parked, err = os.ReadDir(spares)
	require.NoError(t, err)
	assert.Empty(t, parked, "the directory goes with the spare")
}

func refusedAs(t *testing.T, err error, reason string) {
	t.Helper()
	var refused *sdk.ControlError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, refused.Error(), reason)
}
