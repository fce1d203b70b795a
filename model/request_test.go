package model_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// sent is the body and the header of a request.
func sent(t *testing.T, api string, q model.Quirks, r *model.Request) (string, http.Header) {
	t.Helper()
	var body []byte
	var header http.Header
	client := &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		var err error
		body, err = io.ReadAll(req.Body)
		require.NoError(t, err)
		require.Equal(t, int64(len(body)), req.ContentLength)
		header = req.Header
		again, err := req.GetBody()
		require.NoError(t, err)
		twice, err := io.ReadAll(again)
		require.NoError(t, err)
		require.Equal(t, body, twice)
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody}, nil
	})}
	require.Error(t, open(api, client, q).Stream(t.Context(), r, all))
	require.True(t, json.Valid(body), "%s", body)
	return string(body), header
}

// conversation has everything that a conversation may have.
func conversation() []*model.Message {
	return []*model.Message{
		{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: "do \"it\"\n<now>"}, {Kind: model.Image, Content: json.RawMessage(`{"type":"base64","media_type":"image/png","data":"AA=="}`)}}},
		{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Text, Text: "I look."}, {Kind: model.ToolUse, ID: "c1", Name: "Read", Input: json.RawMessage(`{"b":1,"a":12345678901234567890}`)}, {Kind: model.ToolUse, ID: "c2", Name: "Bash", Input: json.RawMessage(`{}`), BadInput: `{"x`}}},
		{Role: model.User, Blocks: []model.Block{{Kind: model.ToolResult, ID: "c1", Text: "text"}, {Kind: model.ToolResult, ID: "c2", IsError: true, Content: json.RawMessage(`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]`)}, {Kind: model.Text, Text: "and now?"}}},
	}
}

func request(m *model.Client, messages []*model.Message) *model.Request {
	r := &model.Request{
		Model: "m", System: []string{"be brief", "be kind"}, MaxTokens: 100, Effort: "high", ThinkingTokens: 2000, User: "u", Cache: true, ToolChoice: "Read",
		Tools: m.Codec().Tools([]model.Tool{{Name: "Read", Description: "reads", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "Bare"}}),
	}
	for _, msg := range messages {
		r.Messages = append(r.Messages, m.Codec().Message(msg))
	}
	return r
}

func TestRequestOfMessages(t *testing.T) {
	t.Parallel()
	got, header := sent(t, "anthropic", model.Quirks{}, request(open("anthropic", nil, model.Quirks{}), conversation()))
	assert.JSONEq(t, `{"model":"m","max_tokens":100,"stream":true,"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"high"},
		"tool_choice":{"type":"tool","name":"Read"},"metadata":{"user_id":"u"},
		"system":[{"type":"text","text":"be brief"},{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"Read","description":"reads","input_schema":{"type":"object"}},{"name":"Bare","input_schema":{"type":"object","properties":{}}}],
		"messages":[
			{"role":"user","content":[{"type":"text","text":"do \"it\"\n<now>"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},
			{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"Read","input":{"b":1,"a":12345678901234567890}},{"type":"tool_use","id":"c2","name":"Bash","input":{},"cache_control":{"type":"ephemeral"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"text"},
				{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}],"is_error":true},
				{"type":"text","text":"and now?","cache_control":{"type":"ephemeral"}}]}]}`, got)
	assert.Contains(t, got, `{"b":1,"a":12345678901234567890}`, "the input is what the model wrote")
	assert.Contains(t, got, `<now>`, "no more escapes than JSON demands")
	assert.Equal(t, "2023-06-01", header.Get("Anthropic-Version"))
	assert.Empty(t, header.Get("X-Api-Key"))
}

func TestRequestOfChatCompletions(t *testing.T) {
	t.Parallel()
	r := request(open("openai", nil, model.Quirks{}), conversation())
	got, _ := sent(t, "openai", model.Quirks{}, r)
	messages := `[
		{"role":"system","content":"be brief"},{"role":"system","content":"be kind"},
		{"role":"user","content":[{"type":"text","text":"do \"it\"\n<now>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
		{"role":"assistant","content":"I look.","tool_calls":[{"type":"function","id":"c1","function":{"name":"Read","arguments":"{\"b\":1,\"a\":12345678901234567890}"}},{"type":"function","id":"c2","function":{"name":"Bash","arguments":"{\"x"}}]},
		{"role":"tool","tool_call_id":"c1","content":"text"},
		{"role":"tool","tool_call_id":"c2","content":"a\n[image]"},
		{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"and now?"}]}]`
	tools := `[{"type":"function","function":{"name":"Read","description":"reads","parameters":{"type":"object"}}},{"type":"function","function":{"name":"Bare","parameters":{"type":"object","properties":{}}}}]`
	assert.JSONEq(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"reasoning_effort":"high","prompt_cache_key":"u",
		"tool_choice":{"type":"function","function":{"name":"Read"}},"tools":`+tools+`,"messages":`+messages+`}`, got)

	got, header := sent(t, "openai", model.Quirks{MaxTokens: "max_tokens", Effort: "reasoning.effort", NoStreamOptions: true, NoCacheKey: true, Developer: true, CacheMarks: true, APIKeyHeader: "api-key"}, r)
	messages = strings.Replace(messages, `{"role":"system","content":"be kind"}`, `{"role":"system","content":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}]}`, 1)
	assert.JSONEq(t, `{"model":"m","stream":true,"max_tokens":100,"reasoning":{"effort":"high"},
		"tool_choice":{"type":"function","function":{"name":"Read"}},"tools":`+tools+`,"messages":`+strings.ReplaceAll(messages, `"system"`, `"developer"`)+`}`, got)
	assert.Empty(t, header.Get("Authorization"))

	got, _ = sent(t, "openai", model.Quirks{MaxTokens: "-", Effort: "-"}, &model.Request{Model: "m", MaxTokens: 5, Effort: "low", Tools: []byte("[]"), Messages: [][]byte{[]byte(`{"role":"user","content":"x"}`)}})
	assert.JSONEq(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"x"}]}`, got)
}

