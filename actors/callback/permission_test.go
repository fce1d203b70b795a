package callback_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/callback/callbacktest"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const permissionAsk = `{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"toolu_1"}}`

func gate(t *testing.T, decide session.CanUseTool, limit time.Duration) *callbacktest.Rig {
	t.Helper()
	d := claude.New()
	return callbacktest.New(t,
		func(*callbacktest.Rig) *callback.Actor {
			return &callback.Actor{Kind: session.KindPermission, Prepare: callback.PreparePermission(d, &session.Options{CanUseTool: decide, PermissionTimeout: limit})}
		},
		func(_ protocol.Frame, reason string) ([]byte, string) {
			return d.PermissionFailure(&protocol.CanUseToolRequest{ToolUseID: "toolu_1"}, reason), ""
		})
}

func TestTheUserDecides(t *testing.T) {
	t.Parallel()
	secret := errors.New("a secret")
	for name, c := range map[string]struct {
		result protocol.PermissionResult
		err    error
		panics any
		want   string
		fails  error
		says   string
	}{
		"allow": {result: protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, want: `"behavior":"allow"`},
		"allow something else": {result: protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: json.RawMessage(`{"command":"pwd"}`)},
			want: `{"behavior":"allow","toolUseID":"toolu_1","updatedInput":{"command":"pwd"}}`},
		"allow with updates": {result: protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedPermissions: []protocol.PermissionUpdate{
			{Type: protocol.SetMode, Mode: protocol.ModePlan}, {Type: protocol.AddDirectories, Directories: []string{"/x"}, Destination: protocol.ToUserSettings},
		}}, want: `{"behavior":"allow","toolUseID":"toolu_1","updatedInput":{"command":"ls"},"updatedPermissions":[` +
			`{"type":"setMode","mode":"plan","destination":"session"},{"type":"addDirectories","directories":["/x"],"destination":"userSettings"}]}`},
		"deny": {result: protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "no", Interrupt: true},
			want: `{"behavior":"deny","toolUseID":"toolu_1","message":"no","interrupt":true}`},
		"the zero result is a deny": {want: `{"behavior":"deny","toolUseID":"toolu_1","message":"` + protocol.DefaultDenyMessage + `"}`},
		"an error is a deny": {err: secret, result: protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, fails: secret,
			want: `{"behavior":"deny","toolUseID":"toolu_1","message":"the callback failed"}`},
		"a panic is a deny":     {panics: secret, fails: secret, want: `{"behavior":"deny","toolUseID":"toolu_1","message":"the callback failed"}`},
		"an odd word is a deny": {result: protocol.PermissionResult{Behavior: "maybe"}, want: `"deny"`},
		"a denial with another verdict in Extra is a deny that says nothing of it": {
			result: protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Extra: map[string]json.RawMessage{"x": json.RawMessage(`1,"behavior":"allow"`)}},
			want:   `{"behavior":"deny","toolUseID":"toolu_1","message":"the callback failed"}`, says: "not one JSON value"},
		"an allow with an own key in Extra is a deny": {
			result: protocol.PermissionResult{Behavior: protocol.BehaviorAllow, Extra: map[string]json.RawMessage{"UpdatedInput": json.RawMessage(`{}`)}},
			want:   `{"behavior":"deny","toolUseID":"toolu_1","message":"the callback failed"}`, says: "one of the result's own"},
		"an allow that cannot be encoded is a deny": {result: protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: json.RawMessage(`{`)},
			want: `"deny"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen *protocol.CanUseToolRequest
			r := gate(t, func(_ context.Context, q *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				seen = q
				if c.panics != nil {
					panic(c.panics)
				}
				return c.result, c.err
			}, 0)
			r.Ask(permissionAsk, 0)
			require.Len(t, r.Lines, 1)
			if c.want[0] == '{' {
				assert.JSONEq(t, c.want, r.Answer())
			} else {
				assert.Contains(t, r.Answer(), c.want)
			}
			assert.NotContains(t, r.Answer(), "secret", "what went wrong is the user's business")
			assert.Contains(t, r.Lines[0], `"subtype":"success"`, "a gate never answers an error")
			require.NotNil(t, seen)
			assert.Equal(t, "Bash", seen.ToolName)
			assert.JSONEq(t, `{"command":"ls"}`, string(seen.Input))
			if c.fails != nil {
				require.Len(t, r.Failed, 1)
				require.ErrorIs(t, r.Failed[0], c.fails)
			}
			if c.says != "" {
				require.Len(t, r.Failed, 1)
				require.ErrorContains(t, r.Failed[0], c.says)
			}
		})
	}
}

func TestNobodyIsNamedToDecide(t *testing.T) {
	t.Parallel()
	r := gate(t, nil, 0)
	r.Ask(permissionAsk, 0)
	assert.Contains(t, r.Answer(), `"behavior":"deny"`)
	require.Len(t, r.Failed, 1)
	require.ErrorIs(t, r.Failed[0], session.ErrNoCanUseTool)
}

func TestARequestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := gate(t, func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		t.Error("asked")
		return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
	}, 0)
	r.Ask(`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":7}}`, 0)
	assert.Contains(t, r.Answer(), `"behavior":"deny"`)
	require.Len(t, r.Failed, 1)
	require.ErrorContains(t, r.Failed[0], "can_use_tool request")
}

func TestHowLongAPersonMayThink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit time.Duration
		want  bool
	}{
		"no limit by default": {0, false},
		"a limit denies":      {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *callbacktest.Rig
			r = gate(t, func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, r.Sched.Await(ctx, make(chan struct{}))
			}, c.limit)
			r.Ask(permissionAsk, 24*time.Hour)
			if !c.want {
				assert.Empty(t, r.Lines)
				return
			}
			assert.Contains(t, r.Answer(), "no decision was made in time")
			require.ErrorContains(t, r.Failed[0], "permission callback for Bash: no answer within 1m0s (set by PermissionTimeout)")
		})
	}
}

// A report is kept until somebody reads it.
func TestReportsAreShortWhateverTheAgentCallsATool(t *testing.T) {
	t.Parallel()
	r := gate(t, nil, 0)
	long := strings.Repeat("x", 1<<20)
	r.Ask(`{"type":"control_request","request_id":"`+long+`","request":{"subtype":"can_use_tool","tool_name":"`+long+`","input":{}}}`, 0)
	require.Len(t, r.Events, 1)
	assert.Less(t, len(r.Events[0].Name)+len(r.Events[0].RequestID)+len(r.Events[0].Err.Error()), 1<<10)
}

func TestAnAnswerThatCannotBeWrittenIsReported(t *testing.T) {
	t.Parallel()
	r := gate(t, func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		return protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: json.RawMessage(`{broken`)}, nil
	}, 0)
	r.Ask(`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}`, 0)
	assert.Contains(t, r.Answer(), `"deny"`)
	require.NotEmpty(t, r.Events)
}
