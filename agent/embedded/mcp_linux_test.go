package embedded_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const more = "go on"

func use(tool string, in ...string) modelapi.Step {
	args := map[string]any{}
	if len(in) > 0 {
		args["x"] = in[0]
	}
	return modelapi.Say(modelapi.ToolUse("mcp__db__"+tool, args))
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// status is that of the server db.
func status(t *testing.T, c *sdk.Client) protocol.MCPServerStatus {
	t.Helper()
	all, err := c.MCPStatus(limited(t))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestAServerOfTheOptions(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, use("pid"), say("one"), use("roots"), say("two"))
	dir := withServer(t, o)
	c := open(t, o)
	assert.Equal(t, "one", ask(t, c, mine).Result)
	pid := noted(t, dir, "starts")
	require.Len(t, pid, 1)
	assert.Contains(t, seen.last(), "pid "+pid[0])
	ask(t, c, more)
	assert.Contains(t, seen.last(), "file://"+o.Cwd)

	st := status(t, c)
	assert.Equal(t, "connected", st.Status)
	assert.Equal(t, "stdio", st.Transport)
	assert.Equal(t, &protocol.MCPServerInfo{Name: "db", Version: "7"}, st.ServerInfo)
	assert.Len(t, st.Tools, 9)
	for _, list := range seen.tools(t) {
		assert.Equal(t, seen.tools(t)[0], list, "the list of tools is part of the cached prefix")
		assert.Contains(t, list, `"mcp__db__pid"`)
		assert.Contains(t, list, "The tool pid")
	}
	require.NoError(t, c.Close(limited(t)))
	assert.False(t, alive(t, pid[0]), "it ends with the session")
}

// A server has the environment of the session, and no keys but those that its own configuration gives it.
func TestAServerHasNoKeys(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, use("env"), say("done"))
	o.Env = map[string]string{"ANTHROPIC_API_KEY": "secret-1", "TROUPE_MODEL_KEY": "secret-2", "OTHER": "plain", "GIVEN": "secret-3", "PATH": os.Getenv("PATH")}
	o.UnsetEnv = []string{"HIDDEN"}
	withServer(t, o, "TOKEN=${GIVEN}", "MINE=${ANTHROPIC_API_KEY}", "NONE=${NO_SUCH_VARIABLE:-standard}")
	ask(t, open(t, o), mine)
	env := seen.last()
	assert.Contains(t, env, `OTHER=plain`)
	assert.Contains(t, env, `TOKEN=secret-3`)
	assert.Contains(t, env, `MINE=secret-1`, "the user has asked for it")
	assert.Contains(t, env, `NONE=standard`)
	assert.NotContains(t, env, "ANTHROPIC_API_KEY=")
	assert.NotContains(t, env, "secret-2")
}

// A call under way when a server dies fails, and is not made again; the next one starts the server.
func TestAServerThatDies(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, use("die"), use("pid"), say("done"), say("again"))
	dir := withServer(t, o)
	c := open(t, o)
	ask(t, c, mine)
	pids := noted(t, dir, "starts")
	require.Len(t, pids, 2)
	assert.Contains(t, seen.last(), "pid "+pids[1])
	all := strings.Join(seen.messages(), "")
	assert.Contains(t, all, "MCP server db has ended; it starts again with the next call")
	ask(t, c, "and now?")
	for _, list := range seen.tools(t) {
		assert.Equal(t, seen.tools(t)[0], list)
	}
	require.NoError(t, syscall.Kill(pidOf(t, pids[1]), syscall.SIGKILL))
	require.Eventually(t, func() bool { return status(t, c).Status == "failed" }, time.Minute, time.Millisecond)
}

func pidOf(t *testing.T, text string) int {
	t.Helper()
	var pid int
	require.NoError(t, json.Unmarshal([]byte(text), &pid))
	return pid
}

