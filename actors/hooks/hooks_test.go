package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/callback/callbacktest"
	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func fire(callback, input string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":%q,"tool_use_id":"toolu_1","input":%s}}`, callback, input)
}

func actor(t *testing.T, all []session.Hook) *callbacktest.Rig {
	t.Helper()
	return callbacktest.New(t,
		func(*callbacktest.Rig) *callback.Actor {
			return &callback.Actor{Kind: session.KindHook, Prepare: hooks.Prepare(claude.New(), all)}
		},
		func(f protocol.Frame, reason string) ([]byte, string) {
			return hooks.Denial(claude.New(), all, f, reason)
		})
}

func TestAHookAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want string }{
		"what it likes":       {`{"continue":true}`, `{"continue":true}`},
		"nothing: it goes on": {"", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []session.HookCall
			r := actor(t, []session.Hook{
				{Event: protocol.HookStop, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
					t.Error("not this one")
					return nil, nil
				}},
				{Event: protocol.HookPreToolUse, Func: func(_ context.Context, call *session.HookCall) (json.RawMessage, error) {
					calls = append(calls, *call)
					if c.answer == "" {
						return nil, nil
					}
					return json.RawMessage(c.answer), nil
				}},
			})
			r.Ask(fire(hooks.CallbackID(1), `{"n":1}`), 0)
			require.Len(t, r.Lines, 1)
			assert.Contains(t, r.Lines[0], `"subtype":"success"`)
			assert.Equal(t, c.want, r.Answer())
			assert.Equal(t, []session.HookCall{{Event: protocol.HookPreToolUse, Input: json.RawMessage(`{"n":1}`), ToolUseID: "toolu_1"}}, calls)
			assert.Empty(t, r.Failed)
		})
	}
}

func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	secret := errors.New("a secret")
	failing := map[string]struct {
		fn     session.HookFunc
		reason string
	}{
		"an error": {func(context.Context, *session.HookCall) (json.RawMessage, error) {
			return json.RawMessage(`{}`), secret
		}, "the callback failed"},
		"a panic": {func(context.Context, *session.HookCall) (json.RawMessage, error) { panic(secret) }, "the callback failed"},
		"no JSON": {func(context.Context, *session.HookCall) (json.RawMessage, error) { return json.RawMessage(`{`), nil }, "the answer could not be encoded"},
	}
	for name, c := range failing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for event, gate := range map[protocol.HookEvent]bool{
				protocol.HookPreToolUse: true, protocol.HookPermissionRequest: true, protocol.HookPostToolUse: false, "OfNextWeek": false,
			} {
				r := actor(t, []session.Hook{{Event: event, Func: c.fn}})
				r.Ask(fire("hook_0", `{}`), 0)
				require.Len(t, r.Lines, 1)
				if gate {
					assert.Contains(t, r.Lines[0], `"subtype":"success"`, "%s: an error would let the tool run", event)
					assert.Contains(t, r.Answer(), `deny`)
				} else {
					assert.Contains(t, r.Lines[0], `"subtype":"error"`, event)
				}
				assert.Contains(t, r.Answer(), c.reason)
				assert.NotContains(t, r.Answer(), "secret")
			}
		})
	}
}

func TestAHookThatIsTooSlow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ timeout, limit time.Duration }{
		"by default":          {0, 59 * time.Second},
		"a second is enough":  {time.Minute, 59 * time.Second},
		"a tenth of a little": {time.Second, 900 * time.Millisecond},
		"negative":            {-1, 59 * time.Second},
		"an hour":             {time.Hour, time.Hour - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.limit, hooks.HostLimit(c.timeout))
			var r *callbacktest.Rig
			r = actor(t, []session.Hook{{Event: protocol.HookPreToolUse, Timeout: c.timeout, Func: func(ctx context.Context, _ *session.HookCall) (json.RawMessage, error) {
				return nil, r.Sched.Await(ctx, make(chan struct{}))
			}}})
			r.Ask(fire("hook_0", `{}`), c.limit-1)
			require.Empty(t, r.Lines)
			r.Pass(1)
			assert.Contains(t, r.Answer(), "no decision was made in time")
			assert.Contains(t, r.Answer(), "deny")
			require.ErrorContains(t, r.Failed[0], "set by the hook's Timeout")
		})
	}
}

func TestAHookThatWasNeverRegistered(t *testing.T) {
	t.Parallel()
	for input, gate := range map[string]bool{
		`{"hook_event_name":"PreToolUse"}`:  true,
		`{"hook_event_name":"PostToolUse"}`: false,
		`{}`:                                true,
		`7`:                                 true,
	} {
		r := actor(t, nil)
		r.Ask(fire("hook_9", input), 0)
		assert.Equal(t, gate, json.Valid([]byte(r.Answer())), "%s: a gate denies, the rest is an error", input)
		assert.Contains(t, r.Answer(), "No hook callback found for ID: hook_9")
		require.Len(t, r.Failed, 1)
		require.ErrorContains(t, r.Failed[0], `"hook_9"`)
	}
}

