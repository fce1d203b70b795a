package sdk_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// spare is a spare whose agent answers claims like this.
func spare(t *testing.T, answer string) (*sdk.Client, chan json.RawMessage) {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	p := &prompter{
		Agent: scripted.New(), like: agent.Claude, subtype: "claim_session",
		answer: json.RawMessage(answer), asked: make(chan json.RawMessage, 1),
	}
	c, err := sdk.Prewarm(t.Context(), &sdk.Options{Backend: p, Runtime: rt})
	require.NoError(t, err)
	return c, p.asked
}

func TestClaim(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/prewarm")
	here, err := filepath.Abs("here")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		claim sdk.Claim
		want  string
	}{
		"a relative directory": {sdk.Claim{Cwd: "here"}, `{"subtype":"claim_session","cwd":"` + here + `","include_initialize":true}`},
		"the home":             {sdk.Claim{Cwd: "~/x"}, `{"subtype":"claim_session","cwd":"~/x","include_initialize":true}`},
		"everything": {sdk.Claim{
			Cwd: "/w", Env: map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "t"}, AdditionalDirectories: []string{"/d"},
			PermissionMode: sdk.ModePlan, AppendSystemPrompt: "a", Title: "t",
			Agents:         map[string]session.AgentDefinition{"helper": {Description: "d", Prompt: "p <&>"}},
			WorkspaceTrust: &protocol.WorkspaceTrust{Accepted: true, Directory: "/w"},
			Settings:       json.RawMessage(`{"effortLevel":"high"}`),
		}, `{"subtype":"claim_session","cwd":"/w","env":{"CLAUDE_CODE_OAUTH_TOKEN":"t"},"additional_directories":["/d"],
			"permission_mode":"plan","append_system_prompt":"a","title":"t","agents":{"helper":{"description":"d","prompt":"p <&>"}},
			"include_initialize":true,"workspace_trust":{"accepted":true,"directory":"/w"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, asked := spare(t, `{"status":"ok","cwd":"/w","session_id":"s","parked_ms":7,"sdk_mcp_settled":true,"initialize":{"commands":[]}}`)
			got, err := c.Claim(t.Context(), tc.claim)
			require.NoError(t, err)
			assert.Equal(t, &protocol.ClaimSessionResponse{
				Status: "ok", Cwd: "/w", SessionID: "s", ParkedMS: 7, SDKMCPSettled: true, Initialize: json.RawMessage(`{"commands":[]}`),
			}, got)
			assert.JSONEq(t, tc.want, string(<-asked))
			require.NoError(t, c.Close(t.Context()))
		})
	}
}

func TestAClaimNeedsADirectory(t *testing.T) {
	t.Parallel()
	c, asked := spare(t, `{}`)
	_, err := c.Claim(t.Context(), sdk.Claim{})
	var wrong *sdk.ConfigError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "Claim.Cwd", wrong.Option)
	assert.Empty(t, asked, "nothing was sent")
	require.NoError(t, c.Close(t.Context()))
}

// All options that a spare cannot have are reported at once.
func TestPrewarmChecksItsOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts sdk.Options
		want []string
	}{
		"a session": {sdk.Options{Backend: scripted.New(), Resume: "s", ForkSession: true, Continue: true}, []string{"Resume", "Continue", "ForkSession"}},
		"rules":     {sdk.Options{Backend: scripted.New(), Policy: &policy.Rules{Deny: []string{"Bash"}}}, []string{"Policy.Cwd"}},
		"Qoder":     {sdk.Options{Backend: sdk.InMemory(scripted.New(), agent.Qoder)}, []string{"Backend"}},
		"Spawner":   {sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), Spawner: nowhere{}}, []string{"Cwd"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sdk.Prewarm(t.Context(), &tc.opts)
			for _, option := range tc.want {
				assert.ErrorContains(t, err, "option "+option)
			}
			assert.Nil(t, tc.opts.ExtraArgs, "the caller's options stay the caller's")
		})
	}
}

type nowhere struct{ session.Spawner }

func TestASpareThatDoesNotStartLeavesNoDirectory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	_, err := sdk.Prewarm(t.Context(), &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{Path: filepath.Join(home, "missing")}), CleanEnv: true, Env: map[string]string{"HOME": home},
	})
	var start *sdk.StartError
	require.ErrorAs(t, err, &start)
	left, err := os.ReadDir(filepath.Join(home, ".claude", "spares"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAClosedSpareLeavesNoDirectory(t *testing.T) {
	t.Parallel()
	if goruntime.GOOS == "windows" {
		t.Skip("it runs a POSIX shell")
	}
	home := t.TempDir()
	path := filepath.Join(home, "agent")
	writeProgram(t, path, `#!/bin/sh
read line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
echo '{"type":"control_response","response":{"subtype":"success","request_id":"'$id'","response":{}}}'
read line
`)
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for range rounds { // it is also removed when the session ends by itself
		c, err := sdk.Prewarm(t.Context(), &sdk.Options{
			Runtime: rt, Backend: sdk.Claude(sdk.ClaudeConfig{Path: path}), Env: map[string]string{"CLAUDE_CONFIG_DIR": home},
			Graces: session.Graces{EOF: time.Minute}, CloseTimeout: time.Minute,
		})
		require.NoError(t, err)
		parked, err := os.ReadDir(filepath.Join(home, "spares"))
		require.NoError(t, err)
		require.Len(t, parked, 1)
		require.NoError(t, c.Close(t.Context()))
		parked, err = os.ReadDir(filepath.Join(home, "spares"))
		require.NoError(t, err)
		require.Empty(t, parked)
	}
}