// A server that does not start is reported, and the turn continues without it; a breaker keeps it from
// being started again and again.
func TestAServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("without it"), use("pid"), say("done"))
	dir := withServer(t, o, "BROKEN=1")
	c := open(t, o)
	assert.Equal(t, "without it", ask(t, c, mine).Result)
	st := status(t, c)
	assert.Equal(t, "failed", st.Status)
	assert.Contains(t, st.Error, "no database", "the end of its stderr")
	assert.Nil(t, st.ServerInfo)
	assert.NotContains(t, seen.tools(t)[0], "mcp__db__")
	for range 3 {
		require.Error(t, c.ReconnectMCPServer(limited(t), "db"))
	}
	assert.Len(t, noted(t, dir, "starts"), 3, "the breaker is open")
	assert.Contains(t, status(t, c).Error, "breaker")
	ask(t, c, more)
	assert.Contains(t, seen.last(), "No such tool available: mcp__db__pid")

	o.MCPServers["db"] = sdk.MCPServerConfig{Command: "troupe-no-such-program"}
	c = open(t, o)
	require.Eventually(t, func() bool { return status(t, c).Status == "failed" }, time.Minute, time.Millisecond)
}

// A server that is late is left out of the list until the host connects to it: the prefix of the requests
// stays the same.
func TestAServerThatIsLate(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("one"), say("two"), use("pid"), say("three"))
	o.Env = map[string]string{"MCP_TIMEOUT": "6000"}
	dir := withServer(t, o, "LATE=1")
	c := open(t, o)
	ask(t, c, mine)
	assert.Equal(t, "failed", status(t, c).Status)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	ask(t, c, more)
	lists := seen.tools(t)
	assert.NotContains(t, lists[0], "mcp__db__")
	assert.Equal(t, lists[0], lists[1])

	require.Eventually(t, func() bool { return c.ReconnectMCPServer(limited(t), "db") == nil }, time.Minute, 10*time.Millisecond)
	ask(t, c, more)
	lists = seen.tools(t)
	assert.Contains(t, lists[2], "mcp__db__pid")
	assert.Equal(t, lists[2], lists[3])
	assert.Contains(t, seen.last(), "pid ")
}

// Tools that a server adds within a turn are in the list from the next turn on.
func TestAServerWhoseToolsChange(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, append([]modelapi.Step{use("more"), use("pid")}, slices.Repeat([]modelapi.Step{say("one")}, 1000)...)...)
	withServer(t, o)
	c := open(t, o)
	ask(t, c, mine)
	lists := seen.tools(t)
	require.Len(t, lists, 3)
	assert.Equal(t, lists[0], lists[1])
	assert.Equal(t, lists[0], lists[2])
	require.Eventually(t, func() bool { // the server waits a little before it says so
		ask(t, c, more)
		lists := seen.tools(t)
		return strings.Contains(lists[len(lists)-1], `"mcp__db__extra"`)
	}, time.Minute, 10*time.Millisecond)
}

// An interrupt ends the call and not the server, and so does a limit of time.
func TestACallThatIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, interrupts := range map[string]bool{"interrupt": true, "limit": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, seen := logged(t, use("slow"), say("after"), use("pid"), say("done"))
			if !interrupts {
				o.Env = map[string]string{"MCP_TOOL_TIMEOUT": "4000"} // the other call has as long
			}
			dir := withServer(t, o)
			c := open(t, o)
			if interrupts {
				turn, err := c.Send(limited(t), sdk.UserText(mine))
				require.NoError(t, err)
				require.Eventually(t, func() bool { return len(noted(t, dir, "slow")) > 0 }, time.Minute, time.Millisecond)
				_, err = c.Interrupt(limited(t))
				require.NoError(t, err)
				r, err := turn.Result(limited(t))
				require.NoError(t, err)
				assert.True(t, r.IsError)
				ask(t, c, more)
			} else {
				assert.Equal(t, "after", ask(t, c, mine).Result)
				assert.Contains(t, seen.last(), "MCP error -32001: Request timed out")
			}
			require.Eventually(t, func() bool { return len(noted(t, dir, "slow")) == 2 }, time.Minute, time.Millisecond, "it is cancelled")
			ask(t, c, more)
			assert.Contains(t, strings.Join(seen.messages(), ""), "pid "+noted(t, dir, "starts")[0])
			assert.Len(t, noted(t, dir, "starts"), 1)
		})
	}
}

