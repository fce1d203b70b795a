package claude_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
)

func TestHooksThatAreNeverCalled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook     dialect.HookRegistration
		says     string // empty: nothing
		settings string
	}{
		"Setup":                          {dialect.HookRegistration{Event: protocol.HookSetup}, "never calls", ""},
		"SessionEnd":                     {dialect.HookRegistration{Event: protocol.HookSessionEnd}, "never calls", ""},
		"SessionStart":                   {dialect.HookRegistration{Event: protocol.HookSessionStart}, "only after a compaction", ""},
		"SessionStart of a startup":      {dialect.HookRegistration{Event: protocol.HookSessionStart, Matcher: "startup"}, "only after a compaction", ""},
		"SessionStart of a compaction":   {dialect.HookRegistration{Event: protocol.HookSessionStart, Matcher: "compact"}, "", ""},
		"an event of next week":          {dialect.HookRegistration{Event: "NextWeek"}, "NextWeek, an event that Troupe does not know", ""},
		"CwdChanged":                     {dialect.HookRegistration{Event: protocol.HookCwdChanged}, "only if its settings", `{"hooks":{"Stop":[]}}`},
		"CwdChanged in the settings":     {dialect.HookRegistration{Event: protocol.HookCwdChanged}, "", `{"hooks":{"CwdChanged":[{"hooks":[]}]}}`},
		"CwdChanged with files watched":  {dialect.HookRegistration{Event: protocol.HookCwdChanged}, "", `{"hooks":{"FileChanged":[{"hooks":[]}]}}`},
		"FileChanged":                    {dialect.HookRegistration{Event: protocol.HookFileChanged}, "nothing names a file", `{"hooks":{"CwdChanged":[{"hooks":[]}]}}`},
		"FileChanged in the settings":    {dialect.HookRegistration{Event: protocol.HookFileChanged}, "", `{"hooks":{"FileChanged":[{"hooks":[]}]}}`},
		"an event that is always called": {dialect.HookRegistration{Event: protocol.HookPreToolUse}, "", ""},
	} {
		c.hook.CallbackIDs = []string{"hook_0"}
		o := &dialect.Input{Facts: dialect.Facts{Registrations: []dialect.HookRegistration{c.hook}}}
		if c.settings != "" {
			o.Settings = json.RawMessage(c.settings)
		}
		warnings, err := claude.New().Validate(o)
		require.NoError(t, err, name)
		if c.says == "" {
			assert.Empty(t, warnings, name)
			continue
		}
		require.Len(t, warnings, 1, name)
		assert.Equal(t, "Hooks[0]", warnings[0].Option, name)
		assert.Contains(t, warnings[0].String(), c.says, name)
	}
}

func TestFilesThatASessionStartHookWatches(t *testing.T) {
	t.Parallel()
	warnings, err := claude.New().Validate(&dialect.Input{Facts: dialect.Facts{Registrations: []dialect.HookRegistration{
		{Event: protocol.HookFileChanged, CallbackIDs: []string{"hook_0"}},
		{Event: protocol.HookSessionStart, Matcher: "compact", CallbackIDs: []string{"hook_1"}},
	}}})
	require.NoError(t, err)
	assert.Empty(t, warnings)
}
