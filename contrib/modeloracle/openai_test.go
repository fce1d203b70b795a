package modeloracle_test

import (
	"encoding/json"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// completion is a small answer of the API.
func completion() []byte {
	return stream(
		`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"hé"},"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"Read","arguments":""}}]},"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":5}}}`,
		`[DONE]`)
}

func completions(w *wire) *model.Client {
	return model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "https://api.example/v1", Client: w.client()}})
}

func vendorOfCompletions(w *wire) openai.Client {
	return openai.NewClient(option.WithBaseURL("https://api.example/v1/"), option.WithAPIKey("k"), option.WithHTTPClient(w.client()), option.WithMaxRetries(0))
}

// The same conversation is the same request.
func TestRequestsOfCompletions(t *testing.T) {
	t.Parallel()
	codec := completions(&wire{}).Codec()
	call := func(id string) openai.ChatCompletionMessageToolCallUnionParam {
		return openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: id, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "Read", Arguments: `{"n":12345678901234567}`},
		}}
	}
	use := func(id string) model.Block {
		return model.Block{Kind: model.ToolUse, ID: id, Name: "Read", Input: json.RawMessage(`{"n":12345678901234567}`)}
	}
	looked := openai.AssistantMessage("I look.")
	looked.OfAssistant.ToolCalls = []openai.ChatCompletionMessageToolCallUnionParam{call("t1"), call("t2")}
	for name, c := range map[string]struct {
		ours   model.Request
		theirs openai.ChatCompletionNewParams
	}{
		"texts": {
			model.Request{System: []string{"one"}, MaxTokens: 100, Effort: "low", Messages: encoded(codec, said(model.User, text("a \"b\" \\ \n <é> 日 😀")), said(model.Assistant, text("ho")), said(model.User, text("x")))},
			openai.ChatCompletionNewParams{
				MaxCompletionTokens: openai.Int(100), ReasoningEffort: shared.ReasoningEffortLow,
				Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("one"), openai.UserMessage("a \"b\" \\ \n <é> 日 😀"), openai.AssistantMessage("ho"), openai.UserMessage("x")},
			},
		},
		"tools, calls and their results": {
			model.Request{
				Tools: codec.Tools([]model.Tool{{Name: "Read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}), User: "me", Cache: true,
				Messages: encoded(codec, said(model.User, text("hi")), said(model.Assistant, text("I look."), use("t1"), use("t2")),
					said(model.User, model.Block{Kind: model.ToolResult, ID: "t1", Text: "one"}, model.Block{Kind: model.ToolResult, ID: "t2", Text: "two"}, text("go on"))),
			},
			openai.ChatCompletionNewParams{
				PromptCacheKey: openai.String("me"),
				Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
					Name: "Read", Description: openai.String("Reads."), Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
				})},
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi"), looked, openai.ToolMessage("one", "t1"), openai.ToolMessage("two", "t2"), openai.UserMessage("go on")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{header: eventStream(), answer: completion()}
			c.ours.Model, c.theirs.Model = "gpt-x", "gpt-x"
			c.theirs.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
			ask(t, completions(w), &c.ours)
			vendor := vendorOfCompletions(w)
			s := vendor.Chat.Completions.NewStreaming(t.Context(), c.theirs)
			for s.Next() {
			}
			require.NoError(t, s.Err())
			require.Len(t, w.asked, 2)
			assert.Equal(t, w.paths[1], w.paths[0])
			assert.JSONEq(t, string(w.asked[1]), string(w.asked[0]))
		})
	}
}

// The same bytes are the same answer, in the form that the API promises. Other habits of
// servers are in the tests of package model.
func TestAnswersOfCompletions(t *testing.T) {
	t.Parallel()
	for _, r := range append(recordings(t, "/chat/completions"), recording{"small", completion()}) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := &wire{header: eventStream(), answer: r.body}
			m := completions(w)
			ours := ask(t, m, &model.Request{Model: "gpt-x", Messages: encoded(m.Codec(), said(model.User, text("hi")))})
			vendor := vendorOfCompletions(w)
			s := vendor.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "gpt-x", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}})
			var theirs openai.ChatCompletionAccumulator
			var usage openai.CompletionUsage // the accumulator adds what some servers send twice
			for s.Next() {
				if u := s.Current().Usage; u.TotalTokens > 0 {
					usage = u
				}
				if !theirs.AddChunk(s.Current()) {
					t.Skip("the vendor's library does not take this stream")
				}
			}
			require.NoError(t, s.Err())
			require.NotEmpty(t, theirs.Choices)
			choice := theirs.Choices[0]
			var said string
			var calls []model.Block
			for _, b := range ours.blocks {
				switch b.Kind {
				case model.Text:
					said += b.Text
				case model.ToolUse:
					calls = append(calls, b)
				default:
				}
			}
			assert.Equal(t, choice.Message.Content, said)
			require.Len(t, calls, len(choice.Message.ToolCalls))
			for i, c := range choice.Message.ToolCalls {
				assert.Equal(t, []string{c.ID, c.Function.Name}, []string{calls[i].ID, calls[i].Name})
				if calls[i].BadInput == "" {
					assert.JSONEq(t, orObject(json.RawMessage(c.Function.Arguments)), string(calls[i].Input))
				}
			}
			if usage.TotalTokens == 0 {
				return // the server says it elsewhere, or not at all
			}
			assert.EqualValues(t, usage.PromptTokens, ours.usage.Input+ours.usage.CacheRead+ours.usage.CacheWrite)
			output := usage.CompletionTokens
			if rest := usage.TotalTokens - usage.PromptTokens; rest > output {
				output = rest // the server does not count the tokens of thinking there
			}
			assert.EqualValues(t, output, ours.usage.Output)
		})
	}
}
