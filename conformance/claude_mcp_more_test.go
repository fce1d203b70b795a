//go:build conformance

package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

type nothing struct{}

// serving are options with servers of this process, whose tools are allowed by
// rule.
func (r *rig) serving(servers ...*sdk.MCPServer) *sdk.Options {
	o := r.options()
	o.SDKMCPServers = servers
	for _, s := range servers {
		o.AllowedTools = append(o.AllowedTools, "mcp__"+s.Name())
	}
	return o
}

func (r *rig) server(name string, tools ...sdk.Tool) *sdk.MCPServer {
	r.t.Helper()
	s, err := sdk.NewMCPServer(name, "1.2.3", tools...)
	require.NoError(r.t, err)
	return s
}

// calls scripts a turn that calls tools, and returns the prompt.
func (r *rig) calls(blocks ...modelapi.Block) string {
	r.model.Script("calls", modelapi.Say(blocks...), modelapi.Say(modelapi.Text("Calls done.")))
	return "call them [[scn:calls]]"
}

// told is what the model was told of its calls.
func (r *rig) told() []modelapi.Content {
	r.t.Helper()
	return r.modelSaw("calls").ToolResults()
}

func TestWhatAToolCanSay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")
	s := r.server("srv", sdk.NewTool("rich", "Says much.", func(context.Context, nothing) (*sdk.ToolResult, error) {
		return &sdk.ToolResult{Content: []mcpsdk.Content{
			&mcpsdk.TextContent{Text: "a text"},
			&mcpsdk.ImageContent{Data: png, MIMEType: "image/png"},
			&mcpsdk.ResourceLink{URI: "file:///linked.txt", Name: "linked"},
			&mcpsdk.EmbeddedResource{Resource: &mcpsdk.ResourceContents{URI: "file:///embedded.txt", Text: "embedded text"}},
		}}, nil
	}, sdk.AlwaysLoad()), sdk.NewTool("structured", "Says it in JSON.", func(context.Context, nothing) (*sdk.ToolResult, error) {
		return &sdk.ToolResult{StructuredContent: map[string]any{"answer": 42}}, nil
	}, sdk.AlwaysLoad()), sdk.NewTool("empty", "Says nothing.", func(context.Context, nothing) (*sdk.ToolResult, error) {
		return nil, nil
	}, sdk.AlwaysLoad()), sdk.NewTool("audio", "Sings.", func(context.Context, nothing) (*sdk.ToolResult, error) {
		return &sdk.ToolResult{Content: []mcpsdk.Content{&mcpsdk.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"}}}, nil
	}, sdk.AlwaysLoad()))
	r.once(r.serving(s), r.calls(
		modelapi.ToolUse("mcp__srv__rich", modelapi.Args{}), modelapi.ToolUse("mcp__srv__structured", modelapi.Args{}),
		modelapi.ToolUse("mcp__srv__empty", modelapi.Args{}), modelapi.ToolUse("mcp__srv__audio", modelapi.Args{})))
	told := r.told()
	require.Len(t, told, 4)
	for _, part := range []string{"a text", `"image"`, "linked.txt", "embedded text"} {
		assert.Contains(t, string(told[0].Raw), part)
	}
	assert.Contains(t, told[1].Text, "42")
	assert.True(t, told[2].IsError)
	assert.Contains(t, told[2].Text, "neither a result nor an error")
	assert.False(t, told[3].IsError)
}

// A long result is cut short, unless its tool says how long it may be.
func TestLongResultOfATool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	much := strings.Repeat("0123456789", 15_000)
	say := func(context.Context, nothing) (*sdk.ToolResult, error) { return sdk.Text(much), nil }
	s := r.server("srv", sdk.NewTool("short", "Says much.", say, sdk.AlwaysLoad()),
		sdk.NewTool("long", "Says much.", say, sdk.AlwaysLoad(), sdk.MaxResultSizeChars(2*len(much))))
	r.once(r.serving(s), r.calls(modelapi.ToolUse("mcp__srv__short", modelapi.Args{}), modelapi.ToolUse("mcp__srv__long", modelapi.Args{})))
	told := r.told()
	require.Len(t, told, 2)
	assert.Less(t, len(told[0].Text), len(much))
	assert.Zero(t, strings.Compare(much, told[1].Text), "what came is not what was said") // not to print it
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.server("srv", sdk.NewTool("echo", "Says it again.", func(context.Context, echoInput) (*sdk.ToolResult, error) {
		t.Error("the tool ran")
		return nil, nil
	}, sdk.AlwaysLoad()))
	r.once(r.serving(s), r.calls(modelapi.ToolUse("mcp__srv__echo", modelapi.Args{"x": 5})))
	require.Len(t, r.told(), 1)
	assert.True(t, r.told()[0].IsError)
	assert.Contains(t, r.told()[0].Text, "x", "the model is told which field is wrong")
}

func TestAToolThatTakesTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.server("srv", sdk.NewTool("slow", "Takes long.", func(ctx context.Context, _ nothing) (*sdk.ToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, sdk.AlwaysLoad(), sdk.ToolTimeout(300*time.Millisecond)))
	r.once(r.serving(s), r.calls(modelapi.ToolUse("mcp__srv__slow", modelapi.Args{})))
	require.Len(t, r.told(), 1)
	assert.True(t, r.told()[0].IsError)
	assert.Contains(t, r.told()[0].Text, "mcp__srv__slow did not finish within 300ms")
	assert.Len(t, r.failed(), 1)
}

// Progress reaches the agent, and keeps a tool alive past its deadline.
func TestProgressOfATool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.server("srv", sdk.NewTool("slow", "Takes long.", func(ctx context.Context, _ nothing) (*sdk.ToolResult, error) {
		for i := range 6 {
			wait, cancel := context.WithTimeout(ctx, time.Second)
			<-wait.Done()
			cancel()
			assert.True(t, sdk.Progress(ctx, float64(i+1), 6, "working"))
		}
		return sdk.Text("came through"), ctx.Err()
	}, sdk.AlwaysLoad(), sdk.ToolTimeout(5*time.Second)))
	all, _ := r.once(r.serving(s), r.calls(modelapi.ToolUse("mcp__srv__slow", modelapi.Args{})))
	assert.Equal(t, "came through", r.toolResult(all).Content.Text())
	notes := 0
	for _, line := range r.wire.said() {
		if line.who == "host" && strings.Contains(line.text, "notifications/progress") {
			notes++
		}
	}
	assert.Equal(t, 6, notes)
}

// The agent makes the calls of one message at the same time only where the tools
// are read-only, and the host may still serve them one by one.
func TestReadOnlyToolsRunConcurrently(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options []sdk.ToolOption
		made    int // calls that the agent has made when the first one is served
		most    int
	}{
		"read-only":             {[]sdk.ToolOption{sdk.ReadOnly()}, 3, 3},
		"read-only, one by one": {[]sdk.ToolOption{sdk.ReadOnly(), sdk.MaxConcurrent(1)}, 3, 1},
		"others":                {nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			made := func() int {
				return strings.Count(strings.Join(r.wire.rpcs(), " "), "tools/call")
			}
			var mu sync.Mutex
			var served, running, most int
			together := make(chan struct{}) // closed when as many run as may
			enter := func(by int) (nth int) {
				mu.Lock()
				defer mu.Unlock()
				running += by
				most = max(most, running)
				served += max(by, 0)
				return served
			}
			s := r.server("srv", sdk.NewTool("work", "Works.", func(ctx context.Context, _ nothing) (*sdk.ToolResult, error) {
				nth := enter(1)
				defer enter(-1)
				if nth == 1 {
					assert.Eventually(t, func() bool { return made() >= tc.made }, turnLimit, 5*time.Millisecond)
					assert.Never(t, func() bool { return made() > tc.made }, 200*time.Millisecond, 10*time.Millisecond)
				}
				if nth == tc.most {
					close(together)
				}
				select {
				case <-together:
				case <-ctx.Done():
				}
				return sdk.Text("done"), ctx.Err()
			}, append(tc.options, sdk.AlwaysLoad())...))
			work := modelapi.ToolUse("mcp__srv__work", modelapi.Args{})
			r.once(r.serving(s), r.calls(work, work, work))
			require.Len(t, r.told(), 3)
			for _, told := range r.told() {
				assert.Equal(t, "done", told.Text)
			}
			assert.Equal(t, tc.most, most)
		})
	}
}

// statuses are the servers the agent knows, and their tools.
func (r *rig) statuses(c *sdk.Client) map[string]string {
	r.t.Helper()
	all, err := c.MCPStatus(r.ctx)
	require.NoError(r.t, err)
	got := map[string]string{}
	for _, s := range all {
		got[s.Name] = s.Status
		for _, tool := range s.Tools {
			got[s.Name] += " " + protocol.MCPToolName(s.Name, tool.Name)
		}
	}
	return got
}

// connected waits until the agent has asked a server for its tools.
func (r *rig) connected(c *sdk.Client, server string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return strings.HasPrefix(r.statuses(c)[server], "connected mcp__") }, turnLimit, 20*time.Millisecond)
}

func TestServersComeAndGoWhileTheSessionRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	say := func(text string) sdk.Tool {
		return sdk.NewTool("say", "Says it.", func(context.Context, nothing) (*sdk.ToolResult, error) { return sdk.Text(text), nil }, sdk.AlwaysLoad(), sdk.ReadOnly())
	}
	first, second := r.server("one", say("from one")), r.server("two", say("from two"))
	official := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "wrapped", Version: "1"}, nil)
	mcpsdk.AddTool(official, &mcpsdk.Tool{Name: "say", Description: "Says it.", Meta: mcpsdk.Meta{"anthropic/alwaysLoad": true}},
		func(context.Context, *mcpsdk.CallToolRequest, nothing) (*mcpsdk.CallToolResult, any, error) {
			return sdk.Text("from the wrapped one"), nil, nil
		})
	third, err := sdk.WrapMCPServer("three", official)
	require.NoError(t, err)
	o := r.serving(first)
	o.AllowedTools = append(o.AllowedTools, "mcp__two", "mcp__three")
	c := r.connect(o)
	said := func(server string) string {
		r.ask(c, r.calls(modelapi.ToolUse("mcp__"+server+"__say", modelapi.Args{})))
		told := r.told()
		require.NotEmpty(t, told)
		return told[len(told)-1].Text
	}
	assert.Equal(t, "from one", said("one"))
	assert.Equal(t, map[string]string{"one": "connected mcp__one__say"}, r.statuses(c))

	changed, err := c.SetMCPServers(r.ctx, nil, first, second, third)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"two", "three"}, changed.Added)
	assert.Empty(t, changed.Removed)
	r.connected(c, "two")
	r.connected(c, "three")
	assert.Equal(t, "from two", said("two"))
	assert.Equal(t, "from the wrapped one", said("three"))
	assert.Equal(t, "from one", said("one"))

	changed, err = c.SetMCPServers(r.ctx, nil, second)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"one", "three"}, changed.Removed)
	assert.Contains(t, said("one"), "No such tool")
	require.Eventually(t, func() bool {
		for range official.Sessions() {
			return false
		}
		return true
	}, turnLimit, 10*time.Millisecond, "the connection to a server that was removed is closed")

	require.NoError(t, c.ToggleMCPServer(r.ctx, "two", false))
	assert.Equal(t, "disabled", strings.Fields(r.statuses(c)["two"])[0])
	require.NoError(t, c.ToggleMCPServer(r.ctx, "two", true))
	r.connected(c, "two")
	var refused *sdk.ControlError
	require.ErrorAs(t, c.ReconnectMCPServer(r.ctx, "two"), &refused, "not for servers of this process")
	assert.Equal(t, "from two", said("two"))
	require.Error(t, c.ReconnectMCPServer(r.ctx, "nobody"))
	r.close(c)
}

func TestNamesOfMoreThanLetters(t *testing.T) {
	t.Parallel()
	for _, name := range []struct{ server, tool string }{{"my srv", "do it"}, {"my.srv ü", "do/it😀"}} {
		t.Run(name.server, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.server(name.server, sdk.NewTool(name.tool, "Does it.", func(context.Context, nothing) (*sdk.ToolResult, error) { return sdk.Text("did it"), nil }, sdk.AlwaysLoad()))
			o := r.options()
			o.SDKMCPServers = []*sdk.MCPServer{s}
			o.AllowedTools = []string{protocol.MCPToolName(name.server, name.tool)}
			o.CanUseTool = r.noAsk()
			r.once(o, r.calls(modelapi.ToolUse(protocol.MCPToolName(name.server, name.tool), modelapi.Args{})))
			require.Len(t, r.told(), 1)
			assert.Equal(t, "did it", r.told()[0].Text)
		})
	}
}

func TestAPolicyDeniesAToolByItsOwnName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.SDKMCPServers = []*sdk.MCPServer{r.server("my.srv", sdk.NewTool("drop.all", "Drops.", func(context.Context, nothing) (*sdk.ToolResult, error) { return sdk.Text("dropped"), nil }, sdk.AlwaysLoad()))}
	o.SDKMCPServerConfigs = map[string]session.SDKMCPServerConfig{"my.srv": {Tools: []session.MCPToolPolicy{{Name: "drop.all", PermissionPolicy: session.AlwaysDeny}}}}
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	r.once(o, r.calls(modelapi.ToolUse(protocol.MCPToolName("my.srv", "drop.all"), modelapi.Args{})))
	require.Len(t, r.told(), 1)
	assert.True(t, r.told()[0].IsError)
}

