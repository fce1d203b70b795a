package claude_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/internal/build/recorded"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestRequestsAreTheVendors(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, l := range recorded.Lines(t, "testdata/control-requests.ndjson") {
		if !l.FromHost() || l.Frame.Type != protocol.TypeControlRequest || l.Frame.Subtype == "initialize" {
			continue
		}
		r, err := protocol.DecodeHostRequest(l.Frame)
		require.NoError(t, err)
		_, unknown := r.(*protocol.UnknownHostRequest)
		assert.False(t, unknown, l.Frame.Subtype)
		got, err := claude.New().Encode(r)
		require.NoError(t, err)
		assert.JSONEq(t, string(l.Frame.Body()), string(got))
		seen++
	}
	assert.GreaterOrEqual(t, seen, 25)
}

func TestRequestsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	_, err := claude.New().Encode(protocol.GetGoalRequest{})
	var unsupported *session.UnsupportedCapabilityError
	require.ErrorAs(t, err, &unsupported)
	assert.Equal(t, "get_goal", unsupported.Request)

	raw := &protocol.UnknownHostRequest{Name: "get_goal", Raw: json.RawMessage(`{"subtype":"get_goal"}`)}
	got, err := claude.New().Encode(raw)
	require.NoError(t, err, "what is sent raw is the user's own affair")
	assert.JSONEq(t, `{"subtype":"get_goal"}`, string(got))
}

func TestPermissionAnswersAreTheVendors(t *testing.T) {
	t.Parallel()
	deviations := map[string]string{ // tool name → our answer
		// The original input goes back: older releases require it.
		"AllowNoInput": `{"behavior":"allow","updatedInput":{"a":1},"toolUseID":"toolu_AllowNoInput"}`,
		// A callback without a verdict denies.
		"BadShape":  `{"behavior":"deny","message":"The host denied this tool call.","foo":1,"toolUseID":"toolu_BadShape"}`,
		"Undefined": `{"behavior":"deny","message":"The host denied this tool call.","toolUseID":"toolu_Undefined"}`,
		// The SDK answers with an error; a failure of ours denies in words.
		"Throw": `{"behavior":"deny","message":"cb exploded","toolUseID":"toolu_Throw"}`,
	}
	for _, x := range recorded.Exchanges(t, "testdata/permissions.ndjson", "can_use_tool") {
		decoded, err := protocol.DecodeAgentRequest(x.Request)
		require.NoError(t, err)
		req := decoded.(*protocol.CanUseToolRequest)
		want := string(x.Response)
		if ours, deviates := deviations[req.ToolName]; deviates {
			want = ours
		}
		if x.Error != "" {
			assert.JSONEq(t, want, string(claude.New().PermissionFailure(req, x.Error)), req.ToolName)
			continue
		}
		var res protocol.PermissionResult
		require.NoError(t, json.Unmarshal(x.Response, &res))
		got, err := claude.New().PermissionAnswer(req, res)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got), req.ToolName)
	}
}

func TestZeroPermissionResultDenies(t *testing.T) {
	t.Parallel()
	req := &protocol.CanUseToolRequest{ToolName: "Bash", ToolUseID: "t1", Input: json.RawMessage(`{}`)}
	got, err := claude.New().PermissionAnswer(req, protocol.PermissionResult{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"behavior":"deny","message":"`+protocol.DefaultDenyMessage+`","toolUseID":"t1"}`, string(got))

	_, err = claude.New().PermissionAnswer(req, protocol.PermissionResult{
		Behavior: protocol.BehaviorAllow, UpdatedInput: json.RawMessage(`[1]`)})
	assert.Error(t, err, "an allow that the agent would not understand is no allow")
}

func TestFailedGatesDeny(t *testing.T) {
	t.Parallel()
	gates := map[protocol.HookEvent]string{
		protocol.HookPreToolUse:          `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"why"}}`,
		protocol.HookPreModelSwitch:      `{"hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"deny","permissionDecisionReason":"why"}}`,
		protocol.HookPermissionRequest:   `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"why"}}}`,
		protocol.HookElicitation:         `{"decision":"block","reason":"why","hookSpecificOutput":{"hookEventName":"Elicitation","action":"decline"}}`,
		protocol.HookElicitationResult:   `{"decision":"block","reason":"why","hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"decline"}}`,
		protocol.HookUserPromptSubmit:    `{"decision":"block","reason":"why"}`,
		protocol.HookUserPromptExpansion: `{"decision":"block","reason":"why"}`,
		protocol.HookConfigChange:        `{"decision":"block","reason":"why"}`,
	}
	for _, event := range append(protocol.HookEvents(), "EventOfNextWeek") {
		response, errText := claude.New().HookFailure(event, "why")
		if want, gate := gates[event]; gate {
			assert.JSONEq(t, want, string(response), event)
			assert.Empty(t, errText, event)
		} else {
			assert.Nil(t, response, event)
			assert.Equal(t, "why", errText, event)
		}
		response, errText = claude.New().HookFailure(event, "")
		assert.NotEmpty(t, string(response)+errText, event)
	}
}

