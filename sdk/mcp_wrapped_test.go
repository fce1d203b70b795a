package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/sdk"
)

// official is a server of the official SDK with tools that the tests need.
type official struct {
	*mcpsdk.Server
	began chan struct{} // slow or stubborn has begun
	ended chan error    // slow's context ended, and why
	let   chan struct{} // lets stubborn continue
}

func newOfficial(t *testing.T) *official {
	t.Helper()
	o := &official{
		Server: mcpsdk.NewServer(&mcpsdk.Implementation{Name: "off", Version: "2.0"}, &mcpsdk.ServerOptions{PageSize: 2}),
		began:  make(chan struct{}, 8), ended: make(chan error, 8), let: make(chan struct{}),
	}
	mcpsdk.AddTool(o.Server, &mcpsdk.Tool{Name: "echo", Description: "d"}, func(_ context.Context, _ *mcpsdk.CallToolRequest, in echoInput) (*mcpsdk.CallToolResult, any, error) {
		if in.X == "fail" {
			return nil, nil, errPlain
		}
		return sdk.Text(in.X), nil, nil
	})
	mcpsdk.AddTool(o.Server, &mcpsdk.Tool{Name: "slow", Description: "d"}, func(ctx context.Context, _ *mcpsdk.CallToolRequest, _ none) (*mcpsdk.CallToolResult, any, error) {
		o.began <- struct{}{}
		<-ctx.Done()
		o.ended <- ctx.Err()
		return nil, nil, ctx.Err()
	})
	mcpsdk.AddTool(o.Server, &mcpsdk.Tool{Name: "stubborn", Description: "d"}, func(context.Context, *mcpsdk.CallToolRequest, none) (*mcpsdk.CallToolResult, any, error) {
		o.began <- struct{}{}
		<-o.let
		return sdk.Text("x"), nil, nil
	})
	mcpsdk.AddTool(o.Server, &mcpsdk.Tool{Name: "prog", Description: "d"}, func(ctx context.Context, r *mcpsdk.CallToolRequest, in echoInput) (*mcpsdk.CallToolResult, any, error) {
		for i := range 3 {
			err := r.Session.NotifyProgress(ctx, &mcpsdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Message: in.X,
			})
			if err != nil {
				return nil, nil, err
			}
		}
		return sdk.Text("done"), nil, nil
	})
	mcpsdk.AddTool(o.Server, &mcpsdk.Tool{Name: "asks", Description: "d"}, func(ctx context.Context, r *mcpsdk.CallToolRequest, _ none) (*mcpsdk.CallToolResult, any, error) {
		return sdk.Text("x"), nil, r.Session.Ping(ctx, nil)
	})
	o.AddResource(&mcpsdk.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcpsdk.ReadResourceRequest) (*mcpsdk.ReadResourceResult, error) {
		return &mcpsdk.ReadResourceResult{Contents: []*mcpsdk.ResourceContents{{URI: "file:///a", Text: "hi"}}}, nil
	})
	return o
}

func wrapped(t *testing.T, o *official) *sdk.MCPServer {
	t.Helper()
	s, err := sdk.WrapMCPServer("srv", o.Server)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close(context.Background())) })
	return s
}

func TestWrappedManifest(t *testing.T) {
	t.Parallel()
	s := wrapped(t, newOfficial(t))
	initialize, list, err := s.Manifest()
	require.NoError(t, err)
	var hello struct {
		ProtocolVersion string            `json:"protocolVersion"`
		ServerInfo      map[string]string `json:"serverInfo"`
	}
	require.NoError(t, json.Unmarshal(initialize, &hello))
	assert.Equal(t, "2025-11-25", hello.ProtocolVersion)
	assert.Equal(t, map[string]string{"name": "off", "version": "2.0"}, hello.ServerInfo)
	var tools struct{ Tools []struct{ Name string } }
	require.NoError(t, json.Unmarshal(list, &tools))
	assert.Equal(t, []struct{ Name string }{{"asks"}, {"echo"}, {"prog"}, {"slow"}, {"stubborn"}}, tools.Tools, "all pages")
	assert.Equal(t, "srv", s.Name())
	assert.Zero(t, s.Timeout("echo"))
	assert.Nil(t, s.MCPHandler.(mcp.Orderer).Enter("echo"))
	assert.Same(t, s, s.Sequential())
	again, list2, err := s.Manifest()
	require.NoError(t, err)
	assert.Equal(t, string(initialize)+string(list), string(again)+string(list2))
}

