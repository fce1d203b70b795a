package sdk_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestACPOptions: what the protocol cannot express is a ConfigError before anything starts.
func TestACPOptions(t *testing.T) {
	t.Parallel()
	type change = func(*sdk.Options)
	usable := map[string]change{
		"Cwd":        func(o *sdk.Options) { o.Cwd = "/" },
		"MCPServers": func(o *sdk.Options) { o.MCPServers = map[string]session.MCPServerConfig{"m": {Command: "c"}} },
		"CanUseTool": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Allow(), nil
			}
		},
		"PermissionTimeout":      func(o *sdk.Options) { o.PermissionTimeout = time.Second },
		"IncludePartialMessages": func(o *sdk.Options) { o.IncludePartialMessages = true },
		"Env":                    func(o *sdk.Options) { o.Env = map[string]string{"A": "b"} },
		"MaxRestarts":            func(o *sdk.Options) { o.MaxRestarts = 2 },
		"MaxLine":                func(o *sdk.Options) { o.MaxLine = 1 << 20 },
		"Stderr":                 func(o *sdk.Options) { o.Stderr = func(string) {} },
	}
	for name, c := range usable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &acpAgent{}
			var o sdk.Options
			c(&o)
			overACP(t, a, &o, func(t *testing.T, w *acpWorld) {
				require.NoError(t, w.client.Connect(t.Context()))
				_, err := w.ask(t, "x")
				require.NoError(t, err)
			})
		})
	}
	server, err := sdk.NewMCPServer("s", "1")
	require.NoError(t, err)
	refused := map[string]change{
		"Hooks": func(o *sdk.Options) {
			o.Hooks = []session.Hook{sdk.OnStop(func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
				return sdk.FeedbackOutput{}, nil
			})}
		},
		"Policy":        func(o *sdk.Options) { o.Policy = &policy.Rules{} },
		"SDKMCPServers": func(o *sdk.Options) { o.SDKMCPServers = []*sdk.MCPServer{server} },
		"SystemPrompt":  func(o *sdk.Options) { o.SystemPrompt = session.SystemPrompt{Blocks: []string{"p"}} },
		"Tools":         func(o *sdk.Options) { o.Tools = session.Only("Bash") },
		"AllowedTools":  func(o *sdk.Options) { o.AllowedTools = []string{"Bash"} },
		"MaxTurns":      func(o *sdk.Options) { o.MaxTurns = session.Some(1) },
		"OutputFormat":  func(o *sdk.Options) { o.OutputFormat = &session.OutputFormat{Schema: json.RawMessage(`{}`)} },
		"SessionID":     func(o *sdk.Options) { o.SessionID = "acp-1" },
		"Auth":          func(o *sdk.Options) { o.Auth = sdk.AccessToken("t") },
		"PermissionMode": func(o *sdk.Options) {
			o.PermissionMode = protocol.ModeBypassPermissions
		},
		"PathToExecutable": func(o *sdk.Options) { o.PathToExecutable = "/x" },
		`MCPServers["m"]`: func(o *sdk.Options) {
			o.MCPServers = map[string]session.MCPServerConfig{"m": {Command: "c", Timeout: time.Second}}
		},
	}
	for name, c := range refused {
		t.Run("no "+name, func(t *testing.T) {
			t.Parallel()
			a := &acpAgent{}
			overACP(t, a, &sdk.Options{}, func(t *testing.T, w *acpWorld) {
				c(&w.options)
				err := sdk.NewClient(&w.options).Connect(t.Context())
				require.Error(t, err)
				var options []string
				for _, e := range session.ConfigErrors(err) {
					options = append(options, e.Option)
					assert.NotEmpty(t, e.Fix, e.Option)
				}
				assert.Equal(t, []string{name}, options, "%v", err)
				assert.Empty(t, a.requests(), "nothing was started")
			})
		})
	}
}

func TestACPWithoutACommand(t *testing.T) {
	t.Parallel()
	for _, b := range []sdk.Backend{acpclient.Backend(), acpclient.Backend(""), acpclient.Backend("a", "b\x00")} {
		var config *session.ConfigError
		require.ErrorAs(t, sdk.NewClient(&sdk.Options{Backend: b}).Connect(t.Context()), &config)
		assert.Equal(t, "Backend", config.Option)
	}
	var start *session.StartError
	require.ErrorAs(t, sdk.NewClient(&sdk.Options{Backend: acpclient.Backend("no-such-agent-of-acp")}).Connect(t.Context()), &start)
}

// TestACPMethods: of all requests of the host's a session has three.
func TestACPMethods(t *testing.T) {
	t.Parallel()
	a := &acpAgent{answers: map[string]string{
		"session/new":               `{"sessionId":"acp-1","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]},"configOptions":[{"id":"the-model","name":"Model","category":"model","type":"select","currentValue":"small","options":[{"value":"small","name":"S"},{"group":"g","name":"G","options":[{"value":"big","name":"B"}]}]}]}`,
		"session/set_mode":          `{}`,
		"session/set_config_option": `{"configOptions":[{"id":"the-model","name":"Model","category":"model","type":"select","currentValue":"big","options":[{"value":"small","name":"S"}]}]}`,
	}}
	overACP(t, a, &sdk.Options{Model: "big", PermissionMode: "code"}, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		assert.Equal(t, []string{"initialize", "session/new", "session/set_mode", "session/set_config_option"}, a.methods())
		assert.JSONEq(t, `{"sessionId":"acp-1","modeId":"code"}`, a.params("session/set_mode"))
		assert.JSONEq(t, `{"sessionId":"acp-1","configId":"the-model","value":"big"}`, a.params("session/set_config_option"))
		require.NoError(t, w.client.SetPermissionMode(t.Context(), "ask"))
		assert.JSONEq(t, `{"sessionId":"acp-1","modeId":"ask"}`, a.params("session/set_mode"))
		var control *session.ControlError
		require.ErrorAs(t, w.client.SetPermissionMode(t.Context(), "plan"), &control)
		require.ErrorContains(t, control, "ask, code")
		require.ErrorAs(t, w.client.SetModel(t.Context(), "big"), &control, "the agent has taken it back")
		require.NoError(t, w.client.SetModel(t.Context(), "small"))
		for _, r := range []protocol.HostRequest{protocol.StopTaskRequest{TaskID: "t"}, protocol.ContextUsageRequest{}, &protocol.UnknownHostRequest{Name: "of_next_week"}} {
			var unsupported *session.UnsupportedCapabilityError
			require.ErrorAs(t, heard(sdk.Call[any](t.Context(), w.client, r)), &unsupported, r.Subtype())
		}
	})
}
