package simtests_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// shopOptions are those of a session with all that a host answers: a hook, a permission and a tool.
func shopOptions(t require.TestingT) *sdk.Options {
	server, err := sdk.NewMCPServer("shop", "", sdk.NewTool("refund", "Refunds an order.", func(_ context.Context, in struct {
		Order int `json:"order"`
	}) (*sdk.ToolResult, error) {
		return sdk.Text("refunded"), nil
	}))
	require.NoError(t, err)
	return &sdk.Options{
		SDKMCPServers: []*sdk.MCPServer{server}, Hooks: []sdk.Hook{noPush(sdk.Match("Bash"))}, CanUseTool: allowAll,
		Env: map[string]string{"SHOP_API_KEY": "very-secret-value"}, SystemPrompt: sdk.PromptText("the key is very-secret-value"),
	}
}

const shopScript = `
turns:
- steps:
  - raw: a line of the agent's runtime
  - tool_use: {name: Bash, input: {command: make}, result: made}
  - tool_use: {name: mcp__shop__refund, input: {order: 7}}
  - parallel:
    - tool_use: {name: Write, input: {file_path: a}}
    - tool_use: {name: Bash, input: {command: make b}}
  - text: done
- steps: [text: "and again: ${prompt}"]
`

// holdTalk is what the host does in the recording and in the replays.
func holdTalk(ctx context.Context, t require.TestingT, c *sdk.Client, prompts ...string) {
	for _, prompt := range prompts {
		_, result, err := simtests.Ask(ctx, c, prompt)
		require.NoError(t, err)
		require.False(t, result.Failed())
	}
	require.NoError(t, c.SetPermissionMode(ctx, sdk.ModePlan))
	require.NoError(t, c.Close(ctx))
}

// recorded is a session with the scripted agent, as a process or in memory.
func recorded(t *testing.T, process bool) *simtests.Cassette {
	t.Helper()
	o := shopOptions(t)
	script, err := scripted.Parse([]byte(shopScript))
	require.NoError(t, err)
	o.Backend = scripted.New(scripted.WithScript(script))
	if process {
		bin, err := scriptedBinary()
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "shop.yaml")
		require.NoError(t, os.WriteFile(file, []byte(shopScript), 0o600))
		o.Backend = sdk.Claude(sdk.ClaudeConfig{Path: bin})
		o.Env["TROUPE_SCRIPT"] = file
	}
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, rt.Shutdown(context.Background())) }()
	o.Runtime = rt
	r := simtests.Record(o)
	c := sdk.NewClient(r.Options())
	require.NoError(t, c.Connect(t.Context()))
	holdTalk(t.Context(), t, c, "refund order 7", "thanks")
	encoded, err := r.Cassette().Encode()
	require.NoError(t, err)
	cassette, err := simtests.ParseCassette(encoded)
	require.NoError(t, err)
	return cassette
}

func TestCassetteRoundTrip(t *testing.T) {
	for name, process := range map[string]bool{"a process": true, "in memory": false} {
		t.Run(name, func(t *testing.T) {
			cassette := recorded(t, process)
			encoded, err := cassette.Encode()
			require.NoError(t, err)
			text := string(encoded)
			require.NotContains(t, text, "very-secret-value")
			require.Contains(t, text, "a line of the agent's runtime")
			require.Contains(t, text, `"eof":true`)
			require.Contains(t, text, `"exit":{"code":0}`)
			dir, err := filepath.Abs(".")
			require.NoError(t, err)
			require.NotContains(t, text, dir)

			path := filepath.Join(t.TempDir(), "shop.jsonl")
			require.NoError(t, cassette.Save(path))
			again, err := simtests.LoadCassette(path)
			require.NoError(t, err)
			require.Equal(t, cassette, again)

			simtests.Explore(t, simtests.Config{Seeds: 30, DoNotKeep: true}, func(w *simtests.World) {
				c := w.OpenCassette(shopOptions(w), again)
				holdTalk(w.Context(), w, c, "refund order 7", "thanks")
			})
			t.Run("outside of a world", func(t *testing.T) {
				o := shopOptions(t)
				o.Backend = again.Replay(t)
				c := sdk.NewClient(o)
				require.NoError(t, c.Connect(t.Context()))
				holdTalk(t.Context(), t, c, "refund order 7", "thanks")
			})
		})
	}
}