// A server that says that its tools have changed, and does not say how, holds up one turn for
// MCP_TIMEOUT. The list stays as it was.
func TestAServerThatDoesNotListItsTools(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, append([]modelapi.Step{use("mute")}, slices.Repeat([]modelapi.Step{say("one")}, 1000)...)...)
	o.Env = map[string]string{"MCP_TIMEOUT": "5000"}
	withServer(t, o)
	c := open(t, o)
	ask(t, c, mine)
	require.Eventually(t, func() bool { // the server waits a little before it says so
		ask(t, c, more)
		return status(t, c).Status == "failed"
	}, time.Minute, 10*time.Millisecond)
	assert.Contains(t, status(t, c).Error, "tools/list of the MCP server db")
	lists := seen.tools(t)
	assert.Equal(t, lists[0], lists[len(lists)-1])
}

// A question without an answer does not outlast the calls of its server.
func TestAQuestionIsWithdrawn(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, use("ask"), say("after"))
	o.Env = map[string]string{"MCP_TOOL_TIMEOUT": "200"}
	withServer(t, o)
	o.OnElicitation = func(ctx context.Context, _ *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
		<-ctx.Done()
		return protocol.ElicitationResult{}, ctx.Err()
	}
	assert.Equal(t, "after", ask(t, open(t, o), mine).Result)
	assert.Contains(t, seen.last(), "MCP error -32001: Request timed out")
}

// A server's question to a person goes to the host.
func TestAServerAsks(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, use("ask"), say("done"))
	withServer(t, o)
	o.OnElicitation = func(_ context.Context, r *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
		assert.Equal(t, "db", r.MCPServerName)
		assert.Equal(t, "Your name?", r.Message)
		assert.Equal(t, "form", r.Mode)
		return protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"name":"Ada"}`)}, nil
	}
	ask(t, open(t, o), mine)
	assert.Contains(t, seen.last(), `accept {\"name\":\"Ada\"}`)

	o, seen = logged(t, use("ask"), say("done"))
	withServer(t, o)
	ask(t, open(t, o), mine)
	assert.Contains(t, seen.last(), "decline", "without a callback")
}

