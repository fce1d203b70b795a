package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/sdk"
)

// TestDocumentedTool goes through what the vendors' documents say of a tool of
// the host: what it is made of, as tools/list shows it, and what it can say.
func TestDocumentedTool(t *testing.T) {
	t.Parallel()
	type input struct {
		Query string `json:"query" jsonschema:"what to look for"`
		Limit int    `json:"limit,omitempty"`
		In    string `json:"in,omitempty" enum:"docs,tickets"`
	}
	listed := func(t *testing.T, o ...sdk.ToolOption) string {
		t.Helper()
		s, err := sdk.NewMCPServer("srv", "", sdk.NewTool("look", "Looks for it.", func(context.Context, input) (*sdk.ToolResult, error) { return nil, nil }, o...))
		require.NoError(t, err)
		_, list, err := s.Manifest()
		require.NoError(t, err)
		return string(list)
	}
	said := func(t *testing.T, r *sdk.ToolResult, err error) string {
		t.Helper()
		s, e := sdk.NewMCPServer("srv", "", saying("say", r, err))
		require.NoError(t, e)
		got, e := s.Handle(t.Context(), "tools/call", json.RawMessage(`{"name":"say","arguments":{}}`))
		require.NoError(t, e)
		return string(got)
	}
	content := func(blocks ...mcpsdk.Content) *sdk.ToolResult { return &sdk.ToolResult{Content: blocks} }
	for row, check := range map[string]func(t *testing.T) (got, want string){
		"name":        func(t *testing.T) (string, string) { return listed(t), `"name":"look"` },
		"description": func(t *testing.T) (string, string) { return listed(t), `"description":"Looks for it."` },
		"inputSchema": func(t *testing.T) (string, string) {
			list := listed(t)
			assert.Contains(t, list, `"description":"what to look for"`)
			assert.Contains(t, list, `"enum":["docs","tickets"]`)
			return list, `"required":["query"]`
		},
		"title":        func(t *testing.T) (string, string) { return listed(t, sdk.Title("Look")), `"title":"Look"` },
		"readOnlyHint": func(t *testing.T) (string, string) { return listed(t, sdk.ReadOnly()), `"readOnlyHint":true` },
		"destructiveHint": func(t *testing.T) (string, string) {
			return listed(t, sdk.Destructive(false)), `"destructiveHint":false`
		},
		"openWorldHint":  func(t *testing.T) (string, string) { return listed(t, sdk.OpenWorld(false)), `"openWorldHint":false` },
		"idempotentHint": func(t *testing.T) (string, string) { return listed(t, sdk.Idempotent()), `"idempotentHint":true` },
		"maxResultSizeChars": func(t *testing.T) (string, string) {
			return listed(t, sdk.MaxResultSizeChars(100_000)), `"anthropic/maxResultSizeChars":100000`
		},
		"text": func(t *testing.T) (string, string) { return said(t, sdk.Text("x"), nil), `{"type":"text","text":"x"}` },
		"image": func(t *testing.T) (string, string) {
			return said(t, content(&mcpsdk.ImageContent{Data: []byte{0}, MIMEType: "image/png"}), nil), `{"type":"image","mimeType":"image/png","data":"AA=="}`
		},
		"audio": func(t *testing.T) (string, string) {
			return said(t, content(&mcpsdk.AudioContent{Data: []byte{0}, MIMEType: "audio/wav"}), nil), `{"type":"audio","mimeType":"audio/wav","data":"AA=="}`
		},
		"resource_link": func(t *testing.T) (string, string) {
			return said(t, content(&mcpsdk.ResourceLink{URI: "file:///a", Name: "a"}), nil), `"type":"resource_link"`
		},
		"resource": func(t *testing.T) (string, string) {
			return said(t, content(&mcpsdk.EmbeddedResource{Resource: &mcpsdk.ResourceContents{URI: "file:///a", Text: "b"}}), nil), `"type":"resource"`
		},
		"isError": func(t *testing.T) (string, string) { return said(t, sdk.ErrorText("no"), nil), `"isError":true` },
		"_meta": func(t *testing.T) (string, string) {
			return said(t, &sdk.ToolResult{Meta: mcpsdk.Meta{"k": "v"}, Content: sdk.Text("x").Content}, nil), `"_meta":{"k":"v"}`
		},
		"exception": func(t *testing.T) (string, string) {
			got := said(t, nil, errors.New("out of order"))
			assert.Contains(t, got, `"isError":true`)
			return got, "out of order"
		},
		"no-result": func(t *testing.T) (string, string) {
			got := said(t, nil, nil)
			assert.Contains(t, got, `"isError":true`)
			return got, "neither a result nor an error"
		},
		"handler": func(t *testing.T) (string, string) {
			s, err := sdk.NewMCPServer("srv", "", sdk.NewTool("look", "d", func(_ context.Context, in input) (*sdk.ToolResult, error) {
				return sdk.JSONResult(in), nil
			}))
			require.NoError(t, err)
			got, err := s.Handle(t.Context(), "tools/call", json.RawMessage(`{"name":"look","arguments":{"query":"q","limit":3}}`))
			require.NoError(t, err)
			return string(got), `"structuredContent":{"query":"q","limit":3}`
		},
		"signal": func(t *testing.T) (string, string) {
			began := make(chan struct{})
			s, err := sdk.NewMCPServer("srv", "", sdk.NewTool("look", "d", func(ctx context.Context, _ input) (*sdk.ToolResult, error) {
				close(began)
				<-ctx.Done()
				return sdk.Text("stopped"), nil
			}))
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan string, 1)
			go func() {
				b, err := s.Handle(ctx, "tools/call", json.RawMessage(`{"name":"look","arguments":{"query":"q"}}`))
				assert.NoError(t, err)
				got <- string(b)
			}()
			<-began
			cancel()
			return <-got, "stopped"
		},
		"validation": func(t *testing.T) (string, string) {
			tool := func(name, description string) sdk.Tool {
				return sdk.NewTool(name, description, func(context.Context, none) (*sdk.ToolResult, error) { return nil, nil })
			}
			_, err := sdk.NewMCPServer("", "", tool("", "d"), tool("a", ""), tool("a", "d"))
			all := sdk.ConfigErrors(err)
			require.Len(t, all, 4)
			var said []string
			for _, e := range all {
				said = append(said, e.Problem)
			}
			return strings.Join(said, "; "), "the MCP server has no name; the tool has no name; the tool has no description; another tool of the server has the same name"
		},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "qoder/custom-tool/"+row)
			got, want := check(t)
			assert.Contains(t, got, want)
		})
	}
}