func TestWrappedRequests(t *testing.T) {
	t.Parallel()
	s := wrapped(t, newOfficial(t))
	ctx := context.Background()
	handle := func(method, params string) (string, error) {
		raw, err := s.Handle(ctx, method, json.RawMessage(params))
		return string(raw), err
	}
	// Before any handshake of the agent's, as one that trusts manifests does.
	assert.Equal(t, "hi", call(t, s, "echo", `{"x":"hi"}`).text())
	for range 2 { // an agent greets again when it reconnects
		got, err := handle("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"qodercli","version":"1"}}`)
		require.NoError(t, err)
		assert.Contains(t, got, `"protocolVersion":"2025-06-18"`)
		assert.Contains(t, got, `"resources":`)
	}
	got, err := handle("ping", "")
	require.NoError(t, err)
	assert.JSONEq(t, `{}`, got)
	got, err = handle("resources/read", `{"uri":"file:///a"}`)
	require.NoError(t, err)
	assert.Contains(t, got, `"contents":[{"uri":"file:///a","text":"hi"}]`)

	failed := call(t, s, "echo", `{"x":"fail"}`)
	assert.True(t, failed.IsError)
	assert.Equal(t, "handler exploded", failed.text())
	bad := call(t, s, "echo", `{"x":5}`)
	assert.True(t, bad.IsError)
	assert.Contains(t, bad.text(), "x")
	unknown := call(t, s, "nosuch", `{}`)
	assert.True(t, unknown.IsError)
	assert.Contains(t, unknown.text(), "MCP error -32602: ")
	assert.Contains(t, unknown.text(), "nosuch")

	var rpc *mcp.RPCError
	_, err = handle("bogus/method", `{}`)
	require.ErrorAs(t, err, &rpc)
	assert.Equal(t, mcp.CodeMethodNotFound, rpc.Code)
	got, err = handle("tools/call", `[]`)
	require.NoError(t, err)
	assert.Contains(t, got, "MCP error -32602: ")
	assert.Equal(t, "hi", call(t, s, "echo", `{"x":"hi"}`).text(), "the connection lives")
}

// recorder keeps the messages to a session.
type recorder struct {
	mu   sync.Mutex
	told []string
	more chan struct{}
}

func (r *recorder) ctx() context.Context {
	return mcp.ContextWithNotifier(context.Background(), func(method string, params json.RawMessage) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, method+" "+string(params))
		select {
		case r.more <- struct{}{}:
		default:
		}
		return nil
	})
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

func TestWrappedProgressGoesToItsSession(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	shared := wrapped(t, o)
	var sessions [2]*sdk.MCPServer
	var heard [2]recorder
	for i := range sessions {
		sessions[i] = sdk.ForSession(shared)
		raw, err := sessions[i].Handle(heard[i].ctx(), "tools/call", params(t, "prog", fmt.Sprintf(`{"x":"s%d"}`, i), `{"progressToken":7}`))
		require.NoError(t, err)
		assert.Equal(t, "done", parse(t, raw).text())
		assert.Equal(t, []string{
			fmt.Sprintf(`notifications/progress {"progressToken":7,"message":"s%d","progress":0}`, i),
			fmt.Sprintf(`notifications/progress {"progressToken":7,"message":"s%d","progress":1}`, i),
			fmt.Sprintf(`notifications/progress {"progressToken":7,"message":"s%d","progress":2}`, i),
		}, heard[i].all(), "all of it, before the answer")
	}
	require.NoError(t, sessions[0].Close(context.Background()))
	assert.Equal(t, "hi", call(t, sessions[1], "echo", `{"x":"hi"}`).text(), "the other session lives")
	assert.Len(t, heard[0].all(), 3)
	require.NoError(t, sessions[1].Close(context.Background()))
}

