package model_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

func TestRefs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]model.Ref{
		"anthropic/claude-x":                     {API: "anthropic", URL: model.AnthropicURL, Model: "claude-x"},
		"openai/gpt-x":                           {API: "openai", URL: model.OpenAIURL, Model: "gpt-x"},
		"http://localhost:11434/v1#qwen3:8b":     {API: "openai", URL: "http://localhost:11434/v1", Model: "qwen3:8b"},
		"https://openrouter.ai/api/v1#a/b":       {API: "openai", URL: "https://openrouter.ai/api/v1", Model: "a/b"},
		"anthropic+http://127.0.0.1:1/v1#m":      {API: "anthropic", URL: "http://127.0.0.1:1/v1", Model: "m"},
		"openai+http://127.0.0.1:1/v1/#m":        {API: "openai", URL: "http://127.0.0.1:1/v1", Model: "m"},
		"http://h/v1/chat/completions#m":         {API: "openai", URL: "http://h/v1", Model: "m"},
		"anthropic+https://h/v1/messages#m":      {API: "anthropic", URL: "https://h/v1", Model: "m"},
		"https://x.openai.azure.com/openai/v1#d": {API: "openai", URL: "https://x.openai.azure.com/openai/v1", Model: "d"},
	} {
		got, err := model.ParseRef(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
		again, err := model.ParseRef(got.String())
		require.NoError(t, err, text)
		assert.Equal(t, want, again)
	}
	for text, want := range map[string]string{
		"": "it is empty", "gpt-5": "it has no provider", "openai/": "it has no name", "mistral/x": `no provider is called "mistral"`,
		"http://h/v1": "no model is named", "ftp://h/v1#m": `its scheme is "ftp"`, "http:///v1#m": "its URL has no host", "http://u:pw@h/v1#m": "password", "http://h:a b/#m": "it is not a URL",
	} {
		_, err := model.ParseRef(text)
		var e *model.RefError
		require.ErrorAs(t, err, &e, text)
		assert.Contains(t, err.Error(), want)
		assert.Contains(t, err.Error(), "http://localhost:11434/v1#NAME")
		assert.NotContains(t, err.Error(), "pw@")
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	p := model.DefaultProfiles()
	assert.Equal(t, 200000, p.Model("claude-sonnet-4-5-20250929").Window)
	assert.InDelta(t, 3, p.Model("anthropic/claude-sonnet-4-5").Price.Input, 0)
	assert.InDelta(t, 5, p.Model("claude-opus-4-5-20251101").Price.Input, 0)
	assert.Nil(t, p.Model("something").Price, "a price that is not known is none")
	assert.Equal(t, "reasoning_content", p.Server("https://api.deepseek.com/v1").Quirks.Reasoning)
	assert.Equal(t, "api-key", p.Server("https://mine.openai.azure.com/openai/v1").Quirks.APIKeyHeader)
	assert.Equal(t, model.Quirks{}, p.Server(model.OpenAIURL).Quirks)
	assert.Equal(t, "max_tokens", p.Server("http://localhost:11434/v1").Quirks.MaxTokens)
	assert.Equal(t, "ANTHROPIC_API_KEY", p.Server(model.AnthropicURL).KeyName)

	own, err := model.ReadProfiles(strings.NewReader(`{"models":[{"match":"qwen*","window":1000,"price":{"input":1,"output":2,"cacheRead":0.5,"cacheWrite":4}}],"servers":[{"match":"localhost:11434","quirks":{"maxTokens":"-"}}]}`))
	require.NoError(t, err)
	both := p.Extend(own)
	assert.Equal(t, 1000, both.Model("qwen3:8b").Window)
	assert.Equal(t, 200000, both.Model("claude-sonnet-4").Window)
	assert.Equal(t, "-", both.Server("http://localhost:11434/v1").Quirks.MaxTokens)
	assert.InDelta(t, 1+2*2+3*.5+4*4, both.Model("qwen3").Price.Cost(model.Usage{Input: 1e6, Output: 2e6, CacheRead: 3e6, CacheWrite: 4e6}), 1e-9)

	assert.Equal(t, "claude-haiku-5-5", p.Named("haiku", "anthropic/claude-sonnet-4-5"))
	assert.Empty(t, p.Named("haiku", "gpt-5"), "a short name holds beside its own kind of models alone")
	assert.Empty(t, p.Named("gpt-5", "claude-sonnet-4-5"))
	own, err = model.ReadProfiles(strings.NewReader(`{"names":{"claude*":{"haiku":"claude-haiku-4-5"},"qwen*":{"small":"qwen3:1b"},"qwen3*":{"small":"qwen3:4b"}}}`))
	require.NoError(t, err)
	both = p.Extend(own)
	assert.Equal(t, "claude-haiku-4-5", both.Named("haiku", "claude-sonnet-4-5"))
	assert.Equal(t, p.Named("opus", "claude-x"), both.Named("opus", "claude-x"), "other names stay")
	assert.Equal(t, "qwen3:4b", both.Named("small", "qwen3:8b"), "the longer pattern counts")
	assert.Equal(t, "claude-haiku-5-5", p.Named("haiku", "claude-x"), "what is extended stays as it was")

	for text, want := range map[string]string{
		`{"model":[]}`: `unknown field "model"`, `{"models":[{"match":"["}]}`: "models[0].match", `{"models":[{"match":""}]}`: "models[0].match",
		`{"models":[{"match":"x","window":-1}]}`: "negative number", `{"models":[{"match":"x","price":{"output":-1}}]}`: "negative price", `{"servers":[{"match":"["}]}`: "servers[0].match", `{"names":{"[":{}}}`: "which is no pattern", `{} {}`: "something follows", ``: "EOF",
	} {
		_, err := model.ReadProfiles(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
	assert.Equal(t, "openai", model.Open(model.Ref{API: "openai", URL: model.OpenAIURL}, model.Config{}, nil).Codec().Name())
	assert.Equal(t, "anthropic", model.Open(model.Ref{API: "anthropic", URL: "http://h"}, model.Config{}, both).Codec().Name())
}
