package qoder_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build/recorded"
	"github.com/agent-troupe/troupe/dialect/qoder"
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
		got, err := qoder.New().Encode(r)
		require.NoError(t, err)
		assert.JSONEq(t, string(l.Frame.Body()), string(got))
		// Both spellings of the kind, or the newer alone: the older first, the newer last.
		both := strings.HasPrefix(string(l.Frame.Body()), `{"type":`)
		assert.Equal(t, both, strings.HasPrefix(string(got), `{"type":`), string(got))
		assert.Equal(t, !both, strings.HasPrefix(string(got), `{"subtype":`), string(got))
		seen++
	}
	assert.GreaterOrEqual(t, seen, 50)
}

func TestRequestsInTheAgentsOwnWords(t *testing.T) {
	t.Parallel()
	yolo := protocol.SetPermissionModeRequest{Mode: protocol.ModeYolo}
	for name, c := range map[string]struct {
		request protocol.HostRequest
		want    string
	}{
		"yolo":           {yolo, `{"type":"set_permission_mode","mode":"bypassPermissions","subtype":"set_permission_mode"}`},
		"yolo pointer":   {&yolo, `{"type":"set_permission_mode","mode":"bypassPermissions","subtype":"set_permission_mode"}`},
		"default model":  {&protocol.SetModelRequest{}, `{"type":"set_model","model":"","subtype":"set_model"}`},
		"rewind of both": {&protocol.RewindRequest{UserMessageID: "u"}, `{"type":"rewind","user_message_id":"u","scope":"both","subtype":"rewind"}`},
		"raw":            {&protocol.UnknownHostRequest{Name: "x", Raw: json.RawMessage(`{"subtype":"x","a":1}`)}, `{"subtype":"x","a":1,"type":"x"}`},
		"raw, own type":  {&protocol.UnknownHostRequest{Name: "x", Raw: json.RawMessage(`{"subtype":"x","type":"y"}`)}, `{"subtype":"x","type":"y"}`},
		"raw, newer":     {&protocol.UnknownHostRequest{Name: "get_goal", Raw: json.RawMessage(`{"subtype":"get_goal"}`)}, `{"subtype":"get_goal"}`},
	} {
		got, err := qoder.New().Encode(c.request)
		require.NoError(t, err, name)
		assert.JSONEq(t, c.want, string(got), name)
	}
	assert.Equal(t, protocol.ModeYolo, yolo.Mode, "the caller's request is its own")

	_, err := qoder.New().Encode(protocol.ReadFileRequest{Path: "/f"})
	var unsupported *session.UnsupportedCapabilityError
	require.ErrorAs(t, err, &unsupported)
	assert.Equal(t, "read_file", unsupported.Request)
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]protocol.HostRequest{
		"":                          protocol.InterruptRequest{},
		"background_tasks_v1":       protocol.StopTaskRequest{},
		"goal_v1":                   protocol.GetGoalRequest{},
		"goal_max_turns_v1":         protocol.SetGoalMaxTurnsRequest{},
		"plan_mode_v1":              protocol.GetPlanModeRequest{},
		"side_question_v1":          protocol.SideQuestionRequest{},
		"byok_config_management_v1": protocol.ListBYOKConfigsRequest{},
		"reload_skills_v1":          protocol.ReloadSkillsRequest{},
		"session_rewind_v1":         protocol.RewindRequest{},
		"skill_evolution_v1":        protocol.FlushSkillEvolutionRequest{},
	} {
		assert.Equal(t, want, qoder.New().Capability(r), r.Subtype())
	}
}

func TestPermissionAnswersAreTheVendors(t *testing.T) {
	t.Parallel()
	const refused = `"behavior":"deny","message":"` + protocol.DefaultDenyMessage + `"`
	deviations := map[string]string{ // tool use id → our answer
		// An unknown verdict denies; the SDK passes it on.
		"bogus": `{` + refused + `,"x":1,"toolUseID":"bogus"}`,
	}
	failures := 0
	for _, x := range recorded.Exchanges(t, "testdata/permissions.ndjson", "can_use_tool") {
		decoded, err := protocol.DecodeAgentRequest(x.Request)
		require.NoError(t, err)
		req := decoded.(*protocol.CanUseToolRequest)
		if x.Error != "" {
			// The SDK answers with an error; a failure of ours denies in words.
			var got protocol.PermissionResult
			require.NoError(t, json.Unmarshal(qoder.New().PermissionFailure(req, x.Error), &got))
			assert.Equal(t, protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: x.Error, ToolUseID: req.ToolUseID}, got)
			failures++
			continue
		}
		want := string(x.Response)
		if ours, deviates := deviations[req.ToolUseID]; deviates {
			want = ours
		}
		var res protocol.PermissionResult
		require.NoError(t, json.Unmarshal(x.Response, &res))
		got, err := qoder.New().PermissionAnswer(req, res)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got), req.ToolUseID)
	}
	assert.NotZero(t, failures)
}

