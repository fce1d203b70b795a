package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/model"
)

func TestResultsOfAnEncodedMessage(t *testing.T) {
	t.Parallel()
	message := func(first string) *model.Message {
		return &model.Message{Role: model.User, Blocks: []model.Block{
			{Kind: model.ToolResult, ID: "a", Text: first, IsError: true},
			{Kind: model.ToolResult, ID: "b", Content: json.RawMessage(`[{"type":"text","text":"two  \u00e9"}]`)},
			{Kind: model.Text, Text: "and <this> & é"},
		}}
	}
	for _, m := range []*model.Client{model.NewAnthropic(model.AnthropicConfig{}), model.NewOpenAI(model.OpenAIConfig{})} {
		codec := m.Codec()
		long := codec.Message(message("a long result"))
		put := func(id string) (string, bool) { return "short", id == "a" }
		assert.Equal(t, string(codec.Message(message("short"))), string(codec.Results(long, put)), codec.Name())
		none := func(string) (string, bool) { return "", false }
		assert.Equal(t, string(long), string(codec.Results(long, none)), codec.Name())
		for _, other := range []string{"", "{", `{"role":"assistant","content":"plain"}`, `{"role":"tool"}`} {
			assert.Equal(t, other, string(codec.Results([]byte(other), put)), codec.Name())
		}
	}
}
