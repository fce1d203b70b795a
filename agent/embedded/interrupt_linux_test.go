package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

// gone reports whether the process whose id a command has written is gone.
func gone(t *testing.T, file string) bool {
	t.Helper()
	pid, err := os.ReadFile(file)
	require.NoError(t, err)
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ") // its new parent may not have asked yet
}

func TestNothingOutlivesAnInterrupt(t *testing.T) {
	t.Parallel()
	_, o := started(t,
		modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "(setsid sleep 100 & echo $! > child); echo $$ > shell; sleep 100"})),
		modelapi.Say(modelapi.Text("never")))
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := connect(t, o)
	require.NoError(t, err)
	turn, err := c.Send(ctx, sdk.UserText(mine))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(filepath.Join(o.Cwd, "shell"))
		return len(b) > 0
	}, time.Minute, time.Millisecond)
	_, err = c.Interrupt(ctx)
	require.NoError(t, err)
	r, err := turn.Result(ctx)
	require.NoError(t, err)
	assert.True(t, r.IsError)
	assert.True(t, gone(t, filepath.Join(o.Cwd, "shell")), "the shell is gone when the result is there")
	assert.True(t, gone(t, filepath.Join(o.Cwd, "child")), "what left the group is gone, too")
	require.NoError(t, c.Close(ctx))
}