// What a host does differently fails the test, and the diff says what.
func TestCassetteOfAnotherHost(t *testing.T) {
	cassette := recorded(t, false)
	for name, c := range map[string]struct {
		change  func(*sdk.Options)
		prompts []string
		want    []string
	}{
		"another prompt":     {nil, []string{"refund order 8"}, []string{"user.message.content", `- "refund order 7"`, `+ "refund order 8"`}},
		"a callback denies":  {func(o *sdk.Options) { o.CanUseTool = denyAll }, []string{"refund order 7"}, []string{"control_response", `"deny"`}},
		"other arguments":    {func(o *sdk.Options) { o.Model = "another" }, nil, []string{"other arguments", `+ "--model=another"`}},
		"another initialize": {func(o *sdk.Options) { o.Hooks = nil }, nil, []string{"control_request.request.hooks", "-"}},
		"it leaves early":    {nil, []string{"refund order 7"}, []string{"another frame", `"thanks"`, `"set_permission_mode"`}},
		"it writes too much": {nil, []string{"refund order 7", "thanks", "and thanks again"}, []string{"another frame", `"set_permission_mode"`, "and thanks again"}},
		"a secret is as good": {func(o *sdk.Options) {
			o.Env["SHOP_API_KEY"] = "another-secret-value"
			o.SystemPrompt = sdk.PromptText("the key is another-secret-value")
		}, []string{"refund order 7", "thanks"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j := &judge{}
			o := shopOptions(t)
			if c.change != nil {
				c.change(o)
			}
			o.Backend = cassette.Replay(j)
			client := sdk.NewClient(o)
			if err := client.Connect(t.Context()); err == nil {
				for _, prompt := range c.prompts {
					if _, _, err := simtests.Ask(t.Context(), client, prompt); err != nil {
						break
					}
				}
				_ = client.SetPermissionMode(t.Context(), sdk.ModePlan)
				_ = client.Close(t.Context())
			}
			if c.want == nil {
				require.Empty(t, j.end())
				return
			}
			said := strings.Join(j.end(), "\n")
			for _, want := range c.want {
				require.Contains(t, said, want)
			}
		})
	}
}

func TestCassetteErrors(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{
		"": 1, `{"cassette":2,"dialect":"claude"}`: 1, `{"cassette":1,"dialect":"klingon"}`: 1, `{"cassette":1,"dialect":"claude"}`: 1,
		"{\"cassette\":1,\"dialect\":\"claude\"}\n{\"agent\":{}}":                1 + 1,
		"{\"cassette\":1,\"dialect\":\"claude\"}\n{\"start\":[]}\n{\"guest\":1}": 3,
	} {
		_, err := simtests.ParseCassette([]byte(text))
		var bad *simtests.CassetteError
		require.ErrorAs(t, err, &bad, text)
		require.Equal(t, line, bad.Line, text)
	}
	_, err := simtests.LoadCassette("testdata/none")
	require.Error(t, err)
}

func denyAll(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	return sdk.Deny("no"), nil
}

// The cassette was recorded from Claude Code 2.1.329
// (conformance.TestCassetteOfTheRealAgent).
func TestCassetteOfTheRealAgent(t *testing.T) {
	cassette, err := simtests.LoadCassette("testdata/claude.jsonl")
	require.NoError(t, err)
	text, err := cassette.Encode()
	require.NoError(t, err)
	for _, private := range []string{"/tmp", "/root", "/home", "127.0.0.1", "localhost"} {
		require.NotContains(t, string(text), private)
	}
	dir := t.TempDir()
	host := func(t require.TestingT, asked *[]string) *sdk.Options {
		o := shopOptions(t)
		o.SystemPrompt, o.Env = session.SystemPrompt{}, nil
		o.Cwd, o.AdditionalDirectories, o.SettingSources = dir, []string{dir}, sdk.None()
		o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			*asked = append(*asked, r.ToolName)
			if r.ToolName == "Bash" {
				return sdk.Deny("not now"), nil
			}
			return sdk.Allow(), nil
		}
		return o
	}
	simtests.Explore(t, simtests.Config{Seeds: 30, DoNotKeep: true}, func(w *simtests.World) {
		var asked []string
		c := w.OpenCassette(host(w, &asked), cassette)
		messages, result, err := w.Ask(c, "refund order 7 [[scn:shop]]")
		require.NoError(w, err)
		require.Equal(w, "Refunded.", sdk.TextOf(result))
		require.Equal(w, []string{"Bash", "mcp__shop__refund"}, asked)
		var cwd string
		for _, m := range messages {
			if init, ok := m.(*sdk.InitMessage); ok {
				cwd = init.Cwd
			}
		}
		require.Equal(w, dir, cwd, "the agent runs where this host starts it")
		require.NoError(w, c.Close(w.Context()))
	})
}
