package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

func decode(t testing.TB, line string) Message {
	t.Helper()
	f, err := ParseFrame([]byte(line))
	require.NoError(t, err, line)
	return DecodeMessage(f)
}

func TestDecodeMessageUnknown(t *testing.T) {
	t.Parallel()
	u, ok := decode(t, `{"type":"tomorrow","subtype":"x","uuid":"u","session_id":"s","parent_tool_use_id":"p","y":1}`).(*UnknownMessage)
	require.True(t, ok)
	assert.Equal(t, "tomorrow", u.Type)
	assert.Equal(t, "x", u.Subtype)
	assert.Equal(t, Common{UUID: "u", SessionID: "s", ParentToolUseID: "p", raw: u.raw}, u.Meta())
	require.NoError(t, u.Err)
	assert.Nil(t, u.Partial)

	line, err := MarshalMessage(u)
	require.NoError(t, err)
	assert.Equal(t, string(u.Raw())+"\n", string(line))
	assert.Empty(t, TextOf(u))
	assert.Nil(t, ToolUses(u))
	assert.Nil(t, ToolResults(u))
}

// One odd field must not lose the end of a turn.
func TestDecodeMessagePartial(t *testing.T) {
	t.Parallel()
	u, ok := decode(t, `{"type":"result","subtype":"success","num_turns":{"odd":1},"result":"done","uuid":"u","is_error":false}`).(*UnknownMessage)
	require.True(t, ok)
	require.ErrorContains(t, u.Err, "decode result/success line")
	var te *json.UnmarshalTypeError
	require.ErrorAs(t, u.Err, &te)
	p, ok := u.Partial.(*ResultMessage)
	require.True(t, ok)
	assert.Equal(t, "done", p.Result)
	assert.Equal(t, "u", p.UUID)
	assert.Equal(t, u.Raw(), p.Raw())
	assert.False(t, p.Failed())
}

func TestControlFramesAreNoMessages(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{TypeControlRequest, TypeControlResponse, TypeControlCancel} {
		assert.IsType(t, &UnknownMessage{}, decode(t, `{"type":"`+typ+`"}`))
	}
}

func TestResultMessage(t *testing.T) {
	t.Parallel()
	ok := decode(t, resultLine).(*ResultMessage)
	assert.False(t, ok.Failed())
	assert.Equal(t, "Agent done.", ok.Text())
	assert.Equal(t, "Agent done.", TextOf(ok))
	assert.Equal(t, int64(128000), ok.ModelUsage["claude-opus-5-5"].MaxOutputTokens)
	assert.InDelta(t, 0.144, ok.DurationMS.Duration().Seconds(), 1e-9)

	apiError := decode(t, `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400","api_error_status":400}`).(*ResultMessage)
	assert.True(t, apiError.Failed(), "success and is_error come together")
	failed := decode(t, `{"type":"result","subtype":"error_max_turns","is_error":false,"errors":["a","b"]}`).(*ResultMessage)
	assert.True(t, failed.Failed())
	assert.Equal(t, "a\nb", failed.Text())
}

func TestContent(t *testing.T) {
	t.Parallel()
	u := decode(t, `{"type":"user","message":{"role":"user","content":"bare \u00e9"}}`).(*UserMessage)
	assert.Equal(t, "bare é", TextOf(u))
	b, err := json.Marshal(u.Message.Content)
	require.NoError(t, err)
	assert.Equal(t, `"bare é"`, string(b), "a string stays a string")

	u = decode(t, `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"out"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}],"is_error":true},{"type":"new_block","z":1},{"type":"text","text":7},{"type":"text","text":"b"}]}}`).(*UserMessage)
	assert.Equal(t, "ab", TextOf(u))
	results := ToolResults(u)
	require.Len(t, results, 1)
	assert.True(t, results[0].IsError)
	assert.Equal(t, "out", results[0].Content.Text())
	assert.Equal(t, "image/png", results[0].Content[1].(*ImageBlock).Source.MediaType)
	unknown := u.Message.Content[2].(*UnknownBlock)
	assert.Equal(t, "new_block", unknown.BlockType())
	require.NoError(t, unknown.Err)
	odd := u.Message.Content[3].(*UnknownBlock)
	assert.Equal(t, "text", odd.Type)
	require.Error(t, odd.Err, "an odd block is kept, not an odd message")
	b, err = json.Marshal(u.Message.Content)
	require.NoError(t, err)
	assert.JSONEq(t, string(jsonscan.Get(jsonscan.Get(u.Raw(), "message"), "content")), string(b))

	for _, bad := range []string{`{"a":1}`, `7`, `true`} {
		var c Content
		require.Error(t, json.Unmarshal([]byte(bad), &c), bad)
	}
	var c Content
	require.NoError(t, json.Unmarshal([]byte(`null`), &c))
	assert.Nil(t, c)
	b, err = json.Marshal(c)
	require.NoError(t, err)
	assert.Equal(t, `[]`, string(b))
}

