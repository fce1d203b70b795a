package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// noPush is a hook such as a user writes.
func noPush(o ...sdk.HookOption) sdk.Hook {
	return sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		var bash struct {
			Command string `json:"command"`
		}
		if err := in.Decode(&bash); err != nil {
			return sdk.PreToolUseOutput{}, err
		}
		switch bash.Command {
		case "git push":
			return sdk.DenyPreToolUse("not from here"), nil
		case "panic":
			panic("the hook's bug")
		case "fail":
			return sdk.PreToolUseOutput{}, errBroken
		}
		return sdk.PreToolUseOutput{}, nil
	}, o...)
}

var errBroken = errors.New("broken")

func ExampleCallHook() {
	hook := sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse(in.ToolName + " is not for you"), nil
	}, sdk.Match("Bash"))
	out, err := simtests.CallHook(context.Background(), hook, map[string]any{
		"tool_name": "Bash", "tool_input": map[string]any{"command": "ls"},
	})
	raw, _ := json.Marshal(out)
	fmt.Println(string(raw), err)
	// Output: {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Bash is not for you"}} <nil>
}

func ExampleCallTool() {
	add := sdk.NewTool("add", "Adds two numbers.", func(_ context.Context, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (*sdk.ToolResult, error) {
		return sdk.Text(fmt.Sprint(in.A + in.B)), nil
	})
	server, err := sdk.NewMCPServer("calc", "", add)
	if err != nil {
		panic(err)
	}
	result, err := simtests.CallTool(context.Background(), server, "add", map[string]int{"a": 1, "b": 2})
	raw, _ := json.Marshal(result)
	fmt.Println(string(raw), err)
	// Output: {"content":[{"type":"text","text":"3"}]} <nil>
}

func ExampleAskPermission() {
	opts := &sdk.Options{
		Policy: &sdk.Policy{Allow: []string{"Bash(git:*)"}, Deny: []string{"Bash(git push:*)"}},
		CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Deny("nobody runs " + r.ToolName), nil
		},
	}
	for _, command := range []string{"git status", "git push", "make"} {
		p, err := simtests.AskPermission(context.Background(), opts, "Bash", map[string]string{"command": command})
		fmt.Println(command, p.Allowed, p.Asked, p.Message, err)
	}
	// Output:
	// git status true false  <nil>
	// git push false false PreToolUse:Bash hook error: The host's policy denies this call by the rule Bash(git push:*). <nil>
	// make false true nobody runs Bash <nil>
}

