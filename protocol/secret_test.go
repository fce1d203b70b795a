package protocol_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

func TestSecretsAreWrittenAndNotShown(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	model := protocol.CustomModel{Provider: "acme", APIKey: secret, URL: "https://u:" + secret + "@acme.example/v1"}
	for _, v := range []any{
		model, &model, []protocol.CustomModel{model},
		protocol.ModelPolicyReply{CustomModel: &model},
		protocol.BYOKConfig{ProviderID: "acme", APIKey: secret, BaseURL: "https://u:" + secret + "@acme.example/v1"},
		protocol.CreateBYOKConfigRequest{Config: protocol.BYOKConfig{APIKey: secret}},
		protocol.ValidateBYOKModelRequest{Provider: "acme", APIKey: secret, URL: "https://u:" + secret + "@acme.example/v1"},
		protocol.TokenReply{Token: secret},
		protocol.MCPInjectTokenRequest{ServerName: "acme", Token: protocol.MCPToken{AccessToken: secret}},
	} {
		wire, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Contains(t, string(wire), secret, "%T", v)
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v %s", v, v, v, v), secret, "%T", v)
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		assert.NotContains(t, log.String(), secret, "%T", v)
	}
	assert.Contains(t, model.String(), "acme")
	assert.NotContains(t, protocol.CustomModel{}.String(), "hidden", "there is nothing to hide")
	assert.Contains(t, protocol.CustomModel{URL: "https://acme.example/v1"}.String(), "https://acme.example/v1")
	// A handler of JSON would marshal what does not say otherwise.
	for _, v := range []any{
		model, &model, protocol.ModelPolicyReply{CustomModel: &model}, protocol.BYOKConfig{APIKey: secret},
		protocol.CreateBYOKConfigRequest{Config: protocol.BYOKConfig{APIKey: secret}},
		&protocol.UpdateBYOKConfigRequest{Config: protocol.BYOKConfig{APIKey: secret}},
		&protocol.ValidateBYOKModelRequest{APIKey: secret}, protocol.TokenReply{Token: secret}, protocol.MCPToken{AccessToken: secret},
		&protocol.BYOKConfigsResponse{Configs: []protocol.BYOKConfig{{APIKey: secret}}}, &protocol.BYOKConfigResponse{Config: protocol.BYOKConfig{APIKey: secret}},
		&protocol.CheckBYOKConfigRequest{Config: protocol.BYOKConfig{APIKey: secret}},
		&protocol.MCPInjectTokenRequest{Token: protocol.MCPToken{AccessToken: secret}},
	} {
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		assert.NotContains(t, log.String(), secret, "%T", v)
	}
}
