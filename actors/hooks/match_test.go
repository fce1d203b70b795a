package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Patterns with what goes to the agent and whether a call of the tool reaches
// the handler. Those that go to the agent are compared there, whole name by
// whole name.
func TestPatterns(t *testing.T) {
	t.Parallel()
	const wire, here, refused = "wire", "here", "refused"
	for _, tc := range []struct {
		pattern, where string
		tool           string
		called         bool
	}{
		{"", wire, "Bash", true},
		{"*", wire, "Bash", true},
		// Lists of names are the agent's.
		{"Bash", wire, "Bash", true},
		{"Bash|Write", wire, "Bash", true},
		{"bash", wire, "bash", true},
		{"Ba", wire, "Ba", true},
		{"ash", wire, "ash", true},
		{"mcp__srv__act", wire, "mcp__srv__act", true},
		{"mcp__srv__act|Bash", wire, "Bash", true},
		// Releases do not agree on these lists.
		{"Bash, Write", here, "Bash", true},
		{"Bash, Write", here, "Write", true},
		{"Bash | Write", here, "Write", true},
		{" Bash", here, "Bash", true},
		{"Bash, Write", here, "BashOther", false},
		{"mcp__my-srv__act", here, "mcp__my-srv__act", true},
		{"mcp__my-srv__act", here, "mcp__my-srv__act2", false},
		// Servers.
		{"mcp__srv", here, "mcp__srv__act", true},
		{"mcp__srv__", here, "mcp__srv__act", true},
		{"mcp__", here, "mcp__srv__act", true},
		{"mcp__my-srv", here, "mcp__my-srv__act", true},
		{"Bash|mcp__srv", here, "mcp__srv__act", true},
		{"Bash|mcp__srv", here, "Bash", true},
		{"Bash|mcp__srv", here, "BashOther", false},
		{"mcp__srv", here, "mcp__srvother__act", false},
		{"mcp__srv", here, "Bash", false},
		{"mcp__srv__*", here, "mcp__srv__act", true},
		{"mcp__srv__.*", here, "mcp__srv__act", true},
		{"mcp__srv.*", here, "mcp__srv__act", true},
		{"mcp__.*", here, "mcp__srv__act", true},
		// What the agent's engine refuses, or reads otherwise.
		{"(?i)bash", here, "Bash", true},
		{"(?i:bash)", here, "Bash", true},
		{"(?i)bash|write", here, "Bash", true},
		{"Bash|(?i)write", here, "WRITE", true},
		{`\ABash\z`, here, "Bash", true},
		{`^Bash\z`, here, "Bash", true},
		{`\QBash\E`, here, "Bash", true},
		{"(?P<tool>Bash)", here, "Bash", true},
		{"(?<tool>Bash)", here, "Bash", true},
		{"[[:alpha:]]+", here, "Bash", true},
		{"[[:upper:]].*", here, "Bash", true},
		{`\p{L}+`, here, "Bash", true},
		{`\pL+`, here, "Bash", true},
		{`\p{Lu}.*`, here, "Bash", true},
		{"(?s)B.*", here, "Bash", true},
		{"(?s:B.*)", here, "Bash", true},
		{"(?U)B.*", here, "Bash", true},
		{"(?m)^Bash$", here, "Bash", true},
		{`B\x{61}sh`, here, "Bash", true},
		{`\x42ash`, here, "Bash", true},
		{`B\141sh`, here, "Bash", true},
		{`\a|Bash`, here, "Bash", true},
		// What both read alike is compared here as well.
		{"(?:Bash)", here, "Bash", true},
		{"^(Bash|Write)$", here, "Bash", true},
		{"^(Bash|Write)$", here, "BashOther", false},
		{"B.*", here, "Bash", true},
		{".*", here, "Bash", true},
		{"B[a-z]+", here, "Bash", true},
		{`B\w+`, here, "Bash", true},
		{`Bash\b`, here, "Bash", true},
		{"Bash{1}", here, "Bash", true},
		{"^Bash$", here, "Bash", true},
		{"^Bash$", here, "Write", false},
		{"Bash$", here, "Bash", true},
		{"^Ba", here, "Bash", true},
		// Older names of a tool, and the kind of a tool.
		{"^Task$", here, "Agent", true},
		{"^Kill(Shell|Bash)$", here, "TaskStop", true},
		{"^Bash$", here, "Monitor", true},
		{"^Agent$", here, "Task", false},
		// What cannot be compared on this side.
		{"Bash++", refused, "", false},
		{"(?<=B)ash", refused, "", false},
		{"^(?!Read).*$", refused, "", false},
		{`(a)\1`, refused, "", false},
		{"(", refused, "", false},
	} {
		t.Run(fmt.Sprintf("%s of %s", tc.pattern, tc.tool), func(t *testing.T) {
			t.Parallel()
			err := hooks.CheckPattern(protocol.HookPreToolUse, tc.pattern)
			if tc.where == refused {
				var bad *session.PatternError
				require.ErrorAs(t, err, &bad)
				assert.Contains(t, err.Error(), "package regexp")
				return
			}
			require.NoError(t, err)
			hook := session.Hook{Event: protocol.HookPreToolUse, Matcher: tc.pattern}
			onWire := hooks.Registrations(claude.New(), []session.Hook{hook})[0].Matcher
			if tc.where == wire {
				assert.Equal(t, tc.pattern, onWire)
			} else {
				assert.Empty(t, onWire, "the agent must not compare it")
			}
			input, err := json.Marshal(map[string]string{"tool_name": tc.tool})
			require.NoError(t, err)
			assert.Equal(t, tc.called, called(t, hook, string(input)))
		})
	}
}

