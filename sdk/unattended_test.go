package sdk_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
)

// An unattended session does not start while something could wait for a person.
func TestUnattendedRefusesWhatCouldWait(t *testing.T) {
	t.Parallel()
	yes := func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Allow(), nil
	}
	for name, tc := range map[string]struct {
		o    sdk.Options
		open []string // in the error; none: it starts
	}{
		"nothing given": {o: sdk.Options{}, open: []string{"calls that no rule names", "AskUserQuestion", "ExitPlanMode"}},
		"rules alone": {
			o:    sdk.Options{Policy: &sdk.Policy{Allow: []string{"Read"}, Deny: []string{"AskUserQuestion"}}, DisallowedTools: []string{"ExitPlanMode"}},
			open: []string{"calls that no rule names"},
		},
		"the agent decides": {o: sdk.Options{Policy: &sdk.Policy{Default: policy.Agent}}, open: []string{"calls that no rule names", "AskUserQuestion", "ExitPlanMode"}},
		"an ask rule":       {o: sdk.Options{Policy: &sdk.Policy{Default: policy.Deny, Ask: []string{"Bash(git push:*)"}}}, open: []string{"the ask rule Bash(git push:*)"}},
		"deny":              {o: sdk.Options{Policy: &sdk.Policy{Default: policy.Deny}}},
		"a callback":        {o: sdk.Options{CanUseTool: yes}},
		"both":              {o: sdk.Options{CanUseTool: yes, Policy: &sdk.Policy{Ask: []string{"Bash"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tc.o
			o.Unattended, o.Backend = true, scripted.New()
			_, err := sdk.PreviewLaunch(&o)
			if tc.open == nil {
				require.NoError(t, err)
				return
			}
			wrong := new(sdk.ConfigError)
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, "Unattended", wrong.Option)
			for _, what := range tc.open {
				assert.ErrorContains(t, err, what)
			}
			if tc.open[0] != "calls that no rule names" {
				assert.NotContains(t, err.Error(), "calls that no rule names")
			}
			if len(tc.open) == 1 {
				assert.NotContains(t, err.Error(), "ExitPlanMode")
			}
		})
	}
}

// Who answers in the place of a person has a minute, and an ask that nobody answers is a
// denial at once.
func TestUnattendedNeverWaits(t *testing.T) {
	t.Parallel()
	bash := func() *scripted.ToolUse {
		return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Gate: agent.GateAsk, Result: "made"}
	}
	in(t, func(w *world) {
		o := w.options(turn(bash(), scripted.Text("done")))
		o.Unattended, o.Policy = true, &sdk.Policy{Default: policy.Deny}
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		require.Len(w, r.PermissionDenials, 1)
		assert.Equal(w, "Bash", r.PermissionDenials[0].ToolName)
	})
	for seed := range sim.Seeds(t, 4, 500) {
		w := virtual(t, seed)
		o := w.options(turn(bash(), scripted.Text("done")))
		o.Unattended = true
		o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			err := w.rt.Executor().Await(ctx, nil) // a person, who is asleep
			return sdk.Allow(), err
		}
		l := record(o)
		before := w.sim.Now()
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		require.Len(w, r.PermissionDenials, 1)
		failures := w.failures(l)
		require.Len(w, failures, 1)
		var late *sdk.TimeoutError
		require.ErrorAs(w, failures[0].Err, &late)
		assert.Equal(w, "Unattended", late.SetBy)
		assert.Equal(w, time.Minute, late.Limit)
		assert.WithinDuration(w, before.Add(time.Minute), w.sim.Now(), 10*time.Second)
		w.Finish()
	}
}
