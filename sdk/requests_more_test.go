package sdk_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

func TestRequestsThatTheDocumentsDoNotName(t *testing.T) {
	t.Parallel()
	nothing := func(err error) (any, error) { return nil, err }
	yes := true
	for name, tc := range map[string]requestCase{
		"FileSuggestions": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.FileSuggestionsResponse](ctx, c, protocol.FileSuggestionsRequest{Query: "go"}))
		},
			`{"subtype":"file_suggestions","query":"go"}`, `{"suggestions":[{"path":"go.mod","score":1}]}`, &protocol.FileSuggestionsResponse{Suggestions: []protocol.FileSuggestion{{Path: "go.mod", Score: 1}}}},
		"BinaryVersion": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.BinaryVersionResponse](ctx, c, protocol.BinaryVersionRequest{}))
		},
			`{"subtype":"get_binary_version"}`, `{"version":"2"}`, &protocol.BinaryVersionResponse{Version: "2"}},
		"CurrentModels": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.CurrentModels(ctx)) },
			`{"subtype":"list_models"}`, `{"models":[{"value":"m"}]}`, []protocol.ModelInfo{{Value: "m"}}},
		"SessionCost": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.TextResponse](ctx, c, protocol.SessionCostRequest{}))
		},
			`{"subtype":"get_session_cost"}`, `{"text":"$1"}`, &protocol.TextResponse{Text: "$1"}},
		"ExportConversation": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.TextResponse](ctx, c, protocol.ExportConversationRequest{}))
		},
			`{"subtype":"export_conversation"}`, `{"text":"t","default_filename":"f"}`, &protocol.TextResponse{Text: "t", DefaultFilename: "f"}},
		"Plan": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.PlanResponse](ctx, c, protocol.GetPlanRequest{}))
		},
			`{"subtype":"get_plan"}`, `{"exists":true,"content":"c","path":"p"}`, &protocol.PlanResponse{Exists: true, Content: "c", Path: "p"}},
		"StatusPage": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.StatusResponse](ctx, c, protocol.GetStatusRequest{}))
		},
			`{"subtype":"get_status"}`, `{"sections":[{"title":"t","rows":[{"label":"l","value":"v"}]}]}`,
			&protocol.StatusResponse{Sections: []protocol.StatusSection{{Title: "t", Rows: []protocol.StatusRow{{Label: "l", Value: "v"}}}}}},
		"CallMCPTool": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[struct{ X int }](ctx, c, protocol.MCPCallRequest{Tool: "mcp__db__q", Arguments: json.RawMessage(`{"a":1}`)}))
		}, `{"subtype":"mcp_call","tool":"mcp__db__q","arguments":{"a":1}}`, `{"x":7}`, &struct{ X int }{7}},
		"RegisterRepoRoot": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(heard(sdk.Call[any](ctx, c, protocol.RegisterRepoRootRequest{Directory: "/r", ReloadSkills: true})))
		}, `{"subtype":"register_repo_root","directory":"/r","reload_skills":true}`, ``, nil},
		"SetColor": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(heard(sdk.Call[any](ctx, c, protocol.SetColorRequest{Color: "red"})))
		},
			`{"subtype":"set_color","color":"red"}`, ``, nil},
		"SetHasSubscribers": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(heard(sdk.Call[any](ctx, c, protocol.SetHasSubscribersRequest{HasSubscribers: &yes})))
		}, `{"subtype":"set_has_subscribers","has_subscribers":true}`, ``, nil},
		"SetHasSubscribers, not known": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(heard(sdk.Call[any](ctx, c, protocol.SetHasSubscribersRequest{})))
		}, `{"subtype":"set_has_subscribers","has_subscribers":null}`, ``, nil},

		"BYOKConfigs": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.BYOKConfigs(ctx)) },
			`{"type":"list_byok_configs","subtype":"list_byok_configs"}`, `{"configs":[{"providerId":"p"}]}`, []protocol.BYOKConfig{{ProviderID: "p"}}},
		"ValidateBYOKModel": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.ValidateBYOKModel(ctx, protocol.ValidateBYOKModelRequest{Provider: "p", Model: "m", APIKey: "k"}))
		}, `{"type":"validate_byok_model","provider":"p","model":"m","api_key":"k","subtype":"validate_byok_model"}`, `{"success":true}`, &protocol.SuccessResponse{Success: true}},
		"EnableRemoteProjection": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.EnableRemoteProjection(ctx, protocol.EnableRemoteProjectionRequest{RemoteSessionID: "r"}))
		}, `{"type":"enable_remote_projection","remote_session_id":"r","subtype":"enable_remote_projection"}`, `{"remote_session_id":"r"}`,
			&protocol.RemoteProjectionResponse{RemoteSessionID: "r"}},
		"DisableRemoteProjection": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.DisableRemoteProjection(ctx)) },
			`{"type":"disable_remote_projection","subtype":"disable_remote_projection"}`, `{}`, &protocol.RemoteProjectionResponse{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if method := methodOf(name); method != "" {
				parity.Covers(t, "qoder/method/"+method)
			}
			tc.check(t)
		})
	}
}

