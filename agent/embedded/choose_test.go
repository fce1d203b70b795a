package embedded_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// The host chooses the model of each call, as with qodercli. A choice that cannot be followed
// fails the call and says why; the session continues.
func TestTheHostChoosesTheModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		choose func(n int) (protocol.ModelPolicyReply, error)
		asked  string
		fails  string
	}{
		"each call":     {func(n int) (protocol.ModelPolicyReply, error) { return sdk.UseModel([]string{"a", "b"}[n]), nil }, "a b", ""},
		"the agent's":   {func(int) (protocol.ModelPolicyReply, error) { return sdk.KeepModel(), nil }, "m m", ""},
		"an error":      {func(int) (protocol.ModelPolicyReply, error) { return sdk.KeepModel(), errors.New("no") }, "", "the host's choice of the model failed"},
		"an empty name": {func(int) (protocol.ModelPolicyReply, error) { return sdk.UseModel(""), nil }, "", "an empty model"},
		"parameters": {func(int) (protocol.ModelPolicyReply, error) {
			return sdk.WithParameters(sdk.UseModel("a"), map[string]int{"top_k": 1})
		}, "", "it has parameters"},
		"another API": {func(int) (protocol.ModelPolicyReply, error) {
			return sdk.UseOwnModel("a", protocol.CustomModel{Provider: "openai", APIKey: "secret"}), nil
		}, "", `has the API "openai"`},
		"no address": {func(int) (protocol.ModelPolicyReply, error) {
			return sdk.UseOwnModel("a", protocol.CustomModel{Provider: "x", Style: "anthropic", APIKey: "secret"}), nil
		}, "", `the provider "x" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := plays(t, messagesAPI(), calling("c1", "Bash", `{"command":"true"}`), saying("x"))
			var asks []*protocol.ModelPolicyRequest
			var mu sync.Mutex
			o.ResolveModel = func(_ context.Context, r *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
				mu.Lock()
				defer mu.Unlock()
				asks = append(asks, r)
				return c.choose(len(asks) - 1)
			}
			o.ResolveModelTimeout = -1
			r := ask(t, open(t, o), mine)
			assert.Equal(t, c.asked, strings.Join(p.models(), " "))
			assert.Equal(t, c.fails != "", r.IsError)
			assert.Contains(t, r.Result, c.fails)
			assert.NotContains(t, string(r.Raw()), "secret")
			require.NotEmpty(t, asks)
			assert.Equal(t, "main", asks[0].Purpose)
			assert.Equal(t, "m", asks[0].ResolvedModel)
			assert.Equal(t, r.SessionID, asks[0].SessionID)
			assert.Positive(t, asks[0].EstimatedInputTokens)
		})
	}
}

// A model that the host has chosen is not replaced by a fallback: the call was to go nowhere else.
func TestAChosenModelIsNotReplaced(t *testing.T) {
	t.Parallel()
	p, o := plays(t, messagesAPI(), failing(model.Quota, 402), saying("x"))
	o.FallbackModel, o.ResolveModelTimeout = "b", -1
	o.ResolveModel = func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
		return sdk.UseModel("a"), nil
	}
	assert.True(t, ask(t, open(t, o), mine).IsError)
	assert.Equal(t, []string{"a"}, p.models())
}

// The user's endpoint gets the call, with the user's key.
func TestTheUsersOwnModel(t *testing.T) {
	t.Parallel()
	own, o := started(t, say("from the user's"))
	o.Backend = embedded.New(embedded.Config{Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: "http://127.0.0.1:1"}}), Name: "m", Dir: t.TempDir(), Retries: -1})
	o.ResolveModelTimeout = -1
	o.ResolveModel = func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
		return sdk.UseOwnModel("mine", protocol.CustomModel{Provider: "anthropic", Style: "anthropic", URL: own.URL() + "/v1", APIKey: "user-key"}), nil
	}
	r := ask(t, open(t, o), mine)
	assert.Equal(t, "from the user's", r.Result)
	all := own.Requests()
	require.NotEmpty(t, all)
	assert.Equal(t, "mine", all[len(all)-1].Model)
	assert.Equal(t, "user-key", all[len(all)-1].Header.Get("X-Api-Key"))
}
