package sdk_test

import (
	"context"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// weatherServer is a server of the official SDK with one tool, and how many clients
// it has at this moment.
func weatherServer(t *testing.T) (server *sdk.MCPServer, clients func() int) {
	t.Helper()
	official := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "weather", Version: "1"}, nil)
	type where struct {
		City string `json:"city"`
	}
	mcpsdk.AddTool(official, &mcpsdk.Tool{Name: "now", Description: "the weather now"},
		func(_ context.Context, _ *mcpsdk.CallToolRequest, in where) (*mcpsdk.CallToolResult, any, error) {
			return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Text: "rain in " + in.City}}}, nil, nil
		})
	server, err := sdk.WrapMCPServer("weather", official)
	require.NoError(t, err)
	return server, func() int {
		n := 0
		for range official.Sessions() {
			n++
		}
		return n
	}
}

func TestWrappedServerLivesAsLongAsTheSession(t *testing.T) {
	t.Parallel()
	ask := &scripted.MCPCall{Server: "weather", Tool: "now", Arguments: map[string]any{"city": "Bonn"}}
	allow := []string{"mcp__weather"}

	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		server, clients := weatherServer(t)
		o := &sdk.Options{Backend: scripted.New(scripted.WithTurns(turn(ask))), SDKMCPServers: []*sdk.MCPServer{server}, AllowedTools: allow}
		var told string
		for m, err := range sdk.Query(t.Context(), "hi", o) {
			require.NoError(t, err)
			for _, r := range sdk.ToolResults(m) {
				told = r.Content.Text()
				assert.LessOrEqual(t, clients(), 1, "the session may be closing behind the reader already")
			}
		}
		assert.Equal(t, "rain in Bonn", told)
		assert.Zero(t, clients())
		r, err := sdk.Run(t.Context(), "hi", o)
		require.NoError(t, err, "the server serves session after session")
		assert.False(t, r.Failed())
	})
	t.Run("two sessions", func(t *testing.T) {
		t.Parallel()
		server, clients := weatherServer(t)
		o := &sdk.Options{Backend: scripted.New(), SDKMCPServers: []*sdk.MCPServer{server}}
		a, b := sdk.NewClient(o), sdk.NewClient(o)
		require.NoError(t, a.Connect(t.Context()))
		require.NoError(t, b.Connect(t.Context()))
		assert.Equal(t, 2, clients())
		require.NoError(t, a.Close(context.Background()))
		assert.Equal(t, 1, clients())
		require.NoError(t, b.Close(context.Background()))
		assert.Zero(t, clients())
	})
	t.Run("failed start", func(t *testing.T) {
		t.Parallel()
		server, clients := weatherServer(t)
		script := scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "refuse"}}}
		o := &sdk.Options{Backend: scripted.New(scripted.WithScript(&script)), SDKMCPServers: []*sdk.MCPServer{server}}
		require.Error(t, sdk.NewClient(o).Connect(t.Context()))
		assert.Zero(t, clients())
	})
	t.Run("agent dies", func(t *testing.T) {
		t.Parallel()
		server, clients := weatherServer(t)
		o := &sdk.Options{Backend: scripted.New(scripted.WithTurns(turn(&scripted.Exit{Code: 3}))), SDKMCPServers: []*sdk.MCPServer{server}}
		c := sdk.NewClient(o)
		require.NoError(t, c.Connect(t.Context()))
		turn, err := c.Send(t.Context(), sdk.UserText("hi"))
		require.NoError(t, err)
		_, err = turn.Result(t.Context())
		require.Error(t, err)
		for clients() > 0 { // closed by itself, without a Close
			require.NoError(t, t.Context().Err())
		}
		require.NoError(t, c.Close(context.Background()))
	})
}