// heard is whether the agent has accepted a request.
func heard[R any](_ *R, err error) error { return err }

func TestModelsThatSomebodyElseChooses(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		script := scripted.Script{Dialect: agent.Qoder}
		o := &sdk.Options{Runtime: w.rt, Backend: sdk.InMemory(scripted.New(scripted.WithScript(&script)), agent.Qoder), Auth: sdk.QoderCLIAuth()}
		o.ResolveModel = func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
			return sdk.KeepModel(), nil
		}
		c := w.connect(o)
		var config *sdk.ConfigError
		require.ErrorAs(w, c.SetModel(w.Context(), "auto"), &config)
		assert.Equal(w, "ResolveModel", config.Option)
		w.close(c)
	})
	_, err := sdk.Run(t.Context(), "hi", &sdk.Options{Backend: scripted.New(), ResolveModel: func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
		return sdk.KeepModel(), nil
	}})
	var config *sdk.ConfigError
	require.ErrorAs(t, err, &config)
	assert.Equal(t, "ResolveModel", config.Option)
	assert.Equal(t, "claude", config.Backend)
}

// As the vendor's SDK answered (observed on the Qoder SDK 1.0.39).
func TestFormsOfAModelPolicy(t *testing.T) {
	t.Parallel()
	warm, err := sdk.WithParameters(sdk.UseOwnModel("m", protocol.CustomModel{Provider: "a", APIKey: "k", Style: "anthropic", URL: "http://u", IsVL: true}),
		map[string]int{"temperature": 1})
	require.NoError(t, err)
	for want, result := range map[string]protocol.ModelPolicyReply{
		`{"type":"get_model_policy"}`:                       sdk.KeepModel(),
		`{"type":"get_model_policy","model":"performance"}`: sdk.UseModel("performance"),
		`{"type":"get_model_policy","model":""}`:            sdk.UseModel(""),
		`{"type":"get_model_policy","model":"gpt-x","custom_model":{"provider":"openai","api_key":"sk","style":"openai"}}`: sdk.UseOwnModel("gpt-x",
			protocol.CustomModel{Provider: "openai", APIKey: "sk"}),
		`{"type":"get_model_policy","parameters":{"temperature":1},"model":"m","custom_model":{"provider":"a","api_key":"k","style":"anthropic","url":"http://u","isVl":true}}`: warm,
	} {
		in(t, func(w *world) {
			o := &sdk.Options{ResolveModelTimeout: time.Minute, ResolveModel: func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
				return result, nil
			}}
			got, failed := inquire(w, o, agent.Qoder, &scripted.ModelPolicy{})
			assert.JSONEq(w, want, got)
			assert.Empty(w, failed)
		})
	}
	for _, parameters := range []any{func() {}, 3, "x", []int{1}, nil} {
		_, err = sdk.WithParameters(sdk.KeepModel(), parameters)
		assert.Error(t, err, "%v", parameters)
	}
}
