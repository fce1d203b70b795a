package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
)

// fake is a server made of functions.
type fake struct {
	name    string
	handle  func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	timeout map[string]time.Duration
}

func (f *fake) Name() string                                { return f.name }
func (f *fake) Manifest() (i, l json.RawMessage, err error) { return nil, nil, nil }
func (f *fake) Timeout(tool string) time.Duration           { return f.timeout[tool] }
func (f *fake) Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return f.handle(ctx, method, params)
}

// The replies to notifications (observed on the Claude Agent SDK 0.3.329 and
// the Qoder SDK 1.0.39).
const (
	claudeReply = `{"jsonrpc":"2.0","result":{},"id":0}`
	qoderReply  = `{"jsonrpc":"2.0"}`
)

func bridge(servers ...Server) *Bridge {
	return NewBridge(BridgeConfig{
		Servers: servers, Exec: kernel.GoExecutor{}, NotificationReply: json.RawMessage(claudeReply),
		Notify: func(string, string, json.RawMessage) error { return errors.New("no session") },
	})
}

// request is a mcp_message request of the agent.
func request(t *testing.T, server, message string) *ledger.Request {
	t.Helper()
	body, err := json.Marshal(map[string]any{"subtype": "mcp_message", "server_name": server, "message": json.RawMessage(message)})
	require.NoError(t, err)
	f, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"cli-1","request":` + string(body) + `}`))
	require.NoError(t, err)
	return &ledger.Request{ID: "cli-1", Kind: ledger.MCP, Frame: f}
}

// job is what the actor would run for a message.
func job(t *testing.T, b *Bridge, server, message string) dispatch.Job {
	t.Helper()
	j, err := b.prepare(request(t, server, message))
	require.NoError(t, err)
	return j
}

// run does what the actor does with a job.
func run(ctx context.Context, j dispatch.Job) (string, error) {
	if j.Done != nil {
		defer j.Done()
	}
	got, err := j.Run(ctx)
	return string(got), err
}

func TestReplies(t *testing.T) {
	t.Parallel()
	s := &fake{name: "srv", handle: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		switch method {
		case "ok":
			return params, nil
		case "nothing":
			return nil, nil
		case "refused":
			return nil, &RPCError{Code: CodeInvalidParams, Message: "no", Data: json.RawMessage(`{"a":1}`)}
		case "wrapped":
			return nil, errors.Join(errors.New("x"), &RPCError{Code: CodeInternal, Message: "inside"})
		case "tools/call":
			return nil, errors.New("handler exploded")
		case "panics":
			panic("boom")
		}
		return nil, &RPCError{Code: CodeMethodNotFound, Message: "Method not found"}
	}}
	tests := map[string]struct{ message, want string }{
		"result":         {`{"jsonrpc":"2.0","id":7,"method":"ok","params":{"b":2}}`, `{"jsonrpc":"2.0","id":7,"result":{"b":2}}`},
		"no result":      {`{"jsonrpc":"2.0","id":7,"method":"nothing"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		"id, string":     {`{"jsonrpc":"2.0","id":"str-9","method":"nothing"}`, `{"jsonrpc":"2.0","id":"str-9","result":{}}`},
		"id, zero":       {`{"jsonrpc":"2.0","id":0,"method":"nothing"}`, `{"jsonrpc":"2.0","id":0,"result":{}}`},
		"unknown method": {`{"jsonrpc":"2.0","id":6,"method":"no/such/method"}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"Method not found"}}`},
		"error":          {`{"jsonrpc":"2.0","id":6,"method":"refused"}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"no","data":{"a":1}}}`},
		"error, inside":  {`{"jsonrpc":"2.0","id":6,"method":"wrapped"}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"inside"}}`},
		"tool error":     {`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"t"}}`, `{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"handler exploded"}],"isError":true}}`},
		"panic":          {`{"jsonrpc":"2.0","id":6,"method":"panics"}`, `{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"the tool panicked: boom"}],"isError":true}}`},
		"notification":   {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, claudeReply},
		"unknown cancel": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, claudeReply},
		"broken cancel":  {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`, claudeReply},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(context.Background(), job(t, bridge(s), "srv", tt.message))
			if name == "panic" {
				require.ErrorAs(t, err, new(*kernel.PanicError), "a panic is reported beside its answer")
			} else {
				require.NoError(t, err, "what goes wrong on this level is an answer, too")
			}
			assert.JSONEq(t, `{"mcp_response":`+tt.want+`}`, got)
		})
	}
}

func TestNotificationReplyIsTheDialects(t *testing.T) {
	t.Parallel()
	b := NewBridge(BridgeConfig{Servers: []Server{&fake{name: "k1"}}, NotificationReply: json.RawMessage(qoderReply)})
	got, err := run(context.Background(), job(t, b, "k1", `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"mcp_response":{"jsonrpc":"2.0"}}`, got)
}

func TestUnknownServer(t *testing.T) {
	t.Parallel()
	_, err := bridge(&fake{name: "srv"}).prepare(request(t, "nosuch", `{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	var refusal *dispatch.Refusal
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, "SDK MCP server not found: nosuch", refusal.Text)
}

