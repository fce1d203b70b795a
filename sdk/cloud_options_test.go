package sdk_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestCloudOptions is what the vendor's SDK 1.0.39 says of each option and method, and what Troupe
// does: a ConfigError before anything starts, and an UnsupportedCapabilityError.
func TestCloudOptions(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/cloud/options-and-methods.json")
	require.NoError(t, err)
	var recorded [][2]string
	require.NoError(t, json.Unmarshal(content, &recorded))
	made := &session.CloudSessionCreate{EnvironmentID: "e"}
	agent := &session.CloudAgentReference{ID: "a"}
	some := session.CloudAgent{Session: session.CloudSession{ID: "s"}}
	type change = func(*sdk.Options)
	with := func(c session.CloudAgent) change { return func(o *sdk.Options) { o.ExperimentalCloudAgent = &c } }
	const at = "ExperimentalCloudAgent"
	cases := map[string]struct {
		change change
		option string // "": accepted
	}{
		"agent+session.id":   {with(session.CloudAgent{Agent: agent, Session: some.Session}), at + ".Agent"},
		"agent both":         {with(session.CloudAgent{Agent: &session.CloudAgentReference{ID: "a", Create: &session.CloudAgentCreate{Name: "n", Model: "auto"}}, Session: session.CloudSession{Create: made}}), at + ".Agent"},
		"session both":       {with(session.CloudAgent{Session: session.CloudSession{ID: "s", Create: made}}), at + ".Session"},
		"no agent":           {with(session.CloudAgent{Session: session.CloudSession{Create: made}}), at + ".Agent"},
		"no session":         {with(session.CloudAgent{Agent: agent}), at + ".Session"},
		"no env":             {with(session.CloudAgent{Agent: agent, Session: session.CloudSession{Create: &session.CloudSessionCreate{}}}), at + ".Session.Create.EnvironmentID"},
		"empty env":          {with(session.CloudAgent{Agent: agent, Session: session.CloudSession{Create: &session.CloudSessionCreate{}}}), at + ".Session.Create.EnvironmentID"},
		"empty object":       {with(session.CloudAgent{}), at + ".Session"},
		"cwd":                {func(o *sdk.Options) { o.Cwd = "/" }, "Cwd"},
		"model+maxTurns":     {func(o *sdk.Options) { o.Model, o.MaxTurns = "m", session.Some(1) }, "Model"},
		"undefined value ok": {func(o *sdk.Options) { o.Model = "" }, ""},
		"canUseTool": {func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Allow(), nil
			}
		}, "CanUseTool"},
		"mcpServers":              {func(o *sdk.Options) { o.MCPServers = map[string]session.MCPServerConfig{"m": {Command: "c"}} }, "MCPServers"},
		"resume":                  {func(o *sdk.Options) { o.Resume = "x" }, "Resume"},
		"stderr+env+debugFile ok": {func(o *sdk.Options) { o.Stderr, o.Env, o.DebugFile = func(string) {}, map[string]string{"A": "b"}, "f" }, ""},
		"auth qodercli":           {func(o *sdk.Options) { o.Auth = sdk.QoderCLIAuth() }, "Auth"},
		"auth serviceAccount":     {func(o *sdk.Options) { o.Auth = sdk.ServiceAccountKey("k") }, "Auth"},
		"auth missing":            {func(o *sdk.Options) { o.Auth = nil }, "Auth"},
		"auth from missing env":   {func(o *sdk.Options) { o.Auth = sdk.AccessTokenFromEnv("NOPE_PAT") }, "Auth"},
		"env token from options.env": {func(o *sdk.Options) {
			o.Auth, o.Env = sdk.AccessTokenFromEnv("OWN_PAT"), map[string]string{"OWN_PAT": cloudToken}
		}, ""},
		"env token from process.env": {func(o *sdk.Options) { o.Auth = sdk.AccessTokenFromEnv("TROUPE_TEST_PAT") }, "Auth"}, // not set here
		// Not recorded.
		"hooks":   {func(o *sdk.Options) { o.Hooks = []session.Hook{sdk.OnStop(nil)} }, "Hooks"},
		"policy":  {func(o *sdk.Options) { o.Policy = &policy.Rules{} }, "Policy"},
		"spawner": {func(o *sdk.Options) { o.Spawner = sdk.SpawnThrough(nil) }, "Spawner"},
		"claude":  {func(o *sdk.Options) { o.Backend = sdk.Claude(sdk.ClaudeConfig{Path: "/x"}) }, at},
		"a path":  {func(o *sdk.Options) { o.Backend = sdk.Qoder(sdk.QoderConfig{Path: "/x"}) }, at},
		"address": {func(o *sdk.Options) { o.Backend = cloud.Backend(cloud.Config{BaseURL: "cloud"}) }, "Backend"},
		"login":   {func(o *sdk.Options) { o.Backend = cloud.Backend(cloud.Config{BaseURL: "https://u:p@h/"}) }, "Backend"},
		"nothing": {func(o *sdk.Options) { o.ExperimentalCloudAgent = nil }, at},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := *existing()
			o.ExperimentalCloudAgent = &some
			o.Auth = sdk.AccessToken(cloudToken)
			server := &cloudtest.Server{}
			inCloud(t, server, &o, func(t *testing.T, w *cloudWorld) {
				own := w.options
				c.change(&own)
				client := sdk.NewClient(&own)
				err := client.Connect(t.Context())
				if c.option == "" {
					require.NoError(t, err)
					require.NoError(t, client.Close(t.Context()))
					return
				}
				var options []string
				for _, e := range session.ConfigErrors(err) {
					options = append(options, e.Option)
				}
				assert.Contains(t, options, c.option, "%v", err)
				assert.Empty(t, server.Requests(), "nothing was started")
			})
		})
	}
	methods := 0
	for _, r := range recorded {
		name, method := strings.CutPrefix(r[0], "method ")
		switch {
		case method:
			methods++
			assert.Contains(t, r[1], name)
		case r[0] == "methods absent", r[0] == "startup": // tested below
		default:
			assert.Contains(t, cases, r[0])
		}
	}
	assert.Equal(t, 34, methods)
}

// TestCloudMethods: of all requests of the host's a session in the cloud has interrupt.
func TestCloudMethods(t *testing.T) {
	t.Parallel()
	inCloud(t, &cloudtest.Server{}, existing(), func(t *testing.T, w *cloudWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		for _, r := range []protocol.HostRequest{
			protocol.SetModelRequest{}, protocol.SetPermissionModeRequest{Mode: protocol.ModePlan}, protocol.StopTaskRequest{TaskID: "t"},
			protocol.SetProxyRequest{}, protocol.FlushMemoryRequest{}, protocol.SetPlanModeRequest{}, protocol.ContextUsageRequest{},
			&protocol.UnknownHostRequest{Name: "of_next_week"},
		} {
			var unsupported *session.UnsupportedCapabilityError
			require.ErrorAs(t, heard(sdk.Call[any](t.Context(), w.client, r)), &unsupported, r.Subtype())
			assert.Equal(t, r.Subtype(), unsupported.Request)
		}
		assert.Len(t, w.server.Requests(), 1, "the stream")
		_, err := w.client.Interrupt(t.Context())
		require.NoError(t, err)
	})
	_, err := sdk.Prewarm(t.Context(), existing())
	require.Error(t, err)
	_, err = sdk.Sessions(&sdk.Options{Backend: cloud.Backend(cloud.Config{})})
	require.ErrorContains(t, err, "keeps no session files on this machine")
}
