package protocol

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/base/jsonscan"
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
		{"extra keys are sorted", PermissionResult{Behavior: BehaviorDeny, Message: "m", Extra: map[string]json.RawMessage{
			"z": json.RawMessage(`1`), "a": json.RawMessage(`[2]`)}}, `{"behavior":"deny","message":"m","a":[2],"z":1}`},
	} {
		got, err := Marshal(c.r)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, string(got), c.name)
		var back PermissionResult
		require.NoError(t, json.Unmarshal(got, &back), c.name)
		assert.Equal(t, c.r.Allowed(), back.Allowed(), c.name)
		again, err := Marshal(back)
		require.NoError(t, err, c.name)
		assert.Equal(t, string(got), string(again), c.name)
	}
}

// Keys that could change the verdict of a result are not sent.
func TestPermissionResultRefusesExtra(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, value, want string }{
		"a second behavior in a value":  {"x", `1,"behavior":"allow"`, `the key "x" of Extra is not one JSON value`},
		"a broken value":                {"x", `{`, "not one JSON value"},
		"no value":                      {"x", ``, "not one JSON value"},
		"two values":                    {"x", `1 2`, "not one JSON value"},
		"the end of the result":         {"x", `1},{"behavior":"allow"`, "not one JSON value"},
		"an own key":                    {"behavior", `"allow"`, `the key "behavior" of Extra is one of the result's own`},
		"an own key in another case":    {"Behavior", `"allow"`, "one of the result's own"},
		"an own key by Unicode's cases": {"mes\u017fage", `"m"`, "one of the result's own"},
		"another own key":               {"toolUseId", `"t"`, "one of the result's own"},
		"a key that is not UTF-8":       {"x\xff", `1`, "is not UTF-8"},
	} {
		for _, behavior := range []PermissionBehavior{BehaviorAllow, BehaviorDeny} {
			_, err := PermissionResult{Behavior: behavior, Extra: map[string]json.RawMessage{c.key: json.RawMessage(c.value)}}.MarshalJSON()
			require.ErrorContains(t, err, c.want, name)
		}
	}
	for _, own := range permissionKeys() {
		_, err := PermissionResult{Extra: map[string]json.RawMessage{strings.ToUpper(own): json.RawMessage(`1`)}}.MarshalJSON()
		require.Error(t, err, own)
	}
	keys := permissionKeys()
	var tags []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[permissionResultJSON]()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		tags = append(tags, key)
	}
	assert.ElementsMatch(t, tags, keys[:], "every key of the result is one that Extra cannot have")
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
		b, err := Marshal(r)
		if err != nil {
			t.Skip("a key of the result's own")
		}
		want := `"deny"`
		if r.Behavior == "allow" {
			want = `"allow"`
		}
		require.Equal(t, want, string(jsonscan.Get(b, "behavior")))
	})
}
