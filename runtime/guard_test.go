package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

func TestAGuardNeedsAStateDirectory(t *testing.T) {
	t.Parallel()
	_, err := runtime.New(runtime.Config{Guard: []string{"/bin/false"}})
	var wrong *session.ConfigError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "Guard", wrong.Option)
}

// No agent starts without the guard that was asked for.
func TestNoAgentWithoutItsGuard(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{StateDir: t.TempDir(), Guard: []string{"/bin/false"}})
	require.NoError(t, err)
	_, err = rt.Open(t.Context(), runtime.Spec{Dialect: claude.New(), Options: session.Options{PathToExecutable: "/bin/cat"}})
	var start *session.StartError
	require.ErrorAs(t, err, &start)
	assert.Contains(t, err.Error(), "it is no guard")
	require.NoError(t, rt.Shutdown(t.Context()))
}
