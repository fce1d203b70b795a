package modelapi_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

func TestChatCompletions(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	const tools = `"tools":[{"type":"function","function":{"name":"Bash"}}]`
	first := at(t, s, "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},`+tools+`,"messages":[{"role":"system","content":"Be short."},{"role":"user","content":"go [[scn:bash]]"}]}`)
	var deltas []string
	for _, data := range datas(first) {
		if data == "[DONE]" {
			deltas = append(deltas, data)
			continue
		}
		var c struct {
			Choices []struct {
				Delta  json.RawMessage `json:"delta"`
				Finish string          `json:"finish_reason"`
			} `json:"choices"`
			Usage struct {
				Total int `json:"total_tokens"`
			} `json:"usage"`
		}
		require.NoError(t, json.Unmarshal([]byte(data), &c))
		if len(c.Choices) == 0 {
			assert.Equal(t, 15, c.Usage.Total)
			continue
		}
		deltas = append(deltas, string(c.Choices[0].Delta)+c.Choices[0].Finish)
	}
	assert.Equal(t, []string{
		`{"role":"assistant","content":""}`,
		`{"content":"I will run "}`, `{"content":"a command."}`,
		`{"tool_calls":[{"index":0,"id":"toolu_msg_1_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"echo hi-from-bash\",\"description\":\"say hi\"}"}}]}`,
		`{}tool_calls`, "[DONE]",
	}, deltas)

	second := at(t, s, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"go [[scn:bash]]"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Bash","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"hi"}]}`)
	assert.Contains(t, second, `"message":{"role":"assistant","content":"Bash done."},"finish_reason":"stop"`)

	log := s.Requests()
	require.Len(t, log, 2)
	assert.Equal(t, []string{"Be short."}, log[0].System)
	assert.Equal(t, []string{"Bash"}, log[0].Tools)
	assert.Equal(t, modelapi.Marker{Scenario: "bash", Step: 1}, log[1].Marker)
	results := log[1].ToolResults()
	require.Len(t, results, 1)
	assert.Equal(t, "a", results[0].ToolUseID)
	assert.Equal(t, "hi", results[0].Text)
}

func TestKeysInTheOrderOfTheAPI(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	s.Script("tag", modelapi.Say(modelapi.Text("<a>&")))
	resp := post(t, s, "/v1/messages", map[string]any{"model": "m", "stream": true, "messages": []message{{"user", "go [[scn:tag]]"}}})
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for _, want := range []string{
		`data: {"type":"message_start","message":{"model":"m","id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,`,
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"<a"}}`,
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`,
	} {
		assert.Contains(t, string(all), want)
	}
}

func TestAnswerOfPromptsWithoutMarker(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{
		NoLog:       true,
		CountTokens: func(modelapi.Request) int { return 7 },
		Answer: func(c modelapi.Call) modelapi.Reply {
			return modelapi.Reply{ID: "msg_x", Blocks: []modelapi.Block{modelapi.RawToolUse("Read", `{"cut`).WithID("toolu_x")}, Broken: &modelapi.Fault{Type: "overloaded_error", Message: "Busy."}}
		},
	})
	resp := post(t, s, "/v1/messages", map[string]any{"model": "m", "stream": true, "messages": []message{{"user", "go"}}})
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, string(all), `"id":"msg_x"`)
	assert.Contains(t, string(all), `"id":"toolu_x"`)
	assert.Contains(t, string(all), `"partial_json":"{\"c"`)
	assert.True(t, strings.HasSuffix(string(all), "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy.\"}}\n\n"), "%s", all)
	count, err := io.ReadAll(post(t, s, "/v1/messages/count_tokens", map[string]any{"model": "m"}).Body)
	require.NoError(t, err)
	assert.JSONEq(t, `{"input_tokens":7}`, string(count))
	assert.Empty(t, s.Requests())
}

func TestCutAfterEvents(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	for name, clean := range map[string]bool{"reset": false, "end": true} {
		s.Script(name, modelapi.Always(modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("some words")}, Cut: &modelapi.Cut{Events: 3, Clean: clean, Times: 1}}))
		resp := post(t, s, "/v1/messages", map[string]any{"model": "m", "stream": true, "messages": []message{{"user", "go [[scn:" + name + "]]"}}})
		all, err := events(t, resp.Body)
		assert.Equal(t, clean, err == nil, name)
		assert.Equal(t, []string{"message_start", "content_block_start", "content_block_delta"}, names(all))
	}
}