// Every block type comes back as it was.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"type":"text","text":"<a&b>","citations":[1]}`,
		`{"type":"thinking","thinking":"t","signature":"s"}`,
		`{"type":"redacted_thinking","data":"d"}`,
		`{"type":"tool_use","id":"i","name":"n","input":{"a":1}}`,
		`{"type":"tool_result","tool_use_id":"i","content":"s"}`,
		`{"type":"image","source":{"type":"url","url":"u"}}`,
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"title":"t","context":"c"}`,
		`{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}`,
		`{"type":"server_tool_use","id":"i","name":"web_search","input":{}}`,
		`{"type":"web_search_tool_result","tool_use_id":"i","content":[{"url":"u"}]}`,
		`{"type":"bash_code_execution_tool_result","tool_use_id":"i","content":{"stdout":"x"}}`,
		`{"type":"mcp_tool_use","id":"i","name":"n","server_name":"s","input":{}}`,
		`{"type":"mcp_tool_result","tool_use_id":"i","is_error":true,"content":[]}`,
		`{"type":"container_upload","file_id":"f"}`,
		`{"type":"of next week","a":[1]}`,
	} {
		b := decodeBlock([]byte(line), 0)
		if jsonscan.Text(jsonscan.Get([]byte(line), "type")) != "of next week" {
			assert.IsNotType(t, &UnknownBlock{}, b, line)
		}
		again, err := Marshal(b)
		require.NoError(t, err)
		lost := differ{tags: map[string]bool{"content": true}}.diff("", generic(t, []byte(line)), generic(t, again))
		assert.Empty(t, lost, "%s -> %s", line, again)
	}
	b, err := Marshal(&ToolUseBlock{ID: "i", Name: "n"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"tool_use","id":"i","name":"n","input":{}}`, string(b))
}

// Content in content in content is read down to a bound, and kept below it.
func TestContentNesting(t *testing.T) {
	t.Parallel()
	const levels = 4000
	line := `{"type":"user","message":{"role":"user","content":` +
		strings.Repeat(`[{"type":"tool_result","tool_use_id":"t","content":`, levels) + `"x"` +
		strings.Repeat(`}]`, levels) + `}}`
	u, ok := decode(t, line).(*UserMessage)
	require.True(t, ok)
	c, depth := u.Message.Content, 0
	for {
		r, ok := c[0].(*ToolResultBlock)
		if !ok {
			break
		}
		c = r.Content
		depth++
	}
	assert.Equal(t, maxNesting, depth)
	rest, ok := c[0].(*UnknownBlock)
	require.True(t, ok)
	require.ErrorIs(t, rest.Err, errNesting)
	again, err := MarshalMessage(u)
	require.NoError(t, err)
	assert.JSONEq(t, line, string(again))
}

// assertLine compares bytes: the order of the keys counts.
func assertLine(t *testing.T, want string, got []byte) {
	t.Helper()
	assert.Equal(t, want+"\n", string(got))
}

