package sdk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// A matcher that the agent does not compare, or that names nothing, is a warning.
func TestMatchersThatDoNotMatch(t *testing.T) {
	t.Parallel()
	stop := func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
		return sdk.FeedbackOutput{}, nil
	}
	compact := func(context.Context, *protocol.PreCompactInput) (sdk.BlockOutput, error) {
		return sdk.BlockOutput{}, nil
	}
	for _, c := range []struct {
		hook sdk.Hook
		want string
	}{
		{sdk.OnStop(stop, sdk.Match("Bash")), "Hooks[0].Match (rule Bash): has no effect: Stop has nothing that a matcher is compared with"},
		{sdk.OnStop(stop, sdk.Match("*")), ""},
		{sdk.OnStop(stop), ""},
		{sdk.OnPreCompact(compact, sdk.Match("auto|hand")), `Hooks[0].Match (rule auto|hand): "hand" is compared as a whole, and PreCompact has no such word: the hook is not called through it; write one of manual, auto`},
		{sdk.OnPreCompact(compact, sdk.Match("auto")), ""},
	} {
		p, err := sdk.PreviewLaunch(&sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/bin/true"}), SystemPrompt: sdk.PromptText("x"), Hooks: []sdk.Hook{c.hook}})
		require.NoError(t, err)
		if c.want == "" {
			assert.Empty(t, p.Warnings)
			continue
		}
		require.Len(t, p.Warnings, 1)
		assert.Contains(t, p.Warnings[0].String(), c.want)
	}
}