func TestBrokenMessages(t *testing.T) {
	t.Parallel()
	b := bridge(&fake{name: "srv"})
	_, err := b.prepare(request(t, "srv", `[1]`))
	assert.ErrorContains(t, err, "srv")
	other, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}`))
	require.NoError(t, err)
	_, err = b.prepare(&ledger.Request{Frame: other})
	assert.ErrorContains(t, err, "mcp_message")
}

func TestLimitsAndNames(t *testing.T) {
	t.Parallel()
	b := bridge(&fake{name: "srv", timeout: map[string]time.Duration{"short": time.Second, "endless": -1}})
	for message, want := range map[string]dispatch.Job{
		`{"id":1,"method":"tools/call","params":{"name":"short"}}`:   {Name: "mcp__srv__short", Limit: time.Second},
		`{"id":1,"method":"tools/call","params":{"name":"endless"}}`: {Name: "mcp__srv__endless"},
		`{"id":1,"method":"tools/call","params":{"name":"plain"}}`:   {Name: "mcp__srv__plain", Limit: DefaultTimeout},
		`{"id":1,"method":"tools/call","params":7}`:                  {Name: "srv tools/call", Limit: DefaultTimeout},
		`{"id":1,"method":"tools/list"}`:                             {Name: "srv tools/list", Limit: DefaultTimeout},
		`{"method":"notifications/initialized"}`:                     {Name: "srv notifications/initialized"},
	} {
		j := job(t, b, "srv", message)
		assert.Equal(t, want.Name, j.Name, message)
		assert.Equal(t, want.Limit, j.Limit, message)
		if j.Done != nil {
			j.Done()
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	began := make(chan string, 2)
	s := &fake{name: "srv", handle: func(ctx context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
		began <- string(params)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}
	other := &fake{name: "other", handle: s.handle}
	b := bridge(s, other)
	type reply struct {
		text string
		err  error
	}
	start := func(server, id string) chan reply {
		done := make(chan reply, 1)
		j := job(t, b, server, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"slow"}}`)
		go func() {
			text, err := run(context.Background(), j)
			done <- reply{text, err}
		}()
		<-began
		return done
	}
	cancel := func(server, id string) {
		got, err := run(context.Background(), job(t, b, server, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId": `+id+` ,"reason":"x"}}`))
		require.NoError(t, err)
		assert.JSONEq(t, `{"mcp_response":`+claudeReply+`}`, got)
	}
	number, text := start("srv", `10`), start("srv", `"10"`)
	cancel("other", `10`) // the same id of another server is another call
	elsewhere := start("other", `10`)
	assert.Empty(t, number)
	cancel("srv", `10`)
	r := <-number
	require.NoError(t, r.err)
	assert.Contains(t, r.text, `"isError":true`)
	assert.Contains(t, r.text, `context canceled`)
	assert.Empty(t, text, "a string is another id than a number")
	cancel("srv", `"10"`)
	<-text
	cancel("other", `10`)
	<-elsewhere
	cancel("srv", `10`) // too late: nothing
	assert.Empty(t, b.calls)
}

func TestTheEndOfTheScopeReachesTheServer(t *testing.T) {
	t.Parallel()
	why := errors.New("the session is over")
	s := &fake{name: "srv", handle: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	got, err := run(ctx, job(t, bridge(s), "srv", `{"id":1,"method":"tools/call","params":{"name":"t"}}`))
	require.NoError(t, err)
	assert.Contains(t, got, why.Error())
}

// place counts how it is used.
type place struct{ entered, left int }

func (p *place) Leave() { p.left++ }

type ordered struct {
	fake
	places map[string]*place
}

func (o *ordered) Enter(tool string) Place {
	p := o.places[tool]
	if p == nil {
		return nil
	}
	p.entered++
	return p
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	p := &place{}
	var seen Place
	o := &ordered{places: map[string]*place{"write": p}}
	o.name = "srv"
	o.handle = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		seen = PlaceFromContext(ctx)
		panic("whatever happens")
	}
	b := bridge(o)
	j := job(t, b, "srv", `{"id":1,"method":"tools/call","params":{"name":"write"}}`)
	assert.Equal(t, place{entered: 1}, *p, "the place is taken as the call arrives")
	_, err := run(context.Background(), j)
	require.ErrorAs(t, err, new(*kernel.PanicError))
	assert.Same(t, p, seen)
	assert.Positive(t, p.left)

	_, err = run(context.Background(), job(t, b, "srv", `{"id":1,"method":"tools/call","params":{"name":"read"}}`))
	require.ErrorAs(t, err, new(*kernel.PanicError))
	assert.Nil(t, seen, "no place, no order")
	_, err = run(context.Background(), job(t, b, "srv", `{"id":1,"method":"tools/list"}`))
	require.ErrorAs(t, err, new(*kernel.PanicError))
	assert.Equal(t, 1, p.entered)

	*p = place{}
	job(t, b, "srv", `{"id":2,"method":"tools/call","params":{"name":"write"}}`).Done() // cancelled before it ran
	assert.Equal(t, place{entered: 1, left: 1}, *p)
}

func TestWhatAServerIsGiven(t *testing.T) {
	t.Parallel()
	var sent []string
	s := &fake{name: "srv", handle: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		notify, ok := NotifierFromContext(ctx)
		assert.True(t, ok)
		assert.NoError(t, notify("notifications/progress", json.RawMessage(`{"progressToken":77}`)))
		open := make(chan struct{})
		close(open)
		return nil, Await(ctx, open)
	}}
	b := NewBridge(BridgeConfig{Servers: []Server{s}, Exec: kernel.GoExecutor{}, Notify: func(server, method string, params json.RawMessage) error {
		sent = append(sent, server+" "+method+" "+string(params))
		return nil
	}})
	_, err := run(context.Background(), job(t, b, "srv", `{"id":1,"method":"tools/call","params":{"name":"t"}}`))
	require.NoError(t, err)
	assert.Equal(t, []string{`srv notifications/progress {"progressToken":77}`}, sent)
}