// Rules, policies of single tools, hooks and the callback see each call.
func TestGatesOfServers(t *testing.T) {
	t.Parallel()
	var asked, hooked []string
	o, seen := logged(t, use("pid"), use("env"), use("roots"), use("more"), say("done"))
	o.PermissionMode, o.AllowDangerouslySkipPermissions = "", false
	withServer(t, o)
	c := o.MCPServers["db"]
	c.Tools = []session.MCPToolPolicy{{Name: "pid", PermissionPolicy: session.AlwaysAllow}, {Name: "env", PermissionPolicy: session.AlwaysDeny}}
	o.MCPServers["db"] = c
	o.DisallowedTools = []string{"mcp__db__more"}
	o.CanUseTool = func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		asked = append(asked, r.ToolName)
		assert.JSONEq(t, `{"name":"db","source":"dynamic"}`, string(mustJSON(t, r.MCPServer)))
		return sdk.Allow(), nil
	}
	o.Hooks = []sdk.Hook{sdk.OnHookEvent("PreToolUse", func(_ context.Context, call *session.HookCall) (json.RawMessage, error) {
		var in struct {
			Tool string `json:"tool_name"`
		}
		require.NoError(t, json.Unmarshal(call.Input, &in))
		hooked = append(hooked, in.Tool)
		return nil, nil
	})}
	ask(t, open(t, o), mine)
	assert.Equal(t, []string{"mcp__db__roots"}, asked)
	assert.Equal(t, []string{"mcp__db__pid", "mcp__db__roots"}, hooked)
	text := strings.Join(seen.messages(), "")
	assert.Contains(t, text, "Permission to use mcp__db__env has been denied.")
	assert.Contains(t, text, "Permission to use mcp__db__more has been denied.")

	asked = nil
	o, _ = logged(t, use("roots"), say("done"))
	withServer(t, o)
	c = o.MCPServers["db"]
	c.Tools = []session.MCPToolPolicy{{Name: "roots", PermissionPolicy: session.AlwaysAsk}}
	o.MCPServers["db"] = c
	o.CanUseTool = func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		asked = append(asked, r.ToolName)
		return sdk.Allow(), nil
	}
	ask(t, open(t, o), mine)
	assert.Equal(t, []string{"mcp__db__roots"}, asked, "also with bypassPermissions")
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// A server that is turned off ends, and its tools are gone from the next turn on.
func TestAServerIsTurnedOff(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("one"), use("pid"), say("two"), use("pid"), say("three"))
	dir := withServer(t, o)
	c := open(t, o)
	ask(t, c, mine)
	require.NoError(t, c.ToggleMCPServer(limited(t), "db", false))
	assert.False(t, alive(t, noted(t, dir, "starts")[0]))
	assert.Equal(t, "disabled", status(t, c).Status)
	ask(t, c, more)
	assert.NotContains(t, seen.tools(t)[1], "mcp__db__")
	assert.Contains(t, seen.last(), "No such tool available: mcp__db__pid")
	require.NoError(t, c.ToggleMCPServer(limited(t), "db", true))
	ask(t, c, more)
	assert.Contains(t, seen.last(), "pid "+noted(t, dir, "starts")[1])
}

// Servers that the host sets while the session runs.
func TestServersThatAreSet(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("one"), use("pid"), say("two"), say("three"))
	dir := withServer(t, o)
	given := o.MCPServers["db"]
	o.MCPServers = nil
	c := open(t, o)
	ask(t, c, mine)
	set := map[string]protocol.MCPServerConfig{
		"db":   {Command: given.Command, Args: given.Args, Env: given.Env},
		"odd":  {Type: "ws", URL: "ws://x"},
		"none": {Command: "troupe-no-such-program"},
	}
	r, err := c.SetMCPServers(limited(t), set)
	require.NoError(t, err)
	assert.Equal(t, []string{"db", "none"}, r.Added)
	assert.Contains(t, r.Errors["odd"], "ws")
	ask(t, c, more)
	pid := noted(t, dir, "starts")
	require.Len(t, pid, 1)
	assert.Contains(t, seen.last(), "pid "+pid[0])
	r, err = c.SetMCPServers(limited(t), map[string]protocol.MCPServerConfig{"db": set["db"]})
	require.NoError(t, err)
	assert.Equal(t, []string{"none"}, r.Removed)
	assert.True(t, alive(t, pid[0]), "what has not changed stays")
	_, err = c.SetMCPServers(limited(t), nil)
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return !alive(t, pid[0]) }, time.Minute, time.Millisecond)
	ask(t, c, more)
	assert.NotContains(t, seen.tools(t)[3], "mcp__db__")
}

// A session that comes back has the same list of tools, also when a server does not start any more.
func TestAServerIsNotThereWhenASessionComesBack(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, use("pid"), say("one"), use("pid"), say("two"))
	withServer(t, o)
	c := open(t, o)
	ask(t, c, mine)
	require.NoError(t, c.Close(limited(t)))
	next := *o
	next.Resume = c.SessionID()
	withServer(t, &next, "BROKEN=1")
	again := open(t, &next)
	ask(t, again, more)
	lists := seen.tools(t)
	require.Len(t, lists, 4)
	assert.Equal(t, lists[0], lists[2])
	assert.Equal(t, "failed", status(t, again).Status)
	assert.Contains(t, seen.last(), "no database")
	all := seen.messages()
	assert.True(t, strings.HasPrefix(all[2], all[1]))
}

