package protocol

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPermissionResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		r    PermissionResult
		want string
	}{
		{"zero denies", PermissionResult{}, `{"behavior":"deny","message":"The host denied this tool call."}`},
		{"allow", PermissionResult{Behavior: BehaviorAllow, ToolUseID: "t"}, `{"behavior":"allow","toolUseID":"t"}`},
		{"allow with input", PermissionResult{Behavior: BehaviorAllow, UpdatedInput: json.RawMessage(`{"a":"<"}`), ToolUseID: "t"},
			`{"behavior":"allow","updatedInput":{"a":"<"},"toolUseID":"t"}`},
		{"allow for the session", PermissionResult{
			Behavior: BehaviorAllow, ToolUseID: "t", DecisionClassification: UserPermanent, PermissionScope: "session",
			UpdatedPermissions: []PermissionUpdate{{Type: AddRules, Rules: []PermissionRule{{ToolName: "Bash", RuleContent: "ls"}}, Behavior: BehaviorAllow, Destination: ToSession}},
		}, `{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"}],"toolUseID":"t","decisionClassification":"user_permanent","permissionScope":"session"}`},
		{"allow drops what is for deny", PermissionResult{Behavior: BehaviorAllow, Message: "m", Interrupt: true}, `{"behavior":"allow"}`},
		{"deny", PermissionResult{Behavior: BehaviorDeny, Message: "no", Interrupt: true, ToolUseID: "t"}, `{"behavior":"deny","message":"no","interrupt":true,"toolUseID":"t"}`},
		{"deny drops what is for allow", PermissionResult{UpdatedInput: json.RawMessage(`{}`), UpdatedPermissions: []PermissionUpdate{{}}, Message: "no"}, `{"behavior":"deny","message":"no"}`},
		{"ask denies", PermissionResult{Behavior: BehaviorAsk, Message: "m"}, `{"behavior":"deny","message":"m"}`},
		{"anything else denies", PermissionResult{Behavior: "Allow", Message: "m"}, `{"behavior":"deny","message":"m"}`},
		{"extra keys are sorted and replace nothing", PermissionResult{Behavior: BehaviorDeny, Message: "m", Extra: map[string]json.RawMessage{
			"z": json.RawMessage(`1`), "a": json.RawMessage(`[2]`), "behavior": json.RawMessage(`"allow"`)}}, `{"behavior":"deny","message":"m","a":[2],"z":1}`},
	} {
		got, err := marshal(c.r)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, string(got), c.name)
		var back PermissionResult
		require.NoError(t, json.Unmarshal(got, &back), c.name)
		assert.Equal(t, c.r.Allowed(), back.Allowed(), c.name)
		again, err := marshal(back)
		require.NoError(t, err, c.name)
		assert.Equal(t, string(got), string(again), c.name)
	}
	_, err := marshal(PermissionResult{Extra: map[string]json.RawMessage{"a": json.RawMessage(`{`)}})
	require.Error(t, err)
}

// Only the one word allows.
func TestPermissionResultFailsClosed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := PermissionResult{
			Behavior: PermissionBehavior(rapid.OneOf(rapid.Just("allow"), rapid.Just("Allow"), rapid.String()).Draw(t, "behavior")),
			Message:  rapid.String().Draw(t, "message"),
			Extra:    map[string]json.RawMessage{rapid.String().Draw(t, "key"): json.RawMessage(`"allow"`)},
		}
		b, err := marshal(r)
		require.NoError(t, err)
		want := `"deny"`
		if r.Behavior == "allow" {
			want = `"allow"`
		}
		require.Equal(t, want, string(memberOf(b, "behavior")))
	})
}