// Each request has the one before as its prefix, but for the marks of the cache.
func TestARequestIsAPrefixOfTheNext(t *testing.T) {
	t.Parallel()
	all := conversation()
	for _, api := range []string{"anthropic", "openai"} {
		before := ""
		for n := 1; n <= len(all); n++ {
			r := request(open(api, nil, model.Quirks{}), all[:n])
			r.Cache = false
			got, _ := sent(t, api, model.Quirks{}, r)
			assert.True(t, strings.HasPrefix(got, strings.TrimSuffix(before, "]}")), "%s: %s\n%s", api, before, got)
			before = got
		}
	}
}

func TestMessagesThatAServerRefuses(t *testing.T) {
	t.Parallel()
	m := open("openai", nil, model.Quirks{}).Codec()
	user := func(s string) []byte {
		return m.Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: s}}})
	}
	assistant := m.Message(&model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Text, Text: "x"}}})
	body, _ := sent(t, "openai", model.Quirks{Merge: true}, &model.Request{Messages: [][]byte{user("a"), user("b\"}"), user("{\"role\":"), user("d"), assistant, user("e")}})
	assert.Contains(t, body, `"messages":[{"role":"user","content":"a\n\nb\"}\n\n{\"role\":\n\nd"},{"role":"assistant","content":"x"},{"role":"user","content":"e"}]`)
	body, _ = sent(t, "openai", model.Quirks{}, &model.Request{Messages: [][]byte{user("a"), user("b")}})
	assert.Contains(t, body, `[{"role":"user","content":"a"},{"role":"user","content":"b"}]`)

	// No message is empty, and no text.
	for _, blocks := range [][]model.Block{nil, {{Kind: model.Text}}, {{Kind: model.Opaque, Origin: "openai", Raw: json.RawMessage(`{}`)}}} {
		got := open("anthropic", nil, model.Quirks{}).Codec().Message(&model.Message{Role: model.Assistant, Blocks: blocks})
		assert.JSONEq(t, `{"role":"assistant","content":[{"type":"text","text":"(no content)"}]}`, string(got))
		assert.JSONEq(t, `{"role":"assistant","content":""}`, string(m.Message(&model.Message{Role: model.Assistant, Blocks: blocks})))
	}
}

func TestMarksOfTheCache(t *testing.T) {
	t.Parallel()
	m := open("anthropic", nil, model.Quirks{})
	thought := model.Block{Kind: model.Thinking, Text: `},{"type":"`, Signature: "s", Origin: "anthropic"}
	for name, c := range map[string]struct {
		blocks []model.Block
		marked bool
	}{
		"text":                {[]model.Block{{Kind: model.Text, Text: "x"}}, true},
		"thinking last":       {[]model.Block{{Kind: model.Text, Text: "x"}, thought}, false},
		"thinking, then text": {[]model.Block{thought, {Kind: model.Text, Text: "x"}}, true},
		"encrypted, last":     {[]model.Block{{Kind: model.Opaque, Origin: "anthropic", Raw: json.RawMessage(`{"type":"redacted_thinking","data":"x"}`)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, _ := sent(t, "anthropic", model.Quirks{}, request(m, []*model.Message{{Role: model.Assistant, Blocks: c.blocks}}))
			assert.Equal(t, c.marked, strings.Contains(body[strings.Index(body, `"messages"`):], "cache_control"), body)
		})
	}
}

func TestStringsOfRequests(t *testing.T) {
	t.Parallel()
	c := open("openai", nil, model.Quirks{}).Codec()
	for _, s := range []string{"", "plain", "é日😀", "\x00\x1f\x7f", "\u2028", `"\/`, "a\xffb\xc3", "\xe2\x82", "<&>", "\r\n\t"} {
		var m struct{ Content string }
		require.NoError(t, json.Unmarshal(c.Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: s}}}), &m))
		assert.Equal(t, strings.ToValidUTF8(s, "\ufffd"), strings.ReplaceAll(m.Content, "\ufffd\ufffd", "\ufffd"), "%q", s)
	}
}
