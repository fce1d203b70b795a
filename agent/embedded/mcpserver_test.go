package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
)

// mcpEnv has the directory in which the MCP server of these tests notes what it does.
const mcpEnv = "TROUPE_EMBEDDED_MCP"

// TestServeMCP is not a test but a program: an MCP server on stdio.
func TestServeMCP(*testing.T) {
	dir := os.Getenv(mcpEnv)
	if dir == "" {
		return // it is not run as a server
	}
	note(dir, "starts", fmt.Sprint(os.Getpid()))
	if os.Getenv("BROKEN") != "" {
		fmt.Fprintln(os.Stderr, "no database")
		os.Exit(3)
	}
	for os.Getenv("LATE") != "" { // until the test says so
		if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := mcpTestServer(dir).Run(context.Background(), &mcpsdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// note appends a line to a file.
func note(dir, file, line string) {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(f, line)
	_ = f.Close()
}

// mcpTestServer has tools that do what servers do.
func mcpTestServer(dir string) *mcpsdk.Server {
	s := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "db", Version: "7"}, nil)
	type input struct {
		X string `json:"x,omitempty"`
	}
	tool := func(name string, run func(context.Context, *mcpsdk.CallToolRequest, string) string) {
		mcpsdk.AddTool(s, &mcpsdk.Tool{Name: name, Description: "The tool " + name}, func(ctx context.Context, r *mcpsdk.CallToolRequest, in input) (*mcpsdk.CallToolResult, any, error) {
			return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Text: run(ctx, r, in.X)}}}, nil, nil
		})
	}
	tool("pid", func(context.Context, *mcpsdk.CallToolRequest, string) string {
		return fmt.Sprintf("pid %d", os.Getpid())
	})
	tool("die", func(context.Context, *mcpsdk.CallToolRequest, string) string { os.Exit(3); return "" })
	tool("env", func(context.Context, *mcpsdk.CallToolRequest, string) string { return strings.Join(os.Environ(), "\n") })
	tool("slow", func(ctx context.Context, _ *mcpsdk.CallToolRequest, _ string) string {
		note(dir, "slow", "runs")
		<-ctx.Done()
		note(dir, "slow", "cancelled")
		return ""
	})
	tool("more", func(context.Context, *mcpsdk.CallToolRequest, string) string {
		tool("extra", func(context.Context, *mcpsdk.CallToolRequest, string) string { return "extra" })
		return "there is more"
	})
	var mute atomic.Bool
	s.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
			if method == "tools/list" && mute.Load() {
				<-ctx.Done()
			}
			return next(ctx, method, r)
		}
	})
	tool("mute", func(context.Context, *mcpsdk.CallToolRequest, string) string {
		mute.Store(true)
		tool("extra", func(context.Context, *mcpsdk.CallToolRequest, string) string { return "extra" })
		return "there is more"
	})
	tool("big", func(_ context.Context, _ *mcpsdk.CallToolRequest, x string) string {
		n := 0
		_, _ = fmt.Sscan(x, &n)
		return strings.Repeat("big line of text\n", n)
	})
	tool("ask", func(ctx context.Context, r *mcpsdk.CallToolRequest, _ string) string {
		answer, err := r.Session.Elicit(ctx, &mcpsdk.ElicitParams{Message: "Your name?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return "error: " + err.Error()
		}
		b, _ := json.Marshal(answer.Content) // it was JSON
		return answer.Action + " " + string(b)
	})
	tool("roots", func(ctx context.Context, r *mcpsdk.CallToolRequest, _ string) string {
		list, err := r.Session.ListRoots(ctx, nil) //nolint:staticcheck // servers of today do so
		if err != nil {
			return "error: " + err.Error()
		}
		var all []string
		for _, root := range list.Roots {
			all = append(all, root.URI)
		}
		return strings.Join(all, " ")
	})
	return s
}

// withServer gives the options the server db, and returns the directory of its notes.
func withServer(t *testing.T, o *sdk.Options, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	c := sdk.MCPServerConfig{Command: os.Args[0], Args: []string{"-test.run=^TestServeMCP$"}, Env: map[string]string{mcpEnv: dir}}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		c.Env[name] = value
	}
	o.MCPServers = map[string]sdk.MCPServerConfig{"db": c}
	return dir
}

// noted are the lines that the server has noted.
func noted(t *testing.T, dir, file string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, file))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// tools are the lists of tools of the requests, as they were sent.
func (b *bodies) tools(t *testing.T) (all []string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, body := range b.all {
		var in struct {
			Tools json.RawMessage `json:"tools"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &in))
		all = append(all, string(in.Tools))
	}
	return all
}

// last is the last message of the last request.
func (b *bodies) last() string {
	all := b.messages()
	text := all[len(all)-1]
	return text[strings.LastIndex(text, `{"role":"user"`):]
}
