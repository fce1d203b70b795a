package sdk_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// says is a server with one tool.
func says(t *testing.T, name, text string) *sdk.MCPServer {
	t.Helper()
	s, err := sdk.NewMCPServer(name, "1", saying("say", sdk.Text(text), nil))
	require.NoError(t, err)
	return s
}

func TestServersThatComeAndGo(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/method/setMcpServers", "claude/method/toggleMcpServer", "claude/method/mcpServerStatus", "claude/feature/Dynamic-MCP")
	in(t, func(w *world) {
		call := func(server string) scripted.Turn {
			return turn(&scripted.MCPCall{Server: server, Tool: "say", Gate: agent.GateAllow})
		}
		one, two := says(w.T, "one", "from one"), says(w.T, "two", "from two")
		o := w.options(call("one"), call("two"), call("one"), call("two"))
		o.SDKMCPServers = []*sdk.MCPServer{one}
		c := w.connect(o)
		said := func() string {
			turn, err := c.Send(w.Context(), sdk.UserText("go"))
			require.NoError(w, err)
			all, err := sdk.Collect(turn.Messages(w.Context()))
			require.NoError(w, err)
			text, _ := toolResult(w, all)
			return text
		}
		assert.Equal(w, "from one", said())
		r, err := c.SetMCPServers(w.Context(), nil, two, one)
		require.NoError(w, err)
		assert.Equal(w, []string{"two"}, r.Added)
		assert.Empty(w, r.Removed)
		assert.Equal(w, "from two", said(), "the agent has asked it for its tools")
		r, err = c.SetMCPServers(w.Context(), nil, two)
		require.NoError(w, err)
		assert.Equal(w, []string{"one"}, r.Removed)
		assert.Contains(w, said(), "mcp__one__say", "the agent has forgotten it")
		require.NoError(w, c.ToggleMCPServer(w.Context(), "two", false))
		require.NoError(w, c.ToggleMCPServer(w.Context(), "two", true))
		assert.Equal(w, "from two", said())
		status, err := c.MCPStatus(w.Context())
		require.NoError(w, err)
		require.Len(w, status, 1)
		assert.Equal(w, "mcp__two__say", protocol.MCPToolName(status[0].Name, status[0].Tools[0].Name))
		w.close(c)
	})
}

func TestServersThatCannotBeAdded(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		one := says(w.T, "one", "1")
		o := w.options()
		o.SDKMCPServers = []*sdk.MCPServer{one}
		c := w.connect(o)
		external := map[string]protocol.MCPServerConfig{"out": {Command: "serve"}}
		_, err := c.SetMCPServers(w.Context(), external, nil, says(w.T, "one", "another"), says(w.T, "out", ""), says(w.T, "new", ""), says(w.T, "new", ""))
		all := sdk.ConfigErrors(err)
		if assert.Len(w, all, 4) {
			assert.Contains(w, all[0].Error(), "own[0]: is nil")
			assert.Contains(w, all[1].Error(), `own[1]: the session has another server "one"`)
			assert.Contains(w, all[2].Error(), `own[2]: another server is called "out", too`)
			assert.Contains(w, all[3].Error(), `own[4]: another server is called "new", too`)
		}
		assert.Len(w, external, 1, "what the caller gave is not changed")
		w.close(c)
		_, err = c.SetMCPServers(w.Context(), nil, one)
		require.Error(w, err)
	})
}

func TestQoderTakesNoServersOfThisProcessLater(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.script(scripted.Script{Dialect: agent.Qoder})
		o.Auth = sdk.QoderCLIAuth()
		c := w.connect(o)
		_, err := c.SetMCPServers(w.Context(), nil, says(w.T, "one", "1"))
		var unsupported *session.UnsupportedCapabilityError
		require.ErrorAs(w, err, &unsupported)
		_, err = c.SetMCPServers(w.Context(), nil)
		require.NoError(w, err)
		w.close(c)
	})
}

// A wrapped server that was added later is closed when it is removed, and at
// the session's end, whatever that is.
func TestWrappedServerThatWasAddedLater(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, c *sdk.Client){
		"removed": func(t *testing.T, c *sdk.Client) {
			_, err := c.SetMCPServers(t.Context(), nil)
			require.NoError(t, err)
		},
		"closed": func(t *testing.T, c *sdk.Client) { require.NoError(t, c.Close(context.Background())) },
		"agent dies": func(t *testing.T, c *sdk.Client) {
			turn, err := c.Send(t.Context(), sdk.UserText("die"))
			require.NoError(t, err)
			_, err = turn.Result(t.Context())
			require.Error(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, clients := weatherServer(t)
			ask := &scripted.MCPCall{Server: "weather", Tool: "now", Arguments: map[string]any{"city": "Bonn"}, Gate: agent.GateAllow}
			c := sdk.NewClient(&sdk.Options{Backend: scripted.New(scripted.WithTurns(turn(ask), turn(&scripted.Exit{Code: 3})))})
			require.NoError(t, c.Connect(t.Context()))
			_, err := c.SetMCPServers(t.Context(), nil, server)
			require.NoError(t, err)
			first, err := c.Send(t.Context(), sdk.UserText("go"))
			require.NoError(t, err)
			_, err = first.Result(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, clients())
			end(t, c)
			require.Eventually(t, func() bool { return clients() == 0 }, 20*time.Second, time.Millisecond)
			_ = c.Close(context.Background()) // of an agent that died
		})
	}
}

func TestMCPToolName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "mcp__my_srv__do_it", protocol.MCPToolName("my.srv", "do it"))
}
