package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func init() { helpers["mcp"] = mcpServer }

// mcpServer is a server on stdio whose calls are texts: env NAME; wait N (ms); say TEXT, a
// notification N ms after the answer; echo, the line of the request.
func mcpServer() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	var mu sync.Mutex
	put := func(v any) {
		line, _ := json.Marshal(v)
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(append(line, '\n'))
	}
	type object = map[string]any
	for in.Scan() {
		raw := in.Text()
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments struct{ Do, What string }
				Meta      struct{ ProgressToken any } `json:"_meta"`
			}
		}
		if json.Unmarshal([]byte(raw), &m) != nil || m.ID == nil {
			continue
		}
		answer := func(result any) { put(object{"jsonrpc": "2.0", "id": m.ID, "result": result}) }
		text := func(s string) { answer(object{"content": []object{{"type": "text", "text": s}}}) }
		a := m.Params.Arguments
		switch m.Method {
		case "initialize":
			answer(object{"protocolVersion": "2025-06-18", "capabilities": object{"tools": object{}, "logging": object{}}, "serverInfo": object{"name": "s", "version": "1"}})
		case "tools/list":
			answer(object{"tools": []object{{"name": "do", "inputSchema": object{"type": "object"}}}})
		case "tools/call":
			switch a.Do {
			case "env":
				v, ok := os.LookupEnv(a.What)
				text(fmt.Sprintf("%q %v", v, ok))
			case "dir":
				dir, _ := os.Getwd()
				text(dir)
			case "wait":
				go func() {
					d, _ := time.ParseDuration(a.What)
					time.Sleep(d)
					text("waited")
				}()
			case "later": // what it has to say comes after the answer
				text("soon")
				go func() {
					time.Sleep(300 * time.Millisecond)
					put(object{"jsonrpc": "2.0", "method": "notifications/message", "params": object{"level": "info", "data": a.What}})
				}()
			case "progress":
				put(object{"jsonrpc": "2.0", "method": "notifications/progress", "params": object{"progressToken": m.Params.Meta.ProgressToken, "progress": 1, "message": a.What}})
				text("done")
			default:
				text(raw)
			}
		default:
			answer(object{})
		}
	}
}

type sharing struct {
	t *testing.T
	*sharedmcp.Servers
}

func newSharing(t *testing.T, o sharedmcp.Options) *sharing {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	s := &sharing{t, sharedmcp.New(rt, o)}
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = rt.Shutdown(context.Background())
	})
	return s
}

// session is a session with the server; env is that of its options.
func (s *sharing) session(o *sdk.Options) *sdk.MCPServer {
	s.t.Helper()
	o.MCPServers = map[string]sdk.MCPServerConfig{"db": {
		Command: os.Args[0], Env: map[string]string{helperEnv: "mcp"}, Shared: true, Timeout: time.Minute,
	}}
	release, err := s.Share(s.t.Context(), o)
	require.NoError(s.t, err)
	s.t.Cleanup(release)
	require.Len(s.t, o.SDKMCPServers, 1)
	return o.SDKMCPServers[0]
}

func call(ctx context.Context, m *sdk.MCPServer, do, what, meta string) (string, error) {
	args, _ := json.Marshal(map[string]string{"do": do, "what": what})
	raw, err := m.Handle(ctx, "tools/call", json.RawMessage(`{"name":"do","arguments":`+string(args)+meta+`}`))
	if err != nil {
		return "", err
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) == 0 {
		return "", fmt.Errorf("no text: %s: %w", raw, err)
	}
	return r.Content[0].Text, nil
}

// A session whose options say CleanEnv or UnsetEnv has servers without the variables of the
// host; so must the server be that it shares.
func TestSharedServersEnvironment(t *testing.T) {
	t.Setenv("REDTEAM2_SECRET", "the host's secret")
	t.Setenv("NODE_OPTIONS", "--require=/tmp/evil.js") // the launch of an agent always removes it
	s := newSharing(t, sharedmcp.Options{})
	for name, o := range map[string]*sdk.Options{
		"CleanEnv": {CleanEnv: true, Env: map[string]string{"PATH": os.Getenv("PATH")}},
		"UnsetEnv": {UnsetEnv: []string{"REDTEAM2_SECRET"}},
	} {
		o.Cwd = t.TempDir()
		m := s.session(o)
		got, err := call(t.Context(), m, "env", "REDTEAM2_SECRET", "")
		require.NoError(t, err)
		if got != `"" false` {
			t.Errorf("%s: the shared server has the host's variable: %s", name, got)
		}
		got, err = call(t.Context(), m, "env", "NODE_OPTIONS", "")
		require.NoError(t, err)
		t.Logf("%s: NODE_OPTIONS %s", name, got)
	}
}

// listening gives a session's notifications to got.
func listening(ctx context.Context, got func(method, params string)) context.Context {
	return mcp.ContextWithNotifier(ctx, func(method string, params json.RawMessage) error {
		got(method, string(params))
		return nil
	})
}

// What a server says after its answer to one session must not reach another one, whose call
// happens to be the only open one then.
func TestSharedServersLateWords(t *testing.T) {
	s := newSharing(t, sharedmcp.Options{Dir: t.TempDir()})
	a, b := s.session(&sdk.Options{Cwd: t.TempDir()}), s.session(&sdk.Options{Cwd: t.TempDir()})
	var mu sync.Mutex
	var heard []string
	hear := func(who string) context.Context {
		return listening(t.Context(), func(method, params string) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, who+" "+method+" "+params)
		})
	}
	_, err := call(hear("a"), a, "later", "the data of a", "")
	require.NoError(t, err)
	_, err = call(hear("b"), b, "wait", "900ms", "")
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	for _, h := range heard {
		t.Log(h)
		if strings.HasPrefix(h, "b ") && strings.Contains(h, "the data of a") {
			t.Errorf("one session has heard what was meant for another one: %s", h)
		}
	}
}

// Options.Spawner puts the agent somewhere else, such as into a container, and with it the
// MCP servers that it starts. A server that is shared must not be started on the host
// instead, without a word.
func TestSharedServersStayInTheContainer(t *testing.T) {
	s := newSharing(t, sharedmcp.Options{Dir: t.TempDir()})
	asked := 0
	o := &sdk.Options{
		Cwd: t.TempDir(), Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/bin/true"}),
		Spawner: sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
			asked++
			return c.Argv(), nil, nil
		}),
		MCPServers: map[string]sdk.MCPServerConfig{"db": {Command: os.Args[0], Env: map[string]string{helperEnv: "mcp"}, Shared: true}},
	}
	release, err := s.Share(t.Context(), o)
	defer release()
	if err != nil {
		t.Logf("refused, which is right: %v", err)
		return
	}
	if s.Running() > 0 && asked == 0 {
		t.Errorf("the server of an agent with a Spawner of its own runs on the host; the Spawner was not asked")
	}
}