// The subject of an event is the member that the agent compares.
func TestSubjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		event   protocol.HookEvent
		pattern string
		input   string
		called  bool
	}{
		{protocol.HookPreCompact, "(?i)MANUAL", `{"trigger":"manual"}`, true},
		{protocol.HookPreCompact, "(?i)MANUAL", `{"trigger":"auto"}`, false},
		{protocol.HookElicitation, "^db$", `{"mcp_server_name":"db"}`, true},
		{protocol.HookElicitation, "^db$", `{"mcp_server_name":"web","tool_name":"db"}`, false},
		{protocol.HookConfigChange, "user.*", `{"source":"user_settings"}`, true},
		{protocol.HookPreModelSwitch, "^claude-opus-5-5$", `{"to_model":"claude-opus-5-5[1m]"}`, true},
		{protocol.HookPreToolUse, "^Bash$", `{"Tool_Name":"Bash","tool_name":"Write"}`, false},
		// Nothing to compare: the hook is called rather than not.
		{protocol.HookPreToolUse, "^Bash$", `{}`, true},
		{protocol.HookPreToolUse, "^Bash$", `{"tool_name":7}`, true},
		{protocol.HookPreToolUse, "^Bash$", `[]`, true},
	} {
		t.Run(string(tc.event)+" "+tc.input, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.called, called(t, session.Hook{Event: tc.event, Matcher: tc.pattern}, tc.input))
		})
	}
}

// Events without a subject, and files to watch, are the agent's to match.
func TestPatternsThatAreTheAgents(t *testing.T) {
	t.Parallel()
	for event, pattern := range map[protocol.HookEvent]string{
		protocol.HookFileChanged: "go.mod|go.sum", "NextWeek": "(?<=x)y", protocol.HookUserPromptSubmit: "x.*",
	} {
		require.NoError(t, hooks.CheckPattern(event, pattern))
		assert.Equal(t, pattern, hooks.Registrations(claude.New(), []session.Hook{{Event: event, Matcher: pattern}})[0].Matcher)
	}
}

// called reports whether the handler of a hook hears of an input.
func called(t *testing.T, hook session.Hook, input string) bool {
	t.Helper()
	heard := false
	hook.Func = func(context.Context, *session.HookCall) (json.RawMessage, error) {
		heard = true
		return nil, nil
	}
	r := actor(t, []session.Hook{hook})
	r.Ask(fire("hook_0", input), 0)
	assert.Equal(t, "{}", r.Answer(), "answered in any case")
	return heard
}

// Of some events nothing is compared with a matcher: the hook is called each time.
func TestMatchersThatAreIgnored(t *testing.T) {
	t.Parallel()
	for _, event := range protocol.HookEvents() {
		want := slices.Contains([]protocol.HookEvent{
			protocol.HookUserPromptSubmit, protocol.HookPostToolBatch, protocol.HookStop, protocol.HookMessageDisplay, protocol.HookCwdChanged,
			protocol.HookWorktreeCreate, protocol.HookWorktreeRemove, protocol.HookTaskCreated, protocol.HookTaskCompleted, protocol.HookTeammateIdle,
		}, event)
		assert.Equal(t, want, hooks.Ignored(event), event)
	}
	assert.False(t, hooks.Ignored("Later"), "of an unknown event nothing is known")
}

// Names of a list that no tool has are told of: no call reaches the hook through them.
func TestNamesThatNoToolHas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		event   protocol.HookEvent
		pattern string
		unknown []string
	}{
		{protocol.HookPreToolUse, "Ba", []string{"Ba"}},
		{protocol.HookPreToolUse, "ash|Bash, bash", []string{"ash", "bash"}},
		{protocol.HookPostToolUse, "srv", []string{"srv"}},
		{protocol.HookPermissionRequest, "Write-x", []string{"Write-x"}},
		{protocol.HookPreToolUse, "", nil},
		{protocol.HookPreToolUse, "*", nil},
		{protocol.HookPreToolUse, "Ba.*", nil},
		{protocol.HookPreToolUse, "Edit|MultiEdit|Write|NotebookEdit|LS", nil},
		{protocol.HookPreToolUse, "Task|KillShell|BashOutput|AgentOutputTool|PowerShell", nil},
		{protocol.HookPreToolUse, "mcp__|mcp__srv|mcp__srv__|mcp__my-srv__act", nil},
		{protocol.HookSubagentStart, "reviewer", nil},
		{protocol.HookFileChanged, "go.mod|go.sum", nil},
		{protocol.HookStop, "Bash", nil}, // nothing is compared, see TestMatchersThatAreIgnored
		{protocol.HookSessionStart, "startup|resumed", []string{"resumed"}},
		{protocol.HookPreCompact, "automatic", []string{"automatic"}},
		{protocol.HookPostCompact, "manual|auto", nil},
		{protocol.HookConfigChange, "settings", []string{"settings"}},
		{protocol.HookStopFailure, "rate_limit, overload", []string{"overload"}},
		{protocol.HookInstructionsLoaded, "include|.*", nil},
		{protocol.HookSetup, "Init", []string{"Init"}},
		{protocol.HookDirectoryAdded, "slash_command", nil},
		{protocol.HookNotification, "permission_prompt|anything", nil},
	} {
		assert.Equal(t, tc.unknown, hooks.Unknown(tc.event, tc.pattern), "%s of %s", tc.pattern, tc.event)
	}
}
