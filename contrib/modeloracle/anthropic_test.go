package modeloracle_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

const origin = "anthropic" // of blocks that the Messages API has made

// answerOfMessages is the least answer of the API.
func answerOfMessages() []byte {
	return stream(
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}`,
		`{"type":"message_stop"}`)
}

func messages(w *wire) *model.Client {
	return model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: "https://api.example/v1", Client: w.client()}})
}

func vendorOfMessages(w *wire) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL("https://api.example/"), option.WithAPIKey("k"), option.WithHTTPClient(w.client()), option.WithMaxRetries(0))
}

// The same conversation is the same request.
func TestRequestsOfMessages(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`)
	read := anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: "Read", Description: anthropic.String("Reads a file."),
		InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"file_path": map[string]any{"type": "string"}}, Required: []string{"file_path"}},
	}}
	mark := anthropic.NewCacheControlEphemeralParam()
	codec := messages(&wire{}).Codec()
	hi := encoded(codec, said(model.User, text("hi")))
	least := func(more func(*anthropic.MessageNewParams)) anthropic.MessageNewParams {
		p := anthropic.MessageNewParams{Model: "claude-x", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))}}
		if more != nil {
			more(&p)
		}
		return p
	}
	for name, c := range map[string]struct {
		ours   model.Request
		theirs anthropic.MessageNewParams
	}{
		"a text": {model.Request{Messages: hi}, least(nil)},
		"what needs escapes": {
			model.Request{Messages: encoded(codec, said(model.User, text("a \"b\" \\ \n\t\x01 <é> 日 😀 &")))},
			least(func(p *anthropic.MessageNewParams) {
				p.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("a \"b\" \\ \n\t\x01 <é> 日 😀 &"))}
			}),
		},
		"a system prompt, marked with the last two messages": {
			model.Request{System: []string{"one", "two"}, Cache: true, Messages: encoded(codec, said(model.User, text("hi")), said(model.Assistant, text("ho")), said(model.User, text("x"), text("y")))},
			least(func(p *anthropic.MessageNewParams) {
				p.System = []anthropic.TextBlockParam{{Text: "one"}, {Text: "two", CacheControl: mark}}
				ho, y := anthropic.NewTextBlock("ho"), anthropic.NewTextBlock("y")
				ho.OfText.CacheControl, y.OfText.CacheControl = mark, mark
				p.Messages = append(p.Messages, anthropic.NewAssistantMessage(ho), anthropic.NewUserMessage(anthropic.NewTextBlock("x"), y))
			}),
		},
		"tools, a call and its result": {
			model.Request{
				Tools: codec.Tools([]model.Tool{{Name: "Read", Description: "Reads a file.", Schema: schema}}), ToolChoice: "Read", User: "me",
				Messages: encoded(codec, said(model.User, text("hi")),
					said(model.Assistant, text("I look."), model.Block{Kind: model.ToolUse, ID: "t1", Name: "Read", Input: json.RawMessage(`{"file_path":"a","n":12345678901234567}`)}),
					said(model.User, model.Block{Kind: model.ToolResult, ID: "t1", Text: "no", IsError: true})),
			},
			least(func(p *anthropic.MessageNewParams) {
				p.Tools, p.ToolChoice = []anthropic.ToolUnionParam{read}, anthropic.ToolChoiceParamOfTool("Read")
				p.Metadata = anthropic.MetadataParam{UserID: anthropic.String("me")}
				result := anthropic.ToolResultBlockParam{ToolUseID: "t1", IsError: anthropic.Bool(true)}
				result.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: "no"}}}
				p.Messages = append(p.Messages,
					anthropic.NewAssistantMessage(anthropic.NewTextBlock("I look."), anthropic.NewToolUseBlock("t1", json.RawMessage(`{"file_path":"a","n":12345678901234567}`), "Read")),
					anthropic.NewUserMessage(anthropic.ContentBlockParamUnion{OfToolResult: &result}))
			}),
		},
		"thinking and an image": {
			model.Request{
				ThinkingTokens: 2000,
				Messages: encoded(codec, said(model.User, model.Block{Kind: model.Image, Content: json.RawMessage(`{"type":"base64","media_type":"image/png","data":"aGk="}`)}),
					said(model.Assistant, model.Block{Kind: model.Thinking, Text: "let me see", Signature: "sig", Origin: origin}, text("ho")), said(model.User, text("x"))),
			},
			least(func(p *anthropic.MessageNewParams) {
				p.Thinking = anthropic.ThinkingConfigParamOfEnabled(2000)
				p.Messages = []anthropic.MessageParam{
					anthropic.NewUserMessage(anthropic.NewImageBlockBase64("image/png", "aGk=")),
					anthropic.NewAssistantMessage(anthropic.NewThinkingBlock("sig", "let me see"), anthropic.NewTextBlock("ho")),
					anthropic.NewUserMessage(anthropic.NewTextBlock("x")),
				}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{header: eventStream(), answer: answerOfMessages()}
			c.ours.Model, c.ours.MaxTokens = "claude-x", 100
			ask(t, messages(w), &c.ours)
			vendor := vendorOfMessages(w)
			s := vendor.Messages.NewStreaming(t.Context(), c.theirs)
			for s.Next() {
			}
			require.NoError(t, s.Err())
			require.Len(t, w.asked, 2)
			assert.Equal(t, w.paths[1], w.paths[0])
			assert.JSONEq(t, sameForms(t, w.asked[1]), sameForms(t, w.asked[0]))
		})
	}
}

