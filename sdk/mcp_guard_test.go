package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const panicText = "dsn=postgres://u:hunter2@db"

// panics is a value whose encoding panics.
type panics struct{ X string }

func (panics) MarshalJSON() ([]byte, error) { panic(panicText) }

// decodes is an input whose decoding panics.
type decodes struct {
	X panicking `json:"x"`
}

type panicking string

func (*panicking) UnmarshalJSON([]byte) error { panic(panicText) }

// oddContent is content whose encoding is the program's own.
type oddContent struct{ *mcpsdk.TextContent }

func (oddContent) MarshalJSON() ([]byte, error) { panic(panicText) }

// newPanicking is a server of the official SDK that panics in most of its parts.
func newPanicking() *mcpsdk.Server {
	s := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "off", Version: "2.0"}, &mcpsdk.ServerOptions{
		CompletionHandler: func(context.Context, *mcpsdk.CompleteRequest) (*mcpsdk.CompleteResult, error) { panic(panicText) },
	})
	tool := func(name string, run func() (*mcpsdk.CallToolResult, any)) {
		mcpsdk.AddTool(s, &mcpsdk.Tool{Name: name, Description: "d"}, func(context.Context, *mcpsdk.CallToolRequest, none) (*mcpsdk.CallToolResult, any, error) {
			r, out := run()
			return r, out, nil
		})
	}
	tool("typed", func() (*mcpsdk.CallToolResult, any) { panic(panicText) })
	tool("nil map", func() (*mcpsdk.CallToolResult, any) {
		text := strings.Fields(panicText)
		return sdk.Text(text[len(text)]), nil
	})
	tool("goexit", func() (*mcpsdk.CallToolResult, any) { goruntime.Goexit(); return nil, nil })
	tool("output", func() (*mcpsdk.CallToolResult, any) { return nil, panics{} })
	tool("meta", func() (*mcpsdk.CallToolResult, any) {
		return &mcpsdk.CallToolResult{Meta: mcpsdk.Meta{"a": panics{}}}, nil
	})
	tool("content", func() (*mcpsdk.CallToolResult, any) {
		return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{oddContent{&mcpsdk.TextContent{}}}}, nil
	})
	tool("content's meta", func() (*mcpsdk.CallToolResult, any) {
		return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Meta: mcpsdk.Meta{"a": panics{}}}}}, nil
	})
	tool("fine", func() (*mcpsdk.CallToolResult, any) { return sdk.Text("fine"), nil })
	mcpsdk.AddTool(s, &mcpsdk.Tool{Name: "input", Description: "d", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcpsdk.CallToolRequest, decodes) (*mcpsdk.CallToolResult, any, error) {
			return sdk.Text("not reached"), nil, nil
		})
	s.AddTool(&mcpsdk.Tool{Name: "raw", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
		panic(panicText)
	})
	s.AddResource(&mcpsdk.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcpsdk.ReadResourceRequest) (*mcpsdk.ReadResourceResult, error) {
		panic(panicText)
	})
	s.AddPrompt(&mcpsdk.Prompt{Name: "p"}, func(context.Context, *mcpsdk.GetPromptRequest) (*mcpsdk.GetPromptResult, error) {
		panic(panicText)
	})
	s.AddReceivingMiddleware(panicsAt("resources/list"))
	return s
}

func TestWrappedServerThatPanics(t *testing.T) {
	t.Parallel()
	s, err := sdk.WrapMCPServer("srv", newPanicking())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close(context.Background())) })
	tool := func(name string) [2]string {
		return [2]string{"tools/call", `{"name":"` + name + `","arguments":{"x":"1"}}`}
	}
	noInput := func(name string) [2]string { return [2]string{"tools/call", `{"name":"` + name + `","arguments":{}}`} }
	for name, request := range map[string][2]string{
		"typed tool":                   noInput("typed"),
		"runtime error":                noInput("nil map"),
		"ended goroutine":              noInput("goexit"),
		"encoded output":               noInput("output"),
		"encoded meta":                 noInput("meta"),
		"encoded content":              noInput("content"),
		"meta of content":              noInput("content's meta"),
		"decoded input":                tool("input"),
		"raw tool":                     noInput("raw"),
		"resource":                     {"resources/read", `{"uri":"file:///a"}`},
		"prompt":                       {"prompts/get", `{"name":"p"}`},
		"completion":                   {"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}`},
		"the program's own middleware": {"resources/list", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Handle(context.Background(), request[0], json.RawMessage(request[1]))
			var p *session.PanicError
			require.ErrorAs(t, err, &p)
			assert.Equal(t, request[0], p.Message)
			if name != "ended goroutine" {
				assert.Contains(t, string(p.Stack), "mcp_guard_test.go", "the stack says where")
			}
			assert.Equal(t, "fine", call(t, s, "fine", "{}").text(), "the connection lives")
		})
	}
}