func TestAllowCarriesTheOriginalInput(t *testing.T) {
	t.Parallel()
	req := &protocol.CanUseToolRequest{ToolUseID: "t", Input: json.RawMessage(`{"command":"ls"}`)}
	got, err := qoder.New().PermissionAnswer(req, protocol.PermissionResult{Behavior: protocol.BehaviorAllow})
	require.NoError(t, err)
	assert.JSONEq(t, `{"behavior":"allow","updatedInput":{"command":"ls"},"toolUseID":"t"}`, string(got))
}

func TestModelPolicyAnswersAreTheVendors(t *testing.T) {
	t.Parallel()
	for _, x := range recorded.Exchanges(t, "testdata/model-policy.ndjson", "get_model_policy") {
		if x.Error != "" {
			continue
		}
		var reply protocol.ModelPolicyReply
		require.NoError(t, json.Unmarshal(x.Response, &reply))
		reply.Type = ""
		got, err := qoder.New().ModelPolicyAnswer(reply)
		require.NoError(t, err)
		assert.JSONEq(t, string(x.Response), string(got), x.ID)
	}
	model := "m"
	custom := &protocol.CustomModel{Provider: "p", APIKey: "k"}
	got, err := qoder.New().ModelPolicyAnswer(protocol.ModelPolicyReply{Model: &model, CustomModel: custom, SubTask: " s "})
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"get_model_policy","model":"m","sub_task":"s",
		"custom_model":{"provider":"p","api_key":"k","style":"openai"}}`, string(got))
	assert.Empty(t, custom.Style, "the caller's model is its own")
}

func TestFailedGatesDeny(t *testing.T) {
	t.Parallel()
	gates := map[protocol.HookEvent]string{
		protocol.HookPreToolUse: `{"decision":"block","reason":"why","hookSpecificOutput":
			{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"why"}}`,
		protocol.HookPermissionRequest: `{"decision":"block","reason":"why","hookSpecificOutput":
			{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"why"}}}`,
		protocol.HookUserPromptSubmit: `{"decision":"block","reason":"why"}`,
	}
	for _, event := range append(protocol.HookEvents(), "EventOfNextWeek") {
		response, errText := qoder.New().HookFailure(event, "why")
		if want, gate := gates[event]; gate {
			assert.JSONEq(t, want, string(response), event)
			assert.Empty(t, errText, event)
		} else {
			assert.Nil(t, response, event)
			assert.Equal(t, "why", errText, event)
		}
		response, errText = qoder.New().HookFailure(event, "")
		assert.NotEmpty(t, string(response)+errText, event)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	o := &dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}, Continue: true, ForkSession: true}}
	next, err := qoder.New().Resume(o, uuid1, false)
	require.NoError(t, err)
	l, err := qoder.New().Launch(next)
	require.NoError(t, err)
	assert.Equal(t, []string{"--resume", uuid1}, l.Args[5:7])
	assert.NotContains(t, l.Args, "--fork-session")

	_, err = qoder.New().Resume(o, uuid1, true)
	var unsupported *session.UnsupportedCapabilityError
	require.ErrorAs(t, err, &unsupported)
}

func TestUserLineKeepsItsOwnContext(t *testing.T) {
	t.Parallel()
	o := &dialect.Input{Options: session.Options{CustomContext: json.RawMessage(`{"a":1}`)}}
	m := &protocol.UserMessage{CustomContext: json.RawMessage(`{"b":2}`),
		Message: protocol.UserContent{Content: protocol.TextContent("hi")}}
	line, err := qoder.New().UserLine(o.UserDefaults(), m)
	require.NoError(t, err)
	assert.Contains(t, string(line), `"custom_context":{"b":2}`)
}

func TestAForkForAStore(t *testing.T) {
	t.Parallel()
	both := dialect.Input{Options: session.Options{Resume: "a", ForkSession: true}, Facts: dialect.Facts{HasSessionStore: true}}
	for name, c := range map[string]struct {
		of     dialect.Input
		answer string
		fails  bool
	}{
		"an old agent":    {both, `{"capabilities":["goal_v1"]}`, true},
		"no list":         {both, `{}`, true},
		"a new agent":     {both, `{"capabilities":["goal_v1","session_store_fork_barrier_v1"]}`, false},
		"without a store": {dialect.Input{Options: both.Options}, `{}`, false},
		"without a fork":  {dialect.Input{Facts: both.Facts}, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := qoder.New().CheckInitialize(&c.of, json.RawMessage(c.answer))
			var missing *session.UnsupportedCapabilityError
			require.Equal(t, c.fails, errors.As(err, &missing), "%v", err)
			if c.fails {
				require.ErrorContains(t, err, "session_store_fork_barrier_v1, which a fork with a session store needs")
			}
		})
	}
}

func FuzzCheckInitialize(f *testing.F) {
	f.Add([]byte(`{"capabilities":["plan_mode_v1"]}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"capabilities":3,"mcp_servers_applied":"yes"}`))
	f.Fuzz(func(t *testing.T, response []byte) {
		assert.NoError(t, qoder.New().CheckInitialize(&dialect.Input{}, response), "nothing was asked of the agent")
		o := dialect.Input{Options: session.Options{PlanMode: session.Some(true)}}
		if err := qoder.New().CheckInitialize(&o, response); err != nil {
			var missing *session.UnsupportedCapabilityError
			require.ErrorAs(t, err, &missing)
		}
	})
}