// A wildcard may stand anywhere in a rule that denies.
func TestAWildcardInARule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.SDKMCPServers = []*sdk.MCPServer{r.server("srv", sdk.NewTool("drop", "Drops.", func(context.Context, nothing) (*sdk.ToolResult, error) { return sdk.Text("dropped"), nil }, sdk.AlwaysLoad()))}
	o.DisallowedTools = []string{"mcp__*__dr*p"}
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	r.once(o, r.calls(modelapi.ToolUse(protocol.MCPToolName("srv", "drop"), modelapi.Args{})))
	require.Len(t, r.told(), 1)
	assert.True(t, r.told()[0].IsError)
}

// Of two tools that are called alike the model has one, and nobody says so.
func TestServersThatAreWrittenAlike(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	named := func(name string) *sdk.MCPServer {
		return r.server(name, sdk.NewTool("who", "Says who.", func(context.Context, nothing) (*sdk.ToolResult, error) { return sdk.Text("by " + name), nil }, sdk.AlwaysLoad()))
	}
	o := r.options()
	o.SDKMCPServers = []*sdk.MCPServer{named("a b"), named("a.b")}
	o.AllowedTools = []string{protocol.MCPToolName("a.b", "who")}
	all, _ := r.once(o, r.calls(modelapi.ToolUse(protocol.MCPToolName("a.b", "who"), modelapi.Args{})))
	inits := only[*sdk.InitMessage](all)
	require.NotEmpty(t, inits)
	assert.Len(t, inits[0].MCPServers, 2)
	of := slices.DeleteFunc(inits[0].Tools, func(name string) bool { return !strings.HasPrefix(name, "mcp__") })
	assert.Equal(t, []string{"mcp__a_b__who"}, of)
}

// stdioServer makes this test binary an MCP server on stdio. A value that is a path is a file
// with a line for each start.
const stdioServer = "TROUPE_CONFORMANCE_MCP"

func TestStdioServer(t *testing.T) {
	starts := os.Getenv(stdioServer)
	if starts == "" {
		return // only a process that an agent starts plays it
	}
	if filepath.IsAbs(starts) {
		f, err := os.OpenFile(starts, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString("started\n")
		require.NoError(t, errors.Join(err, f.Close()))
	}
	_ = outside().Run(context.Background(), &mcpsdk.StdioTransport{})
	os.Exit(0)
}

// outside is a server that is not in the host.
func outside() *mcpsdk.Server {
	s := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "outside", Version: "1"}, nil)
	for _, name := range []string{"say", "never"} {
		mcpsdk.AddTool(s, &mcpsdk.Tool{Name: name, Description: "Says where it is.", Meta: mcpsdk.Meta{"anthropic/alwaysLoad": true}},
			func(context.Context, *mcpsdk.CallToolRequest, nothing) (*mcpsdk.CallToolResult, any, error) {
				return sdk.Text("from outside"), nil, nil
			})
	}
	return s
}

func TestExternalServers(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(t *testing.T) sdk.MCPServerConfig{
		"stdio": func(*testing.T) sdk.MCPServerConfig {
			return sdk.MCPServerConfig{Command: os.Args[0], Args: []string{"-test.run=^TestStdioServer$"}, Env: map[string]string{stdioServer: "1"}}
		},
		"http": func(t *testing.T) sdk.MCPServerConfig {
			h := httptest.NewServer(mcpsdk.NewStreamableHTTPHandler(func(*http.Request) *mcpsdk.Server { return outside() }, nil))
			t.Cleanup(h.Close)
			return sdk.MCPServerConfig{Type: "http", URL: h.URL}
		},
		"sse": func(t *testing.T) sdk.MCPServerConfig {
			h := httptest.NewServer(mcpsdk.NewSSEHandler(func(*http.Request) *mcpsdk.Server { return outside() }, nil))
			t.Cleanup(h.CloseClientConnections)
			return sdk.MCPServerConfig{Type: "sse", URL: h.URL}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			server := config(t)
			server.AlwaysLoad = sdk.Some(true)
			server.Tools = []session.MCPToolPolicy{{Name: "say", PermissionPolicy: session.AlwaysAllow}, {Name: "never", PermissionPolicy: session.AlwaysDeny}}
			o := r.options()
			o.MCPServers = map[string]sdk.MCPServerConfig{"out": server}
			o.CanUseTool = r.noAsk()
			c := r.connect(o)
			r.connected(c, "out")
			r.ask(c, r.calls(modelapi.ToolUse("mcp__out__say", modelapi.Args{}), modelapi.ToolUse("mcp__out__never", modelapi.Args{})))
			told := r.told()
			require.Len(t, told, 2)
			assert.Equal(t, "from outside", told[0].Text)
			assert.True(t, told[1].IsError, "the policy denies it")
			require.NoError(t, c.ReconnectMCPServer(r.ctx, "out"))
			r.connected(c, "out")
			r.close(c)
		})
	}
}
