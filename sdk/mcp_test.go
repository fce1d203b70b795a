package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

type none struct{}

type echoInput struct {
	X string `json:"x"`
}

func echo(_ context.Context, in echoInput) (*sdk.ToolResult, error) { return sdk.Text(in.X), nil }

// saying is a tool that answers with r and err.
func saying(name string, r *sdk.ToolResult, err error, o ...sdk.ToolOption) sdk.Tool {
	return sdk.NewTool(name, "d", func(context.Context, none) (*sdk.ToolResult, error) { return r, err }, o...)
}

func server(t testing.TB, tools ...sdk.Tool) *sdk.MCPServer {
	t.Helper()
	s, err := sdk.NewMCPServer("srv", "1.0", tools...)
	require.NoError(t, err)
	return s
}

// answer is the result of a tools/call.
type answer struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structuredContent"`
	raw        string
}

func (a answer) text() string {
	var all []string
	for _, c := range a.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

func params(t testing.TB, tool, arguments, meta string) json.RawMessage {
	t.Helper()
	p := map[string]any{"name": tool}
	if arguments != "" {
		p["arguments"] = json.RawMessage(arguments)
	}
	if meta != "" {
		p["_meta"] = json.RawMessage(meta)
	}
	b, err := json.Marshal(p)
	require.NoError(t, err)
	return b
}

// call makes a tools/call, which must have a result.
func call(t testing.TB, s session.MCPHandler, tool, arguments string) answer {
	t.Helper()
	raw, err := s.Handle(context.Background(), "tools/call", params(t, tool, arguments, ""))
	require.NoError(t, err)
	return parse(t, raw)
}

// exactly compares bytes: the same JSON in another order would differ from one
// run to the next.
func exactly(t *testing.T, want, got string) {
	t.Helper()
	assert.Equal(t, want, got)
}

func parse(t testing.TB, raw json.RawMessage) answer {
	t.Helper()
	a := answer{raw: string(raw)}
	require.NoError(t, json.Unmarshal(raw, &a), "%s", raw)
	require.NotNil(t, a.Content, "a result needs content: %s", raw)
	return a
}

func TestNewMCPServerFindsEveryMistake(t *testing.T) {
	t.Parallel()
	var noHandler func(context.Context, none) (*sdk.ToolResult, error)
	_, err := sdk.NewMCPServer("", "1",
		sdk.NewTool("", "d", echo),
		sdk.NewTool("undescribed", "", echo),
		sdk.NewTool("twice", "d", echo),
		sdk.NewTool("twice", "d", echo),
		sdk.Tool{},
		sdk.NewTool("mute", "d", noHandler),
		sdk.NewTool("scalar", "d", func(context.Context, string) (*sdk.ToolResult, error) { return nil, nil }),
		sdk.RawTool("raw", "d", json.RawMessage(`{"type":"string"}`), nil),
		sdk.NewTool("bounds", "d", echo, sdk.MaxConcurrent(0), sdk.MaxResultSizeChars(-1), sdk.ToolMeta("k", make(chan int))),
	)
	type found struct{ option, problem string }
	var all []found
	for _, e := range session.ConfigErrors(err) {
		assert.NotEmpty(t, e.Fix, "%v", e)
		all = append(all, found{e.Option, e.Problem})
	}
	const at = `SDKMCPServers[""]`
	assert.Equal(t, []found{
		{at, "the MCP server has no name"},
		{at + ".Tools[0]", "the tool has no name"},
		{at + ".Tools[1] (undescribed)", "the tool has no description"},
		{at + ".Tools[3] (twice)", "another tool of the server has the same name"},
		{at + ".Tools[4]", "the tool is empty"},
		{at + ".Tools[5] (mute)", "the tool has no handler"},
		{at + ".Tools[6] (scalar)", "the schema of its arguments: string does not encode as a JSON object"},
		{at + ".Tools[7] (raw)", `the schema of its arguments: its "type" is not "object"`},
		{at + ".Tools[7] (raw)", "the tool has no handler"},
		{at + ".Tools[8] (bounds)", "MaxConcurrent is 0"},
		{at + ".Tools[8] (bounds)", "MaxResultSizeChars is -1"},
		{at + ".Tools[8] (bounds)", `_meta "k": json: unsupported type: chan int`},
	}, all)
}

// Agents know tools by names with fewer characters, and list one of two alone.
func TestToolsOfOneNameForTheAgent(t *testing.T) {
	t.Parallel()
	_, err := sdk.NewMCPServer("a b", "", sdk.NewTool("do it", "d", echo), sdk.NewTool("do.it", "d", echo), sdk.NewTool("do-it", "d", echo))
	all := session.ConfigErrors(err)
	require.Len(t, all, 1)
	assert.Contains(t, all[0].Error(), `Tools[1] (do.it): agents call it mcp__a_b__do_it, and the tool "do it", too; rename one of them`)
}

func TestToolsThatNoAgentWouldList(t *testing.T) {
	t.Parallel()
	_, err := sdk.NewMCPServer("srv", "", sdk.NewTool(strings.Repeat("x", 118), "d", echo))
	require.NoError(t, err)
	_, err = sdk.NewMCPServer("srv", "", sdk.NewTool(strings.Repeat("x", 119), "d", echo))
	assert.ErrorContains(t, err, "agents would call it by 129 characters")
}

func TestWrapMCPServerNeedsNameAndServer(t *testing.T) {
	t.Parallel()
	_, err := sdk.WrapMCPServer("", nil)
	assert.Len(t, session.ConfigErrors(err), 2)
}

func TestManifest(t *testing.T) {
	t.Parallel()
	s, err := sdk.NewMCPServer("kb", "", // no version
		sdk.NewTool("b", "second letter, listed first", echo, sdk.ReadOnly(), sdk.Title("Bee"), sdk.OpenWorld(false),
			sdk.Destructive(false), sdk.Idempotent(), sdk.MaxResultSizeChars(500_000), sdk.AlwaysLoad()),
		saying("a", nil, nil),
	)
	require.NoError(t, err)
	initialize, list, err := s.Manifest()
	require.NoError(t, err)
	exactly(t, `{"capabilities":{"tools":{"listChanged":true}},"protocolVersion":"2025-11-25","serverInfo":{"name":"kb","version":"1.0.0"}}`, string(initialize))
	exactly(t, `{"tools":[{"_meta":{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":500000},`+
		`"annotations":{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"readOnlyHint":true,"title":"Bee"},`+
		`"description":"second letter, listed first",`+
		`"inputSchema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false},"name":"b"},`+
		`{"description":"d","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"name":"a"}]}`, string(list))
	assert.Equal(t, "kb", s.Name())
}

func TestManifestWithoutTools(t *testing.T) {
	t.Parallel()
	_, list, err := server(t).Manifest()
	require.NoError(t, err)
	assert.JSONEq(t, `{"tools":[]}`, string(list))
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	s := server(t, sdk.NewTool("echo", "d", echo))
	_, list, err := s.Manifest()
	require.NoError(t, err)
	tests := map[string]struct {
		method, params, want string
		code                 int
	}{
		"known version":   {method: "initialize", params: `{"protocolVersion":"2025-06-18"}`, want: `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"srv","version":"1.0"}}`},
		"unknown version": {method: "initialize", params: `{"protocolVersion":"1999-01-01"}`, want: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"srv","version":"1.0"}}`},
		"no version":      {method: "initialize", want: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"srv","version":"1.0"}}`},
		"ping":            {method: "ping", want: `{}`},
		"list":            {method: "tools/list", want: string(list)},
		"list, page":      {method: "tools/list", params: `{"cursor":"x"}`, want: string(list)},
		"resources":       {method: "resources/list", code: mcp.CodeMethodNotFound},
		"no method":       {method: "", code: mcp.CodeMethodNotFound},
		"params: list":    {method: "tools/call", params: `[]`, code: mcp.CodeInvalidParams},
		"params: nothing": {method: "tools/call", code: mcp.CodeInvalidParams},
		"params: name":    {method: "tools/call", params: `{"name":5}`, code: mcp.CodeInvalidParams},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := s.Handle(context.Background(), tt.method, json.RawMessage(tt.params))
			if tt.code != 0 {
				var rpc *mcp.RPCError
				require.ErrorAs(t, err, &rpc)
				assert.Equal(t, tt.code, rpc.Code)
				assert.Nil(t, got)
				return
			}
			require.NoError(t, err)
			assert.JSONEq(t, tt.want, string(got))
		})
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	s := server(t, saying("default", nil, nil), saying("short", nil, nil, sdk.ToolTimeout(time.Second)), saying("none", nil, nil, sdk.ToolTimeout(-1)))
	assert.Zero(t, s.Timeout("default"))
	assert.Equal(t, time.Second, s.Timeout("short"))
	assert.Negative(t, s.Timeout("none"))
	assert.Zero(t, s.Timeout("nosuch"))
	assert.Zero(t, s.Timeout(""))
}

