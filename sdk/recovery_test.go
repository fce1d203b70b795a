package sdk_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Mistakes in what happens after the death of an agent are found before one starts.
func TestMistakesInRecovery(t *testing.T) {
	t.Parallel()
	decide := func(context.Context, session.Death) session.Recovery { return session.RecoverReport }
	for name, tc := range map[string]struct {
		o     sdk.Options
		wrong string // the option; "": none
	}{
		"restarts":                    {o: sdk.Options{MaxRestarts: 3, Recovery: session.RecoverReport, RestartWindow: time.Hour}},
		"a function":                  {o: sdk.Options{MaxRestarts: 3, DecideRecovery: decide}},
		"no policy":                   {sdk.Options{MaxRestarts: 3, Recovery: "again"}, "Recovery"},
		"two that decide":             {sdk.Options{MaxRestarts: 3, Recovery: session.RecoverFail, DecideRecovery: decide}, "DecideRecovery"},
		"a policy without restarts":   {sdk.Options{Recovery: session.RecoverContinue}, "MaxRestarts"},
		"a function without restarts": {sdk.Options{DecideRecovery: decide}, "MaxRestarts"},
		"a negative window":           {sdk.Options{MaxRestarts: 3, RestartWindow: -1}, "RestartWindow"},
		"equal deaths":                {o: sdk.Options{MaxRestarts: 3, EqualDeaths: -1}},
		"equal deaths of none":        {sdk.Options{EqualDeaths: 5}, "EqualDeaths"},
		"no transcript":               {sdk.Options{MaxRestarts: 3, PersistSession: sdk.Some(false)}, "MaxRestarts"},
		"no transcript, no restarts":  {o: sdk.Options{PersistSession: sdk.Some(false)}},
		"no transcript to wake from":  {sdk.Options{PassivateAfter: time.Hour, PersistSession: sdk.Some(false)}, "PassivateAfter"},
		"a negative age":              {sdk.Options{PassivateAfter: -1}, "PassivateAfter"},
		"a negative delay":            {sdk.Options{MaxRestarts: 3, RestartBackoff: session.Backoff{Initial: -1}}, "RestartBackoff"},
		"a cap below the first delay": {sdk.Options{MaxRestarts: 3, RestartBackoff: session.Backoff{Initial: time.Second, Max: time.Millisecond}}, "RestartBackoff"},
		"a factor that shrinks":       {sdk.Options{MaxRestarts: 3, RestartBackoff: session.Backoff{Factor: 0.5}}, "RestartBackoff"},
		"a factor that is no number":  {sdk.Options{MaxRestarts: 3, RestartBackoff: session.Backoff{Factor: math.NaN()}}, "RestartBackoff"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Backend = sdk.Claude(sdk.ClaudeConfig{})
			_, err := sdk.PreviewLaunch(&tc.o)
			if tc.wrong == "" {
				require.NoError(t, err)
				return
			}
			var mistake *sdk.ConfigError
			require.ErrorAs(t, err, &mistake)
			assert.Equal(t, tc.wrong, mistake.Option)
			assert.NotEmpty(t, mistake.Fix)
		})
	}
}
