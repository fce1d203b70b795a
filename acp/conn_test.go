package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
)

// wire is the raw side of a connection.
type wire struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	end chan error
}

func newWire(t *testing.T, h acp.Handler, o acp.ConnOptions) (*wire, *acp.Conn) {
	t.Helper()
	r, in := io.Pipe()
	out, w := io.Pipe()
	c := acp.NewConn(r, w, h, o)
	x := &wire{t, in, bufio.NewReader(out), make(chan error, 1)}
	go func() {
		x.end <- c.Serve(context.Background())
		_ = w.Close()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		assert.NoError(t, <-x.end)
	})
	return x, c
}

func (x *wire) send(lines ...string) {
	x.t.Helper()
	for _, l := range lines {
		_, err := io.WriteString(x.in, l+"\n")
		assert.NoError(x.t, err) // not require: tests also send from other goroutines
	}
}

func (x *wire) line() string {
	x.t.Helper()
	l, err := x.out.ReadString('\n')
	require.NoError(x.t, err)
	return strings.TrimSpace(l)
}

func echo(_ context.Context, method string, params json.RawMessage) func() (any, error) {
	switch method {
	case "echo":
		return func() (any, error) { return params, nil }
	case "panic":
		return func() (any, error) { panic("boom") }
	case "fail":
		return func() (any, error) { return nil, &acp.Error{Code: -32002, Message: "not here"} }
	}
	return nil
}

func TestConnAnswersWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"broken":            {`{"jsonrpc":`, `"id":null,"error":{"code":-32700`},
		"batch":             {`[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, `"id":null,"error":{"code":-32600`},
		"no object":         {`7`, `"id":null,"error":{"code":-32600`},
		"null":              {`null`, `"id":null,"error":{"code":-32600`},
		"nothing in it":     {`{"jsonrpc":"2.0","id":5}`, `"id":5,"error":{"code":-32600`},
		"an id that is not": {`{"id":{},"method":"echo"}`, `"id":null,"error":{"code":-32600`},
		"unknown method":    {`{"jsonrpc":"2.0","id":"a","method":"session/set_model"}`, `"id":"a","error":{"code":-32601`},
		"panic":             {`{"jsonrpc":"2.0","id":1,"method":"panic"}`, `"code":-32603`},
		"an error":          {`{"jsonrpc":"2.0","id":1,"method":"fail"}`, `"code":-32002,"message":"not here"`},
		"carriage return":   {"\r\n\n  \n" + `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}` + "\r", `"id":1,"result":{"a":1}`},
		"a long line":       {`{"jsonrpc":"2.0","id":9,"method":"echo","params":{"a":"` + strings.Repeat("x", 300<<10) + `"}}`, `"id":9,"error":{"code":-32600,"message":"the line is longer than 262144 bytes"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, _ := newWire(t, acp.Handler{Request: echo}, acp.ConnOptions{MaxLine: 256 << 10})
			go x.send(c.in)
			assert.Contains(t, x.line(), c.want)
			// The connection lives.
			go x.send(`{"jsonrpc":"2.0","id":2,"method":"echo","params":{"b":2}}`)
			assert.JSONEq(t, `{"jsonrpc":"2.0","id":2,"result":{"b":2}}`, x.line())
		})
	}
}

func TestConnIgnoresUnknownNotificationsAndLateAnswers(t *testing.T) {
	t.Parallel()
	x, _ := newWire(t, acp.Handler{Request: echo}, acp.ConnOptions{})
	go x.send(`{"jsonrpc":"2.0","method":"from/the/future"}`, `{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}`)
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, x.line())
}

func TestConnReadsOnWhileAHandlerWorks(t *testing.T) {
	t.Parallel()
	cancelled := make(chan struct{})
	x, _ := newWire(t, acp.Handler{Request: func(ctx context.Context, method string, params json.RawMessage) func() (any, error) {
		if method == "slow" {
			return func() (any, error) {
				<-ctx.Done()
				close(cancelled)
				return nil, &acp.Error{Code: acp.CodeRequestCancelled, Message: "cancelled"}
			}
		}
		return echo(ctx, method, params)
	}}, acp.ConnOptions{})
	go x.send(`{"jsonrpc":"2.0","id":"s","method":"slow"}`, `{"jsonrpc":"2.0","id":2,"method":"echo","params":{}}`)
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":2,"result":{}}`, x.line())
	go x.send(`{"jsonrpc":"2.0","id":"s","method":"echo"}`)
	assert.Contains(t, x.line(), "still open")
	go x.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"\u0073"}}`)
	assert.Contains(t, x.line(), "-32800")
	<-cancelled
}

func TestConnCalls(t *testing.T) {
	t.Parallel()
	x, c := newWire(t, acp.Handler{}, acp.ConnOptions{MaxLine: 64 << 10})
	type result struct{ OK bool }
	call := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			var r result
			err := c.Call(ctx, "ask", acp.Empty{}, &r)
			if err == nil && !r.OK {
				err = errors.New("no result")
			}
			done <- err
		}()
		return done
	}
	done := call(t.Context())
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":1,"method":"ask","params":{}}`, x.line())
	x.send(`{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`)
	require.NoError(t, <-done)

	done = call(t.Context())
	x.line()
	x.send(`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}`)
	var e *acp.Error
	require.ErrorAs(t, <-done, &e)
	assert.Equal(t, acp.CodeMethodNotFound, e.Code)

	ctx, cancel := context.WithCancel(t.Context())
	done = call(ctx)
	x.line()
	cancel()
	assert.JSONEq(t, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`, x.line())
	require.ErrorIs(t, <-done, context.Canceled)
	x.send(`{"jsonrpc":"2.0","id":3,"result":{"ok":true}}`) // late

	done = call(t.Context())
	x.line()
	x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"result":{"ok":true,"x":%q}}`, strings.Repeat("x", 70<<10)))
	require.ErrorAs(t, <-done, &e)
	assert.Equal(t, acp.CodeInvalidRequest, e.Code, "an answer that is too long fails its call")

	done = call(t.Context())
	x.line()
	require.NoError(t, x.in.Close())
	require.ErrorIs(t, <-done, acp.ErrClosed)
	done = call(t.Context())
	require.ErrorIs(t, <-done, acp.ErrClosed)
}