// A long result is in a file, whose path the model reads.
func TestLongResultsOfServers(t *testing.T) {
	t.Parallel()
	server, err := modelapi.Start(modelapi.Config{
		Scenarios:   map[string]modelapi.Scenario{"mine": {use("big", "3000"), use("big", "30000"), say("done")}},
		CountTokens: func(r modelapi.Request) int { return len(r.Body) / 4 },
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	o, seen := logged(t)
	o.Backend = embedded.New(embedded.Config{
		Name: "claude-sonnet-4-5", Dir: t.TempDir(),
		Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1", Client: &http.Client{Transport: seen}}}),
	})
	withServer(t, o)
	c := open(t, o)
	ask(t, c, mine)
	all := strings.Join(seen.messages(), "")
	for _, text := range []string{
		`<persisted-output>\nOutput too large (49.8KB). Full output saved to: /`,
		`Error: result (510,000 characters across 30,000 lines) exceeds maximum allowed tokens. Output has been saved to /`,
	} {
		assert.True(t, strings.Contains(all, text), text) //nolint:testifylint // the text is too long for a message
	}
}

// The file of MCPConfigPath has the vendors' form.
func TestAFileOfServers(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, use("pid"), say("done"))
	dir := withServer(t, o)
	text, err := json.Marshal(map[string]any{"mcpServers": o.MCPServers})
	require.NoError(t, err)
	o.MCPServers = nil
	require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "mcp.json"), text, 0o600))
	o.MCPConfigPath = "mcp.json"
	ask(t, open(t, o), mine)
	assert.Contains(t, seen.last(), "pid "+noted(t, dir, "starts")[0])
	for path, want := range map[string]string{"none.json": "cannot be read", "bad.json": "cannot be read", "odd.json": `mcpServers["x"].HeadersHelper (embedded): is not run`} {
		require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "bad.json"), []byte("[]"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "odd.json"), []byte(`{"mcpServers":{"x":{"type":"http","url":"http://h","headersHelper":"p"}}}`), 0o600))
		o.MCPConfigPath = path
		_, err := connect(t, o)
		require.ErrorAs(t, err, new(*sdk.ConfigError), path)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "MCPConfigPath")
	}
}

// A field of a server's configuration that this agent cannot use is an error that names it.
func TestConfigurationsOfServersThatAreErrors(t *testing.T) {
	t.Parallel()
	const url = "http://localhost:1/mcp"
	for _, tt := range []struct {
		field, what string
		c           sdk.MCPServerConfig
	}{
		{"Extra", `has "cwd", "icon", which`, sdk.MCPServerConfig{Command: "x", Extra: map[string]json.RawMessage{"icon": []byte(`1`), "cwd": []byte(`"/"`)}}},
		{"OAuth", `has "xaa", which`, sdk.MCPServerConfig{Type: "http", URL: url, OAuth: []byte(`{"clientId":"a","xaa":true}`)}},
		{"OAuth", "is no object", sdk.MCPServerConfig{Type: "http", URL: url, OAuth: []byte(`[]`)}},
		{"OAuth", "is for servers of type http", sdk.MCPServerConfig{Command: "x", OAuth: []byte(`{}`)}},
		{"OAuth", "callbackPort 70000", sdk.MCPServerConfig{Type: "http", URL: url, OAuth: []byte(`{"callbackPort":70000}`)}},
		{"AlwaysLoad", "is false", sdk.MCPServerConfig{Command: "x", AlwaysLoad: session.Some(false)}},
		{"HeadersHelper", "is not run", sdk.MCPServerConfig{Type: "http", URL: url, HeadersHelper: "p"}},
	} {
		o, _ := logged(t)
		o.MCPServers = map[string]sdk.MCPServerConfig{"db": tt.c}
		_, err := connect(t, o)
		var wrong *sdk.ConfigError
		require.ErrorAs(t, err, &wrong, tt.what)
		assert.Equal(t, `MCPServers["db"].`+tt.field, wrong.Option)
		assert.Contains(t, wrong.Problem, tt.what)
	}
}