func TestCloseOfATooledServerIsNothing(t *testing.T) {
	t.Parallel()
	s := server(t, sdk.NewTool("echo", "d", echo))
	require.NoError(t, sdk.ForSession(s).Close(context.Background()))
	require.NoError(t, s.Close(context.Background()))
	assert.Equal(t, "hi", call(t, s, "echo", `{"x":"hi"}`).text())
}

func FuzzToolsCall(f *testing.F) {
	for _, seed := range []string{
		`{"name":"echo","arguments":{"x":"hey"},"_meta":{"claudecode/toolUseId":"toolu_1","progressToken":2}}`,
		`{"name":"echo","arguments":{"x":5}}`, `{"name":"nosuch"}`, `{"name":"rich","arguments":{"list":[1,"a",null],"n":3.0,"m":{"a":1e5}}}`,
		`{"name":"raw","arguments":{"p":[{"q":1}]}}`, `null`, `[]`, `{"name":"rich","arguments":{"n":1e999}}`,
		`{"name":"echo","arguments":{"x":"a","x":"b"}}`, `{"name":"rich","arguments":{"when":"yesterday","blob":"%%"}}`, "",
	} {
		f.Add([]byte(seed))
	}
	type rich struct {
		List []any             `json:"list,omitempty"`
		N    int8              `json:"n,omitempty"`
		M    map[string]uint16 `json:"m,omitempty"`
		When time.Time         `json:"when,omitzero"`
		Blob []byte            `json:"blob,omitempty"`
		P    *rich2            `json:"p,omitempty"`
	}
	s := server(f,
		sdk.NewTool("echo", "d", echo),
		sdk.NewTool("rich", "d", func(_ context.Context, in rich) (*sdk.ToolResult, error) { return sdk.JSONResult(in), nil }),
		sdk.RawTool("raw", "d", json.RawMessage(rawSchema), func(_ context.Context, in json.RawMessage) (*sdk.ToolResult, error) {
			return sdk.Text(string(in)), nil
		}),
	)
	f.Fuzz(func(t *testing.T, p []byte) {
		raw, err := s.Handle(context.Background(), "tools/call", p)
		if err != nil {
			var rpc *mcp.RPCError
			require.ErrorAs(t, err, &rpc)
			require.Equal(t, mcp.CodeInvalidParams, rpc.Code)
			return
		}
		a := parse(t, raw)
		require.NotEmpty(t, a.Content)
		again, err := s.Handle(context.Background(), "tools/call", p)
		require.NoError(t, err)
		require.Equal(t, a.raw, string(again), "the same call, the same bytes")
	})
}

type rich2 struct {
	Sub []struct {
		E string `json:"e" enum:"a,b"`
	} `json:"sub"`
}

// rawSchema is what schema generators of other languages write: definitions,
// references and unions.
const rawSchema = `{
	"$schema": "http://json-schema.org/draft-07/schema#",
	"type": "object",
	"definitions": {"Item": {"type": "object", "properties": {"q": {"type": "integer", "minimum": 1}}, "required": ["q"]}},
	"properties": {
		"p": {"type": "array", "items": {"$ref": "#/definitions/Item"}, "maxItems": 3},
		"u": {"anyOf": [{"type": "string"}, {"type": "null"}]}
	},
	"patternProperties": {"^x-": {"type": "string"}},
	"additionalProperties": false
}`

var errPlain = errors.New("handler exploded")
