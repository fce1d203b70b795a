package sdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/sdk"
)

// traced is what a recording of a vendor's SDK has about one MCP server.
type traced struct {
	manifest  map[string]json.RawMessage
	exchanges []exchange
	progress  []json.RawMessage // params of notifications/progress
}

// exchange is a JSON-RPC request of the agent and the SDK's answer.
type exchange struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	answer json.RawMessage
}

func readTrace(t *testing.T, name, server string) traced {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "protocol", "testdata", "traces", name))
	require.NoError(t, err)
	defer f.Close()
	var tr traced
	open := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Dir string
			Msg struct {
				Type      string
				RequestID string `json:"request_id"`
				Request   struct {
					Subtype    string
					ServerName string `json:"server_name"`
					Message    exchange
					Manifests  map[string]map[string]json.RawMessage `json:"sdkMcpServerManifests"`
				}
				Response struct {
					RequestID string `json:"request_id"`
					Response  struct {
						MCP json.RawMessage `json:"mcp_response"`
					}
				}
			}
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		toAgent, m := l.Dir == "sdk->cli", l.Msg
		switch {
		case toAgent && m.Type == "control_response":
			if i, ok := open[m.Response.RequestID]; ok {
				tr.exchanges[i].answer = m.Response.Response.MCP
			}
		case toAgent && m.Request.Subtype == "initialize":
			tr.manifest = m.Request.Manifests[server]
		case toAgent && m.Request.Message.Method == "notifications/progress":
			tr.progress = append(tr.progress, m.Request.Message.Params)
		case !toAgent && m.Request.ServerName == server && !strings.HasPrefix(m.Request.Message.Method, "notifications/"):
			open[m.RequestID] = len(tr.exchanges)
			tr.exchanges = append(tr.exchanges, m.Request.Message)
		}
	}
	require.NoError(t, lines.Err())
	return tr
}

// bare removes from a tools/list what the vendors' schema library writes and
// the protocol has as defaults, and what ours adds to forbid unknown fields.
func bare(t *testing.T, list json.RawMessage) any {
	t.Helper()
	var l struct {
		Tools []map[string]any `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(list, &l))
	for _, tool := range l.Tools {
		delete(tool, "execution")
		schema := tool["inputSchema"].(map[string]any)
		delete(schema, "$schema")
		delete(schema, "additionalProperties")
	}
	return l.Tools
}

func generic(t *testing.T, raw json.RawMessage) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}

// sameAnswer compares an answer with the recorded one: exactly, but for the
// words about what is wrong with the arguments, and text that the recording cut.
func sameAnswer(t *testing.T, want, got map[string]any) {
	t.Helper()
	for _, v := range []map[string]any{want, got} {
		content, _ := v["content"].([]any)
		for _, block := range content {
			b := block.(map[string]any)
			if text, ok := b["text"].(string); ok {
				text, _, _ = strings.Cut(text, ": Invalid ")
				text, _, _ = strings.Cut(text, " extra:")
				b["text"] = text
			}
		}
		delete(v, "serverInfo") // Qoder's server has another name than its key
		if meta, ok := v["_meta"].(map[string]any); ok {
			delete(meta, "m") // the fields of a TypeScript object
		}
	}
	assert.Equal(t, want, got)
}

// replay asks our server what the agent asked the vendor's.
func replay(t *testing.T, s *sdk.MCPServer, tr traced) {
	t.Helper()
	answered := 0
	var told []json.RawMessage
	ctx := mcp.ContextWithNotifier(context.Background(), func(method string, params json.RawMessage) error {
		assert.Equal(t, "notifications/progress", method)
		told = append(told, params)
		return nil
	})
	for _, x := range tr.exchanges {
		got, err := s.Handle(ctx, x.Method, x.Params)
		if x.answer == nil {
			continue // cancelled
		}
		answered++
		want := generic(t, x.answer)
		if want["error"] != nil {
			var rpc *mcp.RPCError
			require.ErrorAs(t, err, &rpc, "%s", x.Method)
			b, err := json.Marshal(rpc)
			require.NoError(t, err)
			assert.Equal(t, want["error"], any(generic(t, b)), "%s", x.Method)
			continue
		}
		require.NoError(t, err, "%s", x.Method)
		if x.Method == "tools/list" {
			list, err := json.Marshal(want["result"])
			require.NoError(t, err)
			assert.Equal(t, bare(t, list), bare(t, got))
			continue
		}
		sameAnswer(t, want["result"].(map[string]any), generic(t, got))
	}
	assert.Greater(t, answered, 5, "the recording is empty")
	require.Len(t, told, len(tr.progress))
	for i := range told {
		assert.JSONEq(t, string(tr.progress[i]), string(told[i]))
	}
}

func TestClaudesRecording(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/createSdkMcpServer", "claude/feature/MCP-Server-Integration")
	tr := readTrace(t, "claude/sdk-recorder/cb-mcp.ndjson", "srv")
	s, err := sdk.NewMCPServer("srv", "1.2.3",
		sdk.NewTool("echo", "d", echo),
		saying("boom", nil, errPlain),
		saying("iserr", sdk.ErrorText("bad"), nil),
		saying("slow", sdk.Text("slow done aborted=false"), nil),
		sdk.NewTool("prog", "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
			assert.True(t, sdk.Progress(ctx, 1, 2, ""))
			return sdk.Text("p"), nil
		}),
	)
	require.NoError(t, err)
	initialize, list, err := s.Manifest()
	require.NoError(t, err)
	assert.JSONEq(t, string(tr.manifest["initializeResult"]), string(initialize))
	assert.Equal(t, bare(t, tr.manifest["toolsListResult"]), bare(t, list))
	replay(t, s, tr)
}

func TestClaudesManifestOfToolsThatAreAlwaysLoaded(t *testing.T) {
	t.Parallel()
	tr := readTrace(t, "claude/mcp.ndjson", "srv")
	s := server(t, sdk.NewTool("echo", "d", echo, sdk.AlwaysLoad()), saying("boom", nil, nil, sdk.AlwaysLoad()), saying("slow", nil, nil, sdk.AlwaysLoad()))
	initialize, list, err := s.Manifest()
	require.NoError(t, err)
	assert.JSONEq(t, string(tr.manifest["initializeResult"]), string(initialize))
	assert.Equal(t, bare(t, tr.manifest["toolsListResult"]), bare(t, list))
}

func TestQodersRecording(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/function/createSdkMcpServer")
	tr := readTrace(t, "qoder/c2s-mcp.ndjson", "k1")
	type greeting struct {
		Name string  `json:"name" jsonschema:"n"`
		N    float64 `json:"n,omitempty"`
	}
	s, err := sdk.NewMCPServer("k1", "1.2.3",
		sdk.NewTool("greet", "d", func(_ context.Context, in greeting) (*sdk.ToolResult, error) {
			return sdk.Text("hi " + in.Name), nil
		}, sdk.ReadOnly()),
		sdk.NewTool("fail", "d", func(context.Context, none) (*sdk.ToolResult, error) { return sdk.ErrorText("tool boom"), nil }),
		saying("rich", &sdk.ToolResult{
			Meta:              mcpsdk.Meta{"m": 1},
			Content:           []mcpsdk.Content{&mcpsdk.TextContent{Text: "x"}, &mcpsdk.ImageContent{Data: []byte{0}, MIMEType: "image/png"}},
			StructuredContent: map[string]int{"a": 1}, IsError: true,
		}, nil),
		saying("slow", sdk.Text("slow"), nil),
		saying("slow300", sdk.Text("slow"), nil),
	)
	require.NoError(t, err)
	replay(t, s, tr)
}