// sameForms replaces the result of a tool that is a text by the list of blocks that says the
// same: the vendor's library has only that.
func sameForms(t *testing.T, body []byte) string {
	t.Helper()
	var r map[string]any
	require.NoError(t, json.Unmarshal(body, &r))
	for _, m := range r["messages"].([]any) {
		for _, b := range m.(map[string]any)["content"].([]any) {
			b := b.(map[string]any)
			if s, ok := b["content"].(string); ok && b["type"] == "tool_result" {
				b["content"] = []any{map[string]any{"type": "text", "text": s}}
			}
		}
	}
	out, err := json.Marshal(r)
	require.NoError(t, err)
	return string(out)
}

// The same bytes are the same answer.
func TestAnswersOfMessages(t *testing.T) {
	t.Parallel()
	for _, r := range append(recordings(t, "/messages"), recording{"least", answerOfMessages()}) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if bytes.Count(r.body, []byte("event:")) < bytes.Count(r.body, []byte("data:")) {
				t.Skip("the vendor's library reads no event without a name")
			}
			w := &wire{header: eventStream(), answer: r.body}
			m := messages(w)
			ours := ask(t, m, &model.Request{Model: "claude-x", Messages: encoded(m.Codec(), said(model.User, text("hi")))})
			vendor := vendorOfMessages(w)
			s := vendor.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{Model: "claude-x", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))}})
			var theirs anthropic.Message
			for s.Next() {
				require.NoError(t, theirs.Accumulate(s.Current()))
			}
			require.NoError(t, s.Err())
			assert.Equal(t, theirs.ID, ours.id)
			assert.Equal(t, string(theirs.Model), ours.model)
			assert.Equal(t, string(theirs.StopReason), ours.stop)
			assert.EqualValues(t, theirs.Usage.InputTokens, ours.usage.Input)
			assert.EqualValues(t, theirs.Usage.OutputTokens, ours.usage.Output)
			assert.EqualValues(t, theirs.Usage.CacheReadInputTokens, ours.usage.CacheRead)
			assert.EqualValues(t, theirs.Usage.CacheCreationInputTokens, ours.usage.CacheWrite)
			require.Len(t, ours.blocks, len(theirs.Content))
			for i, b := range theirs.Content {
				k := ours.blocks[i]
				switch k.Kind {
				case model.Text:
					assert.Equal(t, "text", string(b.Type))
					assert.Equal(t, b.Text, k.Text)
				case model.Thinking:
					assert.Equal(t, "thinking", string(b.Type))
					assert.Equal(t, b.Thinking, k.Text)
					assert.Equal(t, b.Signature, k.Signature)
				case model.ToolUse:
					assert.Equal(t, "tool_use", string(b.Type))
					assert.Equal(t, []string{b.ID, b.Name}, []string{k.ID, k.Name})
					if k.BadInput == "" {
						assert.JSONEq(t, orObject(b.Input), string(k.Input))
					}
				case model.Opaque:
					var kind struct {
						Type string `json:"type"`
					}
					require.NoError(t, json.Unmarshal(k.Raw, &kind))
					assert.Equal(t, string(b.Type), kind.Type)
				default:
					t.Errorf("no answer has a block of kind %s", k.Kind)
				}
			}
		})
	}
}

// orObject is the input of a tool without parameters, which the vendor's library leaves empty.
func orObject(input json.RawMessage) string {
	if len(input) == 0 {
		return "{}"
	}
	return string(input)
}