func TestCallHook(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bash := func(command string) map[string]any {
		return map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": command}}
	}
	decision := func(out protocol.HookJSONOutput) protocol.HookPermission {
		if s, ok := out.Specific.(*protocol.PreToolUseOutput); ok {
			return s.PermissionDecision
		}
		return ""
	}
	t.Run("it lets go on", func(t *testing.T) {
		t.Parallel()
		out, err := simtests.CallHook(ctx, noPush(sdk.Match("Bash")), bash("ls"))
		require.NoError(t, err)
		require.Equal(t, protocol.HookJSONOutput{}, out)
	})
	t.Run("a typed input", func(t *testing.T) {
		t.Parallel()
		out, err := simtests.CallHook(ctx, noPush(), &sdk.PreToolUseInput{ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"git push"}`)})
		require.NoError(t, err)
		require.Equal(t, protocol.HookDeny, decision(out))
	})
	t.Run("a failure denies", func(t *testing.T) {
		t.Parallel()
		out, err := simtests.CallHook(ctx, noPush(), bash("fail"))
		require.ErrorIs(t, err, errBroken)
		require.Equal(t, protocol.HookDeny, decision(out))
		out, err = simtests.CallHook(ctx, noPush(sdk.OnFailure(session.ContinueOnFailure)), bash("fail"))
		require.ErrorIs(t, err, errBroken)
		require.Equal(t, protocol.HookPermission(""), decision(out))
	})
	t.Run("a panic denies", func(t *testing.T) {
		t.Parallel()
		out, err := simtests.CallHook(ctx, noPush(), bash("panic"))
		var panicked *session.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, protocol.HookDeny, decision(out))
	})
	t.Run("wrong names and inputs", func(t *testing.T) {
		t.Parallel()
		for name, call := range map[string]struct {
			hook  sdk.Hook
			input any
			want  string
		}{
			"another tool":  {noPush(sdk.Match("Write|Edit")), bash("ls"), `matcher "Write|Edit"`},
			"a pattern":     {noPush(sdk.Match("^mcp__")), bash("ls"), `matcher "^mcp__"`},
			"another event": {noPush(), map[string]any{"hook_event_name": "Stop"}, "the event Stop"},
			"no object":     {noPush(), []int{1}, "no JSON object"},
			"no JSON":       {noPush(), func() {}, "not JSON"},
		} {
			_, err := simtests.CallHook(ctx, call.hook, call.input)
			var part *simtests.PartError
			require.ErrorAs(t, err, &part, name)
			require.ErrorContains(t, err, call.want, name)
		}
		_, err := simtests.CallHook(ctx, sdk.Hook{}, bash("ls"))
		var bad *sdk.ConfigError
		require.ErrorAs(t, err, &bad)
		_, err = simtests.CallHook(ctx, noPush(sdk.Match("(")), bash("ls"))
		require.ErrorAs(t, err, &bad)
	})
	t.Run("its time is virtual in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := sdk.OnPreToolUse(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				<-ctx.Done()
				return sdk.PreToolUseOutput{}, ctx.Err()
			}, sdk.Timeout(time.Hour))
			began := time.Now()
			out, err := simtests.CallHook(t.Context(), slow, bash("ls"))
			require.Error(t, err)
			require.Equal(t, protocol.HookDeny, decision(out))
			require.Equal(t, time.Hour-time.Second, time.Since(began))
		})
	})
	t.Run("its session ends with the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			stuck := sdk.OnPreToolUse(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				<-ctx.Done()
				return sdk.PreToolUseOutput{}, ctx.Err()
			}, sdk.Timeout(time.Hour))
			_, err := simtests.CallHook(ctx, stuck, bash("ls"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server, err := sdk.NewMCPServer("shop", "", sdk.NewTool("refund", "Refunds.", func(_ context.Context, in struct {
		Order int `json:"order"`
	}) (*sdk.ToolResult, error) {
		switch in.Order {
		case 0:
			return nil, errBroken
		case 13:
			panic("the tool's bug")
		}
		return sdk.Text(fmt.Sprintf("refunded %d", in.Order)), nil
	}))
	require.NoError(t, err)
	text := func(r *sdk.ToolResult) string {
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		return string(raw)
	}
	r, err := simtests.CallTool(ctx, server, "refund", map[string]int{"order": 7})
	require.NoError(t, err)
	require.JSONEq(t, `{"content":[{"type":"text","text":"refunded 7"}]}`, text(r))

	r, err = simtests.CallTool(ctx, server, "refund", map[string]string{"order": "seven"})
	require.NoError(t, err)
	require.True(t, r.IsError, text(r))
	r, err = simtests.CallTool(ctx, server, "refund", map[string]int{"order": 0})
	require.NoError(t, err)
	require.True(t, r.IsError, text(r))
	require.Contains(t, text(r), "broken")

	r, err = simtests.CallTool(ctx, server, "refund", map[string]int{"order": 13})
	var panicked *session.PanicError
	require.ErrorAs(t, err, &panicked)
	require.True(t, r.IsError, text(r))

	var part *simtests.PartError
	_, err = simtests.CallTool(ctx, server, "refunds", nil)
	require.ErrorAs(t, err, &part)
	require.ErrorContains(t, err, "refunds")
	_, err = simtests.CallTool(ctx, server, "refund", 7)
	require.ErrorAs(t, err, &part)
	_, err = simtests.CallTool(ctx, nil, "refund", nil)
	require.ErrorAs(t, err, &part)
}

func TestAskPermission(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	person := func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		switch r.ToolName {
		case "Allow":
			return sdk.Allow(), nil
		case "Change":
			return sdk.AllowInput(json.RawMessage(`{"changed":true}`)), nil
		case "Stop":
			return sdk.DenyAndStop("enough"), nil
		case "Fail":
			return sdk.Allow(), errBroken
		}
		return sdk.Deny("no"), nil
	}
	for name, c := range map[string]struct {
		opts *sdk.Options
		tool string
		in   any
		want simtests.Permission
		err  error
	}{
		"allowed": {&sdk.Options{CanUseTool: person}, "Allow", map[string]int{"n": 1}, simtests.Permission{Allowed: true, Asked: true, Input: json.RawMessage(`{"n":1}`)}, nil},
		"changed": {&sdk.Options{CanUseTool: person}, "Change", nil, simtests.Permission{Allowed: true, Asked: true, Input: json.RawMessage(`{"changed":true}`)}, nil},
		"denied":  {&sdk.Options{CanUseTool: person}, "Other", nil, simtests.Permission{Asked: true, Message: "no"}, nil},
		"stopped": {&sdk.Options{CanUseTool: person}, "Stop", nil, simtests.Permission{Asked: true, Interrupt: true,
			Message: "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."}, nil},
		"failed":          {&sdk.Options{CanUseTool: person}, "Fail", nil, simtests.Permission{Asked: true, Message: "the callback failed"}, errBroken},
		"nobody to ask":   {nil, "Other", nil, simtests.Permission{Message: "Claude requested permissions to use Other, but you haven't granted it yet."}, nil},
		"never asked":     {&sdk.Options{CanUseTool: person}, "Bash", map[string]string{"command": "ls"}, simtests.Permission{Allowed: true, Input: json.RawMessage(`{"command":"ls"}`)}, nil},
		"a rule":          {&sdk.Options{CanUseTool: person, AllowedTools: []string{"Other"}}, "Other", nil, simtests.Permission{Allowed: true, Input: json.RawMessage(`{}`)}, nil},
		"a policy denies": {&sdk.Options{Policy: &sdk.Policy{}}, "Bash", map[string]string{"command": "ls"}, simtests.Permission{Message: "PreToolUse:Bash hook error: No rule of the host's policy allows this call, and there is nobody to ask."}, nil},
		"a hook denies":   {&sdk.Options{CanUseTool: person, Hooks: []sdk.Hook{noPush()}}, "Bash", map[string]string{"command": "git push"}, simtests.Permission{Message: "PreToolUse:Bash hook error: not from here"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := simtests.AskPermission(ctx, c.opts, c.tool, c.in)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.want, p)
		})
	}
	var part *simtests.PartError
	_, err := simtests.AskPermission(ctx, nil, "", nil)
	require.ErrorAs(t, err, &part)
	_, err = simtests.AskPermission(ctx, nil, "Bash", "ls")
	require.ErrorAs(t, err, &part)
	var bad *sdk.ConfigError
	_, err = simtests.AskPermission(ctx, &sdk.Options{Policy: &sdk.Policy{Allow: []string{"Bash("}}}, "Bash", nil)
	require.ErrorAs(t, err, &bad)
}

func TestAskReturnsWhatATurnSaid(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: 10}, func(w *simtests.World) {
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, refund())
		messages, result, err := w.Ask(c, "refund order 7")
		require.NoError(w, err)
		require.False(w, result.Failed())
		require.Equal(w, "done", sdk.TextOf(result))
		require.Equal(w, sdk.Message(result), messages[len(messages)-1])
		require.NoError(w, c.Close(w.Context()))
		_, _, err = w.Ask(c, "too late")
		require.Error(w, err)
	})
}