func TestConnAnswersBeforeThen(t *testing.T) {
	t.Parallel()
	var c *acp.Conn
	x, c := newWire(t, acp.Handler{Request: func(context.Context, string, json.RawMessage) func() (any, error) {
		return func() (any, error) {
			return acp.After{Result: acp.Empty{}, Then: func() { _ = c.Notify("then", acp.Empty{}) }}, nil
		}
	}}, acp.ConnOptions{})
	go x.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	assert.Contains(t, x.line(), `"id":1`)
	assert.Contains(t, x.line(), `"then"`)
}

// What comes in order is handled in order, and answers come after what was written before
// them.
func TestConnKeepsOrder(t *testing.T) {
	t.Parallel()
	var got []string
	client, c := newWire(t, acp.Handler{Notification: func(_ context.Context, method string, _ json.RawMessage) { got = append(got, method) }}, acp.ConnOptions{})
	done := make(chan error, 1)
	go func() { done <- c.Call(t.Context(), "ask", nil, nil) }()
	client.line()
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("n%d", i))
		client.send(fmt.Sprintf(`{"method":"n%d"}`, i))
	}
	client.send(`{"id":1,"result":null}`, `{"id":1,"result":1}`)
	require.NoError(t, errors.Join(<-done))
	assert.Equal(t, want, got)
}

func ExampleConn() {
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	agent := acp.NewConn(toAgent, fromAgent, acp.Handler{
		Request: func(_ context.Context, method string, params json.RawMessage) func() (any, error) {
			return func() (any, error) {
				var r acp.InitializeRequest
				if err := acp.Decode(method, params, &r); err != nil {
					return nil, err
				}
				return acp.InitializeResponse{ProtocolVersion: 1}, nil
			}
		},
	}, acp.ConnOptions{})
	client := acp.NewConn(toClient, fromClient, acp.Handler{}, acp.ConnOptions{})
	ctx := context.Background()
	go func() { _ = agent.Serve(ctx) }()
	go func() { _ = client.Serve(ctx) }()

	var r acp.InitializeResponse
	err := client.Call(ctx, acp.MethodInitialize, acp.InitializeRequest{ProtocolVersion: 1}, &r)
	fmt.Println(r.ProtocolVersion, err)
	// Output: 1 <nil>
}

// Requests that are not answered yet are bounded: each has a goroutine.
func TestConnBoundsOpenRequests(t *testing.T) {
	t.Parallel()
	const most = 1024
	free := make(chan struct{})
	x, _ := newWire(t, acp.Handler{Request: func(context.Context, string, json.RawMessage) func() (any, error) {
		return func() (any, error) { <-free; return 1, nil }
	}}, acp.ConnOptions{})
	for id := range most + 1 {
		x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, id))
	}
	assert.Contains(t, x.line(), fmt.Sprintf(`"id":%d,"error":{"code":-32603,"message":"%d requests are open already`, most, most))
	close(free)
	for range most {
		assert.Contains(t, x.line(), `"result":1`)
	}
	x.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	assert.Contains(t, x.line(), `"id":1,"result":1`)
}
