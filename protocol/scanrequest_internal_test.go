package protocol

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sameAsJSON checks the way past encoding/json against the other one.
func sameAsJSON[T, Plain any](t *testing.T, body []byte, asPlain func(*T) *Plain) (scanned bool) {
	t.Helper()
	var fast T
	var plain Plain
	require.True(t, json.Valid(body))
	err := Unmarshal(body, &plain)
	if !scanObject(body, any(&fast).(scannable)) {
		return false
	}
	require.NoError(t, err, "%s", body)
	assert.Equal(t, &plain, asPlain(&fast), "%s", body)
	return true
}

type (
	plainHookCall   HookCallbackRequest
	plainMCPMessage MCPMessageRequest
	plainCanUseTool CanUseToolRequest
	plainPreToolUse PreToolUseInput
	plainPostTool   PostToolUseInput
)

func sameAsJSONAll(t *testing.T, body []byte) (scanned bool) {
	t.Helper()
	all := []bool{
		sameAsJSON(t, body, func(r *HookCallbackRequest) *plainHookCall { return (*plainHookCall)(r) }),
		sameAsJSON(t, body, func(r *MCPMessageRequest) *plainMCPMessage { return (*plainMCPMessage)(r) }),
		sameAsJSON(t, body, func(r *CanUseToolRequest) *plainCanUseTool { return (*plainCanUseTool)(r) }),
		sameAsJSON(t, body, func(r *PreToolUseInput) *plainPreToolUse { return (*plainPreToolUse)(r) }),
		sameAsJSON(t, body, func(r *PostToolUseInput) *plainPostTool { return (*plainPostTool)(r) }),
	}
	for _, s := range all {
		scanned = scanned || s
	}
	return scanned
}

var scannedBodies = map[string]bool{
	`{"subtype":"hook_callback","callback_id":"hook_0","input":{"a":[1,"}"]},"tool_use_id":"t"}`:         true,
	`{"subtype":"mcp_message","server_name":"s","message": {"jsonrpc":"2.0"} }`:                          true,
	`{"tool_name":"Bash","input":{},"tool_use_id":null,"permission_suggestions":[],"title":"a\u0041\n"}`: true,
	`{"permission_suggestions":[{"type":"setMode","mode":"plan","destination":"session"}],"input":null}`: true,
	`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"x","tool_input":{"a":1}}`:   true,
	`{"hook_event_name":"PostToolUse","tool_response":"x","duration_ms":1.5,"effort":{"level":"high"}}`:  true,
	`{"tool_name":"a","tool_name":"b","tool_name":null}`:                                                 true,
	`{"Tool_Name":"a"}`: false,
	`{"tool_name":1}`:   false,
	`{"tool_name":"a","mcp_server":{"name":"x","source":"y"}}`: false,
	`null`: false, `[]`: false, `"x"`: false,
}

func TestScannedRequestsAreThoseOfJSON(t *testing.T) {
	t.Parallel()
	for body, scanned := range scannedBodies {
		assert.Equal(t, scanned, sameAsJSONAll(t, []byte(body)), body)
	}
}

func TestAnOddRequestStillDecodes(t *testing.T) {
	t.Parallel()
	f, err := ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"a","tool_use_id":"t","TOOL_USE_ID":"u","input":{"x":1},"new":[]}}`))
	require.NoError(t, err)
	r, err := DecodeAgentRequest(f)
	require.NoError(t, err)
	assert.Equal(t, &CanUseToolRequest{ToolName: "a", ToolUseID: "t", Input: json.RawMessage(`{"x":1}`)}, r)

	f.Raw = []byte(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":1}}`)
	f, err = ParseFrame(f.Raw)
	require.NoError(t, err)
	_, err = DecodeAgentRequest(f)
	require.Error(t, err, "no gate answers what it did not understand")
	f, err = ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","input":{"a":tru}}}`))
	require.NoError(t, err)
	_, err = DecodeAgentRequest(f)
	require.Error(t, err, "nor what is no JSON")
	var in PreToolUseInput
	require.NoError(t, json.Unmarshal([]byte(`{"tool_name":"a","mcp_server":{"name":"x"},"session_id":"s","SESSION_ID":"t"}`), &in))
	assert.Equal(t, PreToolUseInput{ToolName: "a", HookBase: HookBase{SessionID: "s"}, MCPServer: &MCPServerProvenance{Name: "x"}}, in)
}

func FuzzScannedRequests(f *testing.F) {
	for body := range scannedBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if json.Valid(body) {
			sameAsJSONAll(t, body)
		}
	})
}