func TestWrappedServerThatPanicsInANotification(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	o.AddReceivingMiddleware(panicsAt("notifications/cancelled"))
	s := wrapped(t, o)
	waits, p := make(chan error), params(t, "stubborn", "{}", "")
	go func() {
		_, err := s.Handle(context.Background(), "tools/call", p)
		waits <- err
	}()
	<-o.began
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errPlain)
	_, err := s.Handle(ctx, "tools/call", params(t, "slow", "{}", ""))
	require.ErrorIs(t, err, errPlain)
	require.ErrorAs(t, <-waits, new(*session.PanicError), "a call in flight says so")
	close(o.let)
	assert.Equal(t, "fine", call(t, s, "echo", `{"x":"fine"}`).text(), "over a new connection")
}

// panicsAt is middleware that panics when it handles method.
func panicsAt(method string) mcpsdk.Middleware {
	return func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		return func(ctx context.Context, m string, req mcpsdk.Request) (mcpsdk.Result, error) {
			if m == method {
				panic(panicText)
			}
			return next(ctx, m, req)
		}
	}
}

func TestWrappedServerThatPanicsAtItsStart(t *testing.T) {
	t.Parallel()
	for name, panicAt := range map[string]string{"handshake": "initialize", "initialized": "notifications/initialized", "list": "tools/list"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOfficial(t)
			s := wrapped(t, o)
			o.AddReceivingMiddleware(panicsAt(panicAt))
			_, _, err := s.Manifest()
			require.ErrorAs(t, err, new(*session.PanicError))
		})
	}
}

func TestWrappedServerIsGuardedOnce(t *testing.T) {
	t.Parallel()
	shared, err := sdk.WrapMCPServer("srv", newPanicking())
	require.NoError(t, err)
	for range 3 {
		s := sdk.ForSession(shared)
		_, err = s.Handle(context.Background(), "tools/call", json.RawMessage(`{"name":"raw"}`))
		var p *session.PanicError
		require.ErrorAs(t, err, &p)
		assert.NotContains(t, string(p.Stack), "guardOf", "below the outermost guard there is none")
		require.NoError(t, s.Close(context.Background()))
	}
}

func TestWrappedServerKeepsItsOtherTransports(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	s := wrapped(t, o)
	for range 3 {
		session := sdk.ForSession(s)
		_, _, err := session.Manifest()
		require.NoError(t, err)
		require.NoError(t, session.Close(context.Background()))
	}
	seen := 0
	o.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		return func(ctx context.Context, method string, req mcpsdk.Request) (result mcpsdk.Result, err error) {
			defer func() {
				if p := recover(); p != nil {
					seen++
					result, err = nil, errPlain
				}
			}()
			return next(ctx, method, req)
		}
	})
	mcpsdk.AddTool(o.Server, &mcpsdk.Tool{Name: "boom", Description: "d"}, func(context.Context, *mcpsdk.CallToolRequest, none) (*mcpsdk.CallToolResult, any, error) {
		panic(panicText)
	})
	ctx := context.Background()
	here, there := mcpsdk.NewInMemoryTransports()
	session, err := o.Connect(ctx, there, nil)
	require.NoError(t, err)
	client, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "c"}, nil).Connect(ctx, here, nil)
	require.NoError(t, err)
	_, err = client.CallTool(ctx, &mcpsdk.CallToolParams{Name: "boom", Arguments: map[string]any{}})
	require.ErrorContains(t, err, errPlain.Error())
	assert.Equal(t, 1, seen, "the panic reached the program's own middleware")
	require.NoError(t, client.Close())
	require.NoError(t, session.Wait())

	own := sdk.ForSession(s)
	_, err = own.Handle(ctx, "tools/call", json.RawMessage(`{"name":"boom","arguments":{}}`))
	require.Error(t, err)
	require.NoError(t, own.Close(ctx))
}

// A panic of a wrapped server's tool is what a panic of any other tool is.
func TestWrappedPanicInASession(t *testing.T) {
	t.Parallel()
	for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
		t.Run(d.Name(), func(t *testing.T) {
			t.Parallel()
			var out lockedBuffer
			rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			require.NoError(t, err)
			s, err := sdk.WrapMCPServer("srv", newPanicking())
			require.NoError(t, err)
			got := toolTurn(t, rt, d, s, use("boom", "typed", nil), use("fine", "fine", nil))
			require.Contains(t, got, "boom")
			assert.True(t, got["boom"].IsError)
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			assert.Contains(t, string(raw), "the tool failed; the host's events say why")
			assert.NotContains(t, string(raw), "hunter2", "a panic's text is not for the model")
			assert.False(t, got["fine"].IsError, "the session goes on")
			require.NoError(t, rt.Shutdown(context.Background()))
			require.NoError(t, s.Close(context.Background()))
			assert.Contains(t, out.String(), "level=WARN")
			assert.Contains(t, out.String(), "panic while handling tools/call: "+panicText)
		})
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