func TestAnUnreadableHookRequestIsAGate(t *testing.T) {
	t.Parallel()
	r := actor(t, nil)
	r.Ask(`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":7}}`, 0)
	assert.Contains(t, r.Answer(), "deny")
	require.ErrorContains(t, r.Failed[0], "hook_callback request")
}

func TestRegistrations(t *testing.T) {
	t.Parallel()
	assert.Empty(t, hooks.Registrations(claude.New(), nil))
	assert.Equal(t, []dialect.HookRegistration{
		{Event: protocol.HookPreToolUse, Matcher: "Bash|Write", Timeout: time.Second, OnFailure: "block", CallbackIDs: []string{"hook_0"}},
		{Event: protocol.HookStop, CallbackIDs: []string{"hook_1"}},
		{Event: protocol.HookUserPromptSubmit, CallbackIDs: []string{"hook_2"}}, // Troupe's own
	}, hooks.Registrations(claude.New(), []session.Hook{
		{Event: protocol.HookPreToolUse, Matcher: "Bash|Write", Timeout: time.Second, OnFailure: "block"},
		{Event: protocol.HookStop},
	}))
}

func TestDenial(t *testing.T) {
	t.Parallel()
	all := []session.Hook{
		{Event: protocol.HookStop},
		{Event: protocol.HookPreToolUse},
		{Event: protocol.HookPreToolUse, OnFailure: session.BlockOnFailure},
		{Event: protocol.HookPreToolUse, OnFailure: session.ContinueOnFailure},
	}
	for line, gate := range map[string]bool{
		fire("hook_0", `{"hook_event_name":"PreToolUse"}`): false, // what was registered counts
		fire("hook_1", `{}`): true,
		fire("hook_2", `{}`): true,
		fire("hook_3", `{}`): false, // as its owner wants it
		fire("hook_5", `{"hook_event_name":"SessionEnd"}`): false,
		fire("hook_5", `{}`):                                true,
		fire("hook_01", `{}`):                               true, // no id of ours
		fire("hook_-1", `{}`):                               true,
		fire("x", `{"hook_event_name":"UserPromptSubmit"}`): true,
		`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":[]}}`: true,
	} {
		f, err := protocol.ParseFrame([]byte(line))
		require.NoError(t, err)
		response, errText := hooks.Denial(claude.New(), all, f, "why not")
		if gate {
			assert.Contains(t, string(response), "why not", line)
			assert.Empty(t, errText, line)
		} else {
			assert.Nil(t, response, line)
			assert.Equal(t, "why not", errText, line)
		}
	}
}

func TestAHookThatMayFail(t *testing.T) {
	t.Parallel()
	r := actor(t, []session.Hook{{Event: protocol.HookPreToolUse, OnFailure: session.ContinueOnFailure, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
		return nil, errors.New("a secret")
	}}})
	r.Ask(fire("hook_0", `{}`), 0)
	require.Len(t, r.Lines, 1)
	assert.Contains(t, r.Lines[0], `"subtype":"error"`, "the agent then does what the registration says")
	assert.Equal(t, "the callback failed", r.Answer())
	require.Len(t, r.Failed, 1, "it is reported all the same")
}

func TestTheTextForAnUnknownHookIsTheDialects(t *testing.T) {
	t.Parallel()
	r := callbacktest.New(t,
		func(*callbacktest.Rig) *callback.Actor {
			return &callback.Actor{Kind: session.KindHook, Prepare: hooks.Prepare(qoder.New(), nil)}
		},
		func(f protocol.Frame, reason string) ([]byte, string) {
			return hooks.Denial(qoder.New(), nil, f, reason)
		})
	r.Ask(fire("hook_9", `{"hook_event_name":"Stop"}`), 0)
	assert.Equal(t, "Unknown hook callback: hook_9", r.Answer())
}

// TestTheProofDeniesNothing closes a session whose only prompt hook is the one
// that proves that hooks are called: nobody's gate is behind it.
func TestTheProofDeniesNothing(t *testing.T) {
	t.Parallel()
	gate := session.Hook{Event: protocol.HookPreToolUse}
	own := session.Hook{Event: protocol.HookUserPromptSubmit}
	for name, c := range map[string]struct {
		all    []session.Hook
		denies bool
	}{
		"Troupe's own": {[]session.Hook{gate}, false},
		"the user's":   {[]session.Hook{gate, own}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Len(t, hooks.Registrations(claude.New(), c.all), 2)
			f, err := protocol.ParseFrame([]byte(fire(hooks.CallbackID(1), `{"hook_event_name":"UserPromptSubmit"}`)))
			require.NoError(t, err)
			response, errText := hooks.Denial(claude.New(), c.all, f, "the session is closing")
			assert.Empty(t, errText)
			if c.denies {
				assert.Contains(t, string(response), "block")
				return
			}
			assert.JSONEq(t, `{}`, string(response))
		})
	}
}