func TestMarshalMessage(t *testing.T) {
	t.Parallel()
	line, err := MarshalMessage(&InitMessage{Common: Common{SessionID: "s", UUID: "u"}, Model: "m<1>", Tools: []string{"Bash"}})
	require.NoError(t, err)
	assertLine(t, `{"type":"system","subtype":"init","uuid":"u","session_id":"s","model":"m<1>","tools":["Bash"]}`, line)

	line, err = MarshalMessage(&KeepAliveMessage{})
	require.NoError(t, err)
	assertLine(t, `{"type":"keep_alive"}`, line)

	line, err = MarshalMessage(&PartialAssistantMessage{Event: &ContentBlockDelta{Index: 2, Delta: &DeltaText{Text: "a\nb"}}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"stream_event","event":{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a\nb"}}}`, string(line))
	assert.Equal(t, 1, strings.Count(string(line), "\n"))

	_, err = MarshalMessage(&AssistantMessage{Message: APIMessage{Content: Content{&ToolUseBlock{Input: json.RawMessage(`{`)}}}})
	require.ErrorContains(t, err, "encode assistant line")
}

// Every message type that has a name is made by that name, and keeps it.
func TestMessageNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"assistant", "user", "result/success", "result/error_during_execution", "stream_event",
		"system/init", "system/status", "system/session_state_changed", "system/background_tasks_changed",
		"system/task_started", "system/task_progress", "system/task_updated", "system/task_notification",
		"system/hook_started", "system/hook_progress", "system/hook_response", "system/thinking_tokens",
		"system/api_retry", "system/compact_boundary", "system/permission_denied", "system/informational",
		"system/notification", "system/files_persisted", "system/elicitation_complete",
		"system/local_command_output", "system/control_request_progress", "system/commands_changed",
		"system/memory_recall", "system/mirror_error", "system/model_refusal_fallback",
		"system/model_refusal_no_fallback", "system/plugin_install", "system/session_writes_lost",
		"system/worker_shutting_down", "system/ui_invalidate", "system/plan_mode_changed", "system/goal_updated",
		"system/goal_cleared", "system/available_models_update", "system/mcp_status_change",
		"system/session_title_changed", "system/bridge_state", "system/post_turn_summary",
		"tool_progress", "tool_use_summary", "auth_status", "rate_limit_event", "conversation_reset",
		"prompt_suggestion", "command_lifecycle", "active_goal", "cloud_agent_event",
		"transcript_mirror", "streamlined_text", "streamlined_tool_use_summary", "post_turn_summary",
		"keep_alive", "keepalive",
	} {
		typ, subtype, _ := strings.Cut(name, "/")
		m := newMessage(typ, subtype)
		require.NotNil(t, m, name)
		gotType, gotSubtype := m.wire()
		assert.Equal(t, name, wireName(gotType, gotSubtype))
		line, err := MarshalMessage(m)
		require.NoError(t, err, name)
		assert.IsType(t, m, decode(t, strings.TrimSpace(string(line))), name)
	}
}

func TestMarshalUserLine(t *testing.T) {
	t.Parallel()
	line, err := AppendUserLine(nil, &UserMessage{Message: UserContent{Content: TextContent("a < b\n")}}, SessionIDAlways)
	require.NoError(t, err)
	assertLine(t, `{"type":"user","session_id":"","message":{"role":"user","content":[{"type":"text","text":"a < b\n"}]},"parent_tool_use_id":null}`, line)

	no := false
	m := &UserMessage{
		Common:         Common{UUID: "u", ParentToolUseID: "p"},
		Message:        UserContent{Role: "user", Content: StringContent("hi")},
		Priority:       "now",
		ShouldQuery:    &no,
		ClientComposed: true,
		CustomContext:  json.RawMessage(`{ "k": "v" }`),
	}
	line, err = AppendUserLine([]byte("before"), m, SessionIDIfSet)
	require.NoError(t, err)
	assert.Equal(t, `before{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":"p","uuid":"u","priority":"now","shouldQuery":false,"client_composed":true,"custom_context":{"k":"v"}}`+"\n", string(line))

	m.CustomContext = json.RawMessage(`{`)
	line, err = AppendUserLine([]byte("before"), m, SessionIDIfSet)
	require.Error(t, err)
	assert.Equal(t, "before", string(line))
	m.Message.Content = Content{&ToolUseBlock{Input: json.RawMessage("nope")}}
	_, err = AppendUserLine(nil, m, SessionIDAlways)
	require.ErrorContains(t, err, "message")
}

func FuzzDecodeMessage(f *testing.F) {
	for _, s := range []string{
		deltaLine, resultLine,
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"i","name":"n","input":{}}],"usage":{"input_tokens":1}}}`,
		`{"type":"user","message":{"role":"user","content":"x"},"tool_use_result":[1]}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}},"api_message_id":"m"}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"\ud83d\ude00\u00e9\n"}}}`,
		`{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}`,
		`{"type":"stream_event","event":null}`,
		`{"type":"system","subtype":"task_updated","patch":{"status":"killed"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		fr, err := ParseFrame(line)
		if err != nil {
			return
		}
		m := DecodeMessage(fr)
		require.NotNil(t, m)
		require.Equal(t, string(line), string(m.Raw()))
		if !json.Valid(line) {
			return
		}
		// The quick way and the usual way agree.
		if quick := decodeDeltaLine(&fr); quick != nil {
			usual := new(PartialAssistantMessage)
			require.NoError(t, json.Unmarshal(line, usual))
			usual.setRaw(line)
			require.Equal(t, usual, quick)
		}
		if _, unknown := m.(*UnknownMessage); unknown {
			return
		}
		again, err := MarshalMessage(m)
		require.NoError(t, err)
		fr2, err := ParseFrame(again[:len(again)-1])
		require.NoError(t, err)
		require.IsType(t, m, DecodeMessage(fr2))
	})
}
