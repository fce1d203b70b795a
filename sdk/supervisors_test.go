package sdk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// TestMistakesInSupervisorsAreConfigErrors, reported with the other mistakes in the options.
func TestMistakesInSupervisorsAreConfigErrors(t *testing.T) {
	t.Parallel()
	_, err := sdk.PreviewLaunch(&sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), MaxRestarts: -1,
		Supervisors: session.Supervisors{
			Session:  supervisor.Policy{Intensity: supervisor.Intensity{Window: -1}},
			Backoffs: map[string]supervisor.Backoff{"rooter": {}},
		},
	})
	var mistake *session.ConfigError
	require.ErrorAs(t, err, &mistake)
	for _, want := range []string{"MaxRestarts", "Supervisors.Session", "Supervisors.Backoffs[rooter]"} {
		assert.ErrorContains(t, err, want)
	}
}