func TestModelPolicyIsUnsupported(t *testing.T) {
	t.Parallel()
	_, err := claude.New().ModelPolicyAnswer(protocol.ModelPolicyReply{})
	var unsupported *session.UnsupportedCapabilityError
	require.ErrorAs(t, err, &unsupported)
}

func TestUserLineKeepsTheCallersMessage(t *testing.T) {
	t.Parallel()
	m := &protocol.UserMessage{Message: protocol.UserContent{Content: protocol.TextContent("hi")}}
	_, err := claude.New().UserLine(dialect.UserDefaults{VerbatimPrompts: true}, m)
	require.NoError(t, err)
	assert.False(t, m.ClientComposed)

	m.ClientComposed = true
	line, err := claude.New().UserLine(dialect.UserDefaults{}, m)
	require.NoError(t, err)
	assert.Contains(t, string(line), `"client_composed":true`, "one message alone can ask for it")
}

func TestResume(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/env/CLAUDE_CODE_RESUME_INTERRUPTED_TURN")
	o := &dialect.Input{Options: session.Options{Continue: true, ForkSession: true, ResumeSessionAt: uuidB, ResumeDropsTurn: uuidC,
		SessionID: uuidD, Model: "m", Env: map[string]string{"A": "1"}}}
	next, err := claude.New().Resume(o, uuidA, true)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"A": "1"}, o.Env, "the first incarnation's options are its own")
	l, err := claude.New().Launch(next)
	require.NoError(t, err)
	assert.Equal(t, []string{"--model=m", "--resume=" + uuidA}, l.Args[5:])
	assert.Contains(t, l.Env, dialect.EnvVar{Name: "CLAUDE_CODE_RESUME_INTERRUPTED_TURN", Value: "1", Secret: true})
}

func TestCheckInitialize(t *testing.T) {
	t.Parallel()
	o := &dialect.Input{Options: session.Options{MCPServers: node(), MCPServersDelivery: session.DeliverInInitialize,
		ManagedSettings: json.RawMessage(`{"env":{"K":"v"}}`)}}
	d := claude.New()
	var missing *session.UnsupportedCapabilityError
	require.ErrorAs(t, d.CheckInitialize(o, json.RawMessage(`{"mcp_servers_applied":true}`)), &missing)
	assert.Equal(t, "managed_settings_applied", missing.Capability)
	require.ErrorAs(t, d.CheckInitialize(o, json.RawMessage(`"?"`)), &missing)
	require.NoError(t, d.CheckInitialize(o, json.RawMessage(`{"mcp_servers_applied":true,"managed_settings_applied":true}`)))
	require.NoError(t, d.CheckInitialize(&dialect.Input{}, nil))
}

func FuzzCheckInitialize(f *testing.F) {
	f.Add([]byte(`{"mcp_servers_applied":true}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"capabilities":3,"mcp_servers_applied":"yes"}`))
	f.Fuzz(func(t *testing.T, response []byte) {
		assert.NoError(t, claude.New().CheckInitialize(&dialect.Input{}, response), "nothing was asked of the agent")
		o := dialect.Input{Options: session.Options{MCPServers: node(), MCPServersDelivery: session.DeliverInInitialize}}
		if err := claude.New().CheckInitialize(&o, response); err != nil {
			var missing *session.UnsupportedCapabilityError
			require.ErrorAs(t, err, &missing)
		}
	})
}
