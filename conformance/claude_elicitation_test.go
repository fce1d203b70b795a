//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// askingServer makes this test binary an MCP server on stdio that asks the
// person: by a request of its own while it serves a call ("nested"), or, as it
// is from MCP 2026-07-28 on, by a result that says what is missing ("rounds").
const askingServer = "TROUPE_CONFORMANCE_ASKING"

func TestAskingServer(t *testing.T) {
	style := os.Getenv(askingServer)
	if style == "" {
		return // only a process that an agent starts plays it
	}
	o := &mcpsdk.ServerOptions{}
	if style == "nested" {
		o.SupportedProtocolVersions = []string{"2025-11-25"}
	}
	s := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "asking", Version: "1"}, o)
	asks := func(name string, question mcpsdk.ElicitParams) {
		mcpsdk.AddTool(s, &mcpsdk.Tool{Name: name, Description: "Asks.", Meta: mcpsdk.Meta{"anthropic/alwaysLoad": true}},
			func(ctx context.Context, req *mcpsdk.CallToolRequest, _ nothing) (*mcpsdk.CallToolResult, any, error) {
				var answer any
				var err error
				switch answers := req.Params.InputResponses; {
				case style == "nested":
					answer, err = req.Session.Elicit(ctx, &question)
				case len(answers) == 0:
					return &mcpsdk.CallToolResult{InputRequests: mcpsdk.InputRequestMap{"q": &question}}, nil, nil
				default:
					answer = answers["q"]
				}
				if err != nil {
					return nil, nil, err
				}
				said, err := json.Marshal(answer)
				return sdk.Text(string(said)), nil, err
			})
	}
	asks("form", mcpsdk.ElicitParams{Message: "Your name?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string", "title": "Name"}}, "required": []string{"name"},
	}})
	asks("url", mcpsdk.ElicitParams{Mode: "url", Message: "Log in, please.", URL: "https://example.com/login", ElicitationID: "e-1"})
	_ = s.Run(context.Background(), &mcpsdk.StdioTransport{})
	os.Exit(0)
}

// An MCP server asks the person, the agent asks the host, and what the host
// answers is what the server is told.
func TestElicitation(t *testing.T) {
	t.Parallel()
	type handler = session.ElicitationHandler
	answers := func(result protocol.ElicitationResult, err error) handler {
		return func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			return result, err
		}
	}
	for name, tc := range map[string]struct {
		style  string
		tool   string
		answer handler
		told   string // what the server is told
		failed int    // callbacks that the operator is told of
	}{
		"a form, accepted": {"nested", "form", func(_ context.Context, ask *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			assert.Equal(t, "asking", ask.MCPServerName)
			assert.Equal(t, "Your name?", ask.Message)
			assert.Equal(t, "form", ask.Mode)
			assert.Equal(t, []string{"name"}, ask.PropertyOrder)
			assert.Contains(t, string(ask.RequestedSchema), `"required":["name"]`)
			return sdk.AcceptElicitation(map[string]string{"name": "Zed"})
		}, `{"action":"accept","content":{"name":"Zed"}}`, 0},
		"a form, declined":     {"nested", "form", answers(protocol.ElicitationResult{Action: protocol.ElicitDecline}, nil), `{"action":"decline"}`, 0},
		"a form, cancelled":    {"nested", "form", answers(protocol.ElicitationResult{Action: protocol.ElicitCancel}, nil), `{"action":"cancel"}`, 0},
		"a form, not answered": {"nested", "form", answers(protocol.ElicitationResult{}, nil), `{"action":"decline"}`, 0},
		"a callback that fails": {"nested", "form", answers(protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"name":"Zed"}`)},
			errors.New("secret trouble")), `{"action":"decline"}`, 1},
		"nobody to ask": {"nested", "form", nil, `{"action":"decline"}`, 0},
		"a form in rounds, accepted": {"rounds", "form", func(_ context.Context, ask *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			assert.Equal(t, "Your name?", ask.Message)
			assert.Contains(t, string(ask.RequestedSchema), `"required":["name"]`)
			return sdk.AcceptElicitation(map[string]string{"name": "Zed"})
		}, `{"action":"accept","content":{"name":"Zed"}}`, 0},
		"a form in rounds, declined": {"rounds", "form", answers(protocol.ElicitationResult{Action: protocol.ElicitDecline}, nil), `{"action":"decline"}`, 0},
		"a page, visited": {"nested", "url", func(_ context.Context, ask *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			assert.Equal(t, "url", ask.Mode)
			assert.Equal(t, "https://example.com/login", ask.URL)
			assert.Equal(t, "e-1", ask.ElicitationID)
			return sdk.AcceptElicitation(nil)
		}, `{"action":"accept"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.model.Script("elicit", modelapi.Say(modelapi.ToolUse("mcp__asking__"+tc.tool, modelapi.Args{})), modelapi.Say(modelapi.Text("Asked.")))
			o := r.options()
			o.MCPServers = map[string]sdk.MCPServerConfig{"asking": {
				Command: os.Args[0], Args: []string{"-test.run=^TestAskingServer$"}, Env: map[string]string{askingServer: tc.style}, AlwaysLoad: sdk.Some(true),
			}}
			o.AllowedTools = []string{"mcp__asking"}
			o.OnElicitation = tc.answer
			all, result := r.once(o, "ask me [[scn:elicit]]")
			assert.False(t, result.Failed())
			told := r.toolResult(all).Content.Text()
			require.NotEmpty(t, told)
			assert.JSONEq(t, tc.told, told)
			assert.NotContains(t, told, "secret")
			assert.Len(t, r.failed(), tc.failed)
		})
	}
}
