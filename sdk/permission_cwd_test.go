package sdk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// With a policy the callback learns where a call runs, however the question reaches it.
func TestDirectoryOfAPermissionRequest(t *testing.T) {
	t.Parallel()
	for _, mode := range []sdk.PermissionMode{sdk.ModeDefault, sdk.ModeBypassPermissions} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			dir, asked := t.TempDir(), 0
			_, err := sdk.Run(t.Context(), "x", &sdk.Options{
				Cwd: dir, PermissionMode: mode, AllowDangerouslySkipPermissions: true, Policy: &sdk.Policy{},
				Backend: scripted.New(scripted.WithScript(&scripted.Script{Default: scripted.Steps{&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "x"}}, scripted.Text("end")}})),
				CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
					asked++
					assert.Equal(t, dir, r.Cwd)
					return sdk.Deny("no"), nil
				},
			})
			require.NoError(t, err)
			assert.Equal(t, 1, asked)
		})
	}
}