func TestWrappedListChanged(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	s := wrapped(t, o)
	heard := recorder{more: make(chan struct{}, 1)}
	_, err := s.Handle(heard.ctx(), "ping", nil)
	require.NoError(t, err)
	o.RemoveTools("asks")
	<-heard.more
	assert.Equal(t, []string{`notifications/tools/list_changed {}`}, heard.all())
}

func TestWrappedServerIsRefusedItsRequests(t *testing.T) {
	t.Parallel()
	s := wrapped(t, newOfficial(t))
	a := call(t, s, "asks", `{}`)
	assert.True(t, a.IsError)
	assert.Contains(t, a.text(), "agents do not serve ping to in-process MCP servers")
}

func TestWrappedCancel(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	s := wrapped(t, o)
	ctx, cancel := context.WithCancelCause(context.Background())
	errs, p := make(chan error), params(t, "slow", "{}", "")
	go func() {
		_, err := s.Handle(ctx, "tools/call", p)
		errs <- err
	}()
	<-o.began
	cancel(errPlain)
	require.ErrorIs(t, <-errs, errPlain)
	require.ErrorIs(t, <-o.ended, context.Canceled, "the handler is told")
	assert.Equal(t, "hi", call(t, s, "echo", `{"x":"hi"}`).text())
}

func TestWrappedClose(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	s := wrapped(t, o)
	errs, p := make(chan error), params(t, "slow", "{}", "")
	go func() {
		_, err := s.Handle(context.Background(), "tools/call", p)
		errs <- err
	}()
	<-o.began
	require.NoError(t, s.Close(context.Background()))
	var rpc *mcp.RPCError
	require.ErrorAs(t, <-errs, &rpc)
	assert.Equal(t, sdk.ErrMCPServerClosed.Error(), rpc.Message)
	require.ErrorIs(t, <-o.ended, context.Canceled, "the handler is told")
	for range o.Sessions() {
		t.Error("the official server still has a session")
	}
	require.NoError(t, s.Close(context.Background()), "again")
	_, err := s.Handle(context.Background(), "ping", nil)
	require.ErrorAs(t, err, &rpc)
	_, _, err = s.Manifest()
	require.ErrorIs(t, err, sdk.ErrMCPServerClosed)
}

func TestWrappedCloseIsBounded(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	s := wrapped(t, o)
	errs, p := make(chan error), params(t, "stubborn", "{}", "")
	go func() {
		_, err := s.Handle(context.Background(), "tools/call", p)
		errs <- err
	}()
	<-o.began
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errPlain)
	err := s.Close(ctx)
	require.ErrorIs(t, err, errPlain)
	assert.ErrorContains(t, err, "close MCP server srv: a handler has not returned")
	require.Error(t, <-errs)
	close(o.let) // now it ends, and the cleanup's Close finds that out
}

func TestWrappedServerMayHangUp(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	s := wrapped(t, o)
	assert.Equal(t, "a", call(t, s, "echo", `{"x":"a"}`).text())
	for session := range o.Sessions() {
		require.NoError(t, session.Close())
	}
	assert.Equal(t, "b", call(t, s, "echo", `{"x":"b"}`).text(), "over a new connection")
}

func TestUnusedWrappedServerHasNoConnection(t *testing.T) {
	t.Parallel()
	o := newOfficial(t)
	s, err := sdk.WrapMCPServer("srv", o.Server)
	require.NoError(t, err)
	require.NoError(t, sdk.ForSession(s).Close(context.Background()))
	for range o.Sessions() {
		t.Error("nobody asked for a session")
	}
}

func TestWrappedUnderLoad(t *testing.T) {
	t.Parallel()
	s := wrapped(t, newOfficial(t))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%5 == 0 {
				cancel()
			}
			x := fmt.Sprint("x", i)
			raw, err := s.Handle(ctx, "tools/call", params(t, "echo", `{"x":"`+x+`"}`, ""))
			if errors.Is(err, context.Canceled) && i%5 == 0 {
				return
			}
			if assert.NoError(t, err) {
				assert.Equal(t, x, parse(t, raw).text(), "answers go to their calls")
			}
		})
	}
	wg.Wait()
}