func TestNotification(t *testing.T) {
	t.Parallel()
	got, err := Notification("notifications/progress", json.RawMessage(`{"progressToken":77,"progress":1,"total":2}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"method":"notifications/progress","params":{"progressToken":77,"progress":1,"total":2},"jsonrpc":"2.0"}`, string(got))
}

func TestBareContext(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, ok := NotifierFromContext(ctx)
	assert.False(t, ok)
	_, ok = NotifierFromContext(ContextWithNotifier(ctx, nil))
	assert.False(t, ok)
	assert.Nil(t, PlaceFromContext(ctx))
}

func TestAwait(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	open, shut := make(chan struct{}), make(chan struct{})
	close(open)
	s := sim.New(1)
	defer s.Close()
	for name, with := range map[string]func(context.Context) context.Context{
		"goroutine":  func(ctx context.Context) context.Context { return ctx },
		"simulation": func(ctx context.Context) context.Context { return ContextWithExecutor(ctx, s) },
	} {
		assert.NoError(t, Await(with(context.Background()), open), name)
		assert.NoError(t, Await(with(over), open), "%s: done wins", name)
		assert.ErrorIs(t, Await(with(over), shut), why, name)
	}
	assert.ErrorIs(t, Await(ContextWithExecutor(context.Background(), s), shut), sim.ErrDeadlock, "the executor decides how to wait")
}

func TestDenial(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ message, response, text string }{
		"tool call":    {`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t"}}`, `{"mcp_response":{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"why not"}],"isError":true}}}`, ""},
		"other call":   {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "", "why not"},
		"notification": {`{"jsonrpc":"2.0","method":"tools/call"}`, "", "why not"},
		"broken":       {`7`, "", "why not"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, text := Denial(request(t, "srv", tt.message), "why not")
			assert.Equal(t, tt.text, text)
			if tt.response == "" {
				assert.Nil(t, response)
				return
			}
			assert.JSONEq(t, tt.response, string(response))
		})
	}
}

func FuzzBridge(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"id":null,"method":"ping"}`, `{"id":{"a":[]},"method":""}`, `null`, `"x"`, `{"params":7}`,
	} {
		f.Add([]byte(seed))
	}
	b := bridge(&fake{name: "srv", handle: func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	}})
	f.Fuzz(func(t *testing.T, message []byte) {
		if !json.Valid(message) {
			return // the frame would not have been one
		}
		r := request(t, "srv", string(message))
		Denial(r, "no")
		j, err := b.prepare(r)
		if err != nil {
			return
		}
		got, err := run(context.Background(), j)
		require.NoError(t, err)
		var answer protocol.MCPMessageReply
		require.NoError(t, json.Unmarshal([]byte(got), &answer))
		require.NotEmpty(t, answer.MCPResponse)
		require.Empty(t, b.calls)
	})
}

// The agent's cancel may run before the call's own task has begun.
func TestCancelledBeforeItBegan(t *testing.T) {
	t.Parallel()
	s := &fake{name: "srv", handle: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		assert.ErrorIs(t, context.Cause(ctx), context.Canceled)
		return nil, nil
	}}
	b := bridge(s)
	call := job(t, b, "srv", `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"slow"}}`)
	cancel := job(t, b, "srv", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}`)
	_, err := run(context.Background(), cancel)
	require.NoError(t, err)
	_, err = run(context.Background(), call)
	require.NoError(t, err)
}
