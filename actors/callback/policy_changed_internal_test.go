package callback

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// enforced returns the function of a user's hook beside a policy that denies rm and allows
// ls; the hook's output is out.
func enforced(t *testing.T, event protocol.HookEvent, out string, err error) func(input string) (string, error) {
	t.Helper()
	o := session.Options{
		Policy: &policy.Rules{Allow: []string{"Bash(ls *)"}, Deny: []string{"Bash(rm *)"}},
		Hooks: []session.Hook{{Event: event, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
			return json.RawMessage(out), err
		}}},
	}
	_, wrong := EnforcePolicy(&o, nil)
	require.NoError(t, wrong)
	return func(input string) (string, error) {
		got, err := o.Hooks[0].Func(t.Context(), &session.HookCall{Input: json.RawMessage(input)})
		return string(got), err
	}
}

// The input that a PreToolUse hook puts in place of the call's is held against the policy.
func TestPolicyAboutInputsOfPreToolUseHooks(t *testing.T) {
	t.Parallel()
	const call = `{"tool_name":"Bash","tool_input":{"command":"date"}}`
	with := func(more string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"rm -r x"}` + more + `}}`
	}
	for name, c := range map[string]struct {
		out   string
		err   error
		input string
		want  string // a part of the answer; "": the hook's own
		fails string
	}{
		"the hook fails":             {err: errors.New("broken"), fails: "broken"},
		"no input":                   {out: `{"continue":true}`},
		"an input that is null":      {out: `{"hookSpecificOutput":{"updatedInput":null}}`},
		"later":                      {out: `{"async":true,"hookSpecificOutput":{"updatedInput":{"command":"rm -r x"}}}`},
		"no object":                  {out: `[]`},
		"denied":                     {out: with(""), want: `"permissionDecision":"deny"`},
		"denied, though it allows":   {out: with(`,"permissionDecision":"allow"`), want: `"permissionDecision":"deny"`},
		"denied, in the older form":  {out: `{"decision":"approve",` + with("")[1:], want: `"permissionDecision":"deny"`},
		"the hook denies it itself":  {out: with(`,"permissionDecision":"deny"`)},
		"it blocks":                  {out: `{"decision":"block",` + with("")[1:]},
		"a decision that is no text": {out: with(`,"permissionDecision":5`), fails: "permissionDecision"},
		"a call that is no object":   {out: with(""), input: `[]`, fails: "input of hook PreToolUse"},
		"allowed":                    {out: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls x"}}}`},
		"allowed, and the hook asks": {
			out: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls x"},"permissionDecision":"ask"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := c.input
			if input == "" {
				input = call
			}
			got, err := enforced(t, protocol.HookPreToolUse, c.out, c.err)(input)
			switch {
			case c.fails != "":
				assert.ErrorContains(t, err, c.fails)
			case c.want == "":
				require.NoError(t, err)
				assert.Equal(t, c.out, got)
			default:
				require.NoError(t, err)
				assert.Contains(t, got, c.want)
				assert.NotContains(t, got, `"decision":`)
			}
		})
	}
}

// The input that a PermissionRequest hook allows is held against the policy's deny rules.
func TestPolicyAboutInputsOfPermissionRequestHooks(t *testing.T) {
	t.Parallel()
	const call = `{"tool_name":"Bash","tool_input":{"command":"date"}}`
	allows := func(command string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"command":"` + command + `"}}}}`
	}
	ran := enforced(t, protocol.HookPermissionRequest, allows("rm -r x"), nil)
	got, err := ran(call)
	require.NoError(t, err)
	assert.Contains(t, got, `"behavior":"deny"`)
	_, err = ran(`[]`)
	require.ErrorContains(t, err, "input of hook PermissionRequest")

	for _, out := range []string{allows("ls x"), `{"continue":true}`} {
		got, err = enforced(t, protocol.HookPermissionRequest, out, nil)(call)
		require.NoError(t, err)
		assert.Equal(t, out, got)
	}
	_, err = enforced(t, protocol.HookPermissionRequest, "", errors.New("broken"))(call)
	require.ErrorContains(t, err, "broken")
}
