package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
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

func bridge(servers ...session.MCPHandler) *mcp.Bridge {
	return mcp.NewBridge(mcp.BridgeConfig{
		Options: serving(servers...), Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, NotificationReply: json.RawMessage(claudeReply),
		UnknownServer: "SDK MCP server not found: ",
		Notify:        func(string, string, json.RawMessage) error { return errors.New("no session") },
	})
}

// request is a mcp_message request of the agent.
func request(t *testing.T, server, message string) *callback.Request {
	t.Helper()
	body, err := json.Marshal(map[string]any{"subtype": "mcp_message", "server_name": server, "message": json.RawMessage(message)})
	require.NoError(t, err)
	f, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"cli-1","request":` + string(body) + `}`))
	require.NoError(t, err)
	return &callback.Request{Kind: session.KindMCP, Frame: &f}
}

// serving are the options of a session with these servers.
func serving(all ...session.MCPHandler) *session.Options {
	o := &session.Options{}
	for _, s := range all {
		o.SDKMCPServers = append(o.SDKMCPServers, &session.MCPServer{MCPHandler: s})
	}
	return o
}

// job is what the actor would run for a message.
func job(t *testing.T, b *mcp.Bridge, server, message string) callback.Job {
	t.Helper()
	return jobOf(t, b, server, message, func() { t.Error("the request was dropped") })
}

// owner is told when a request is dropped.
type owner func()

func (o owner) Drop(uint64) { o() }

func jobOf(t *testing.T, b *mcp.Bridge, server, message string, drop func()) callback.Job {
	t.Helper()
	r := request(t, server, message)
	r.Owner = owner(drop)
	j, err := mcp.Prepare(b)(r)
	require.NoError(t, err)
	return j
}

// run does what the actor does with a job.
func run(ctx context.Context, j callback.Job) (string, error) {
	if j.Done != nil {
		defer j.Done()
	}
	if j.Begin != nil {
		if err := j.Begin(ctx); err != nil {
			return "", err
		}
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
			return nil, &mcp.RPCError{Code: mcp.CodeInvalidParams, Message: "no", Data: json.RawMessage(`{"a":1}`)}
		case "wrapped":
			return nil, errors.Join(errors.New("x"), &mcp.RPCError{Code: mcp.CodeInternal, Message: "inside"})
		case "tools/call":
			return nil, errors.New("handler exploded")
		case "plain error":
			return nil, errors.New("out of order")
		case "panics":
			panic("boom")
		}
		return nil, &mcp.RPCError{Code: mcp.CodeMethodNotFound, Message: "Method not found"}
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
		"plain error":    {`{"jsonrpc":"2.0","id":6,"method":"plain error"}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"out of order"}}`},
		"panic":          {`{"jsonrpc":"2.0","id":6,"method":"panics"}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"the MCP server failed; the host's events say why"}}`},
		"notification":   {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, claudeReply},
		"unknown cancel": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, claudeReply},
		"broken cancel":  {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`, claudeReply},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(context.Background(), job(t, bridge(s), "srv", tt.message))
			if name == "panic" {
				require.ErrorAs(t, err, new(*session.PanicError), "a panic is reported beside its answer")
			} else {
				require.NoError(t, err, "what goes wrong on this level is an answer, too")
			}
			assert.JSONEq(t, `{"mcp_response":`+tt.want+`}`, got)
		})
	}
}

// A result that is not one JSON value could end the reply, and add to it.
func TestAResultThatIsNotOneValueIsNotSent(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`{}},"other":{"a":{}`, `{},"error":{}`, `{`, `{} {}`} {
		s := &fake{name: "srv", handle: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(result), nil
		}}
		_, err := run(context.Background(), job(t, bridge(s), "srv", `{"jsonrpc":"2.0","id":1,"method":"m"}`))
		require.ErrorContains(t, err, "the result of srv m is not one JSON value", result)
	}
}

func TestNotificationReplyIsTheDialects(t *testing.T) {
	t.Parallel()
	b := mcp.NewBridge(mcp.BridgeConfig{Options: serving(&fake{name: "k1"}), NotificationReply: json.RawMessage(qoderReply)})
	got, err := run(context.Background(), job(t, b, "k1", `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"mcp_response":{"jsonrpc":"2.0"}}`, got)
}

func TestUnknownServer(t *testing.T) {
	t.Parallel()
	_, err := mcp.Prepare(bridge(&fake{name: "srv"}))(request(t, "nosuch", `{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	var refusal *callback.RefusalError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, "SDK MCP server not found: nosuch", refusal.Text)
}

func TestBrokenMessages(t *testing.T) {
	t.Parallel()
	b := bridge(&fake{name: "srv"})
	_, err := mcp.Prepare(b)(request(t, "srv", `[1]`))
	assert.ErrorContains(t, err, "srv")
	other, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}`))
	require.NoError(t, err)
	_, err = mcp.Prepare(b)(&callback.Request{Frame: &other})
	assert.ErrorContains(t, err, "mcp_message")
}

func TestLimitsAndNames(t *testing.T) {
	t.Parallel()
	b := bridge(&fake{name: "srv", timeout: map[string]time.Duration{"short": time.Second, "endless": -1}})
	for message, want := range map[string]callback.Job{
		`{"id":1,"method":"tools/call","params":{"name":"short"}}`:   {Name: "mcp__srv__short", Limit: time.Second},
		`{"id":1,"method":"tools/call","params":{"name":"endless"}}`: {Name: "mcp__srv__endless", Limit: -1},
		`{"id":1,"method":"tools/call","params":{"name":"plain"}}`:   {Name: "mcp__srv__plain", Limit: mcp.DefaultTimeout},
		`{"id":1,"method":"tools/call","params":7}`:                  {Name: "srv tools/call", Limit: mcp.DefaultTimeout},
		`{"id":1,"method":"tools/list"}`:                             {Name: "srv tools/list", Limit: mcp.DefaultTimeout},
	} {
		j := job(t, b, "srv", message)
		assert.Equal(t, want.Name, j.Name, message)
		assert.Equal(t, mcp.DefaultTimeout, j.Limit, "until the server has been asked")
		assert.Equal(t, mcp.DefaultTimeout, j.Deadline().Limit, message)
		require.NoError(t, j.Begin(t.Context()))
		assert.Equal(t, want.Limit, j.Deadline().Limit, message)
		j.Done()
	}
	notification := job(t, b, "srv", `{"method":"notifications/initialized"}`)
	assert.Equal(t, "srv notifications/initialized", notification.Name)
	assert.Zero(t, notification.Limit)
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	s := &fake{name: "srv", handle: func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }}
	b := bridge(s, &fake{name: "other", handle: s.handle})
	var dropped []string
	arrive := func(server, id string) callback.Job {
		return jobOf(t, b, server, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"slow"}}`,
			func() { dropped = append(dropped, server+" "+id) })
	}
	cancel := func(server, id string) {
		got, err := run(context.Background(), job(t, b, server, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId": `+id+` ,"reason":"x"}}`))
		require.NoError(t, err)
		assert.JSONEq(t, `{"mcp_response":`+claudeReply+`}`, got)
	}
	number, text, elsewhere := arrive("srv", `10`), arrive("srv", `"10"`), arrive("other", `10`)
	cancel("srv", `11`)
	assert.Empty(t, dropped)
	cancel("srv", `10`)
	cancel("srv", `"10"`) // a string is another id than a number
	cancel("other", `10`) // the same id of another server is another call
	assert.Equal(t, []string{`srv 10`, `srv "10"`, `other 10`}, dropped)
	for _, j := range []callback.Job{number, text, elsewhere} {
		j.Done()
	}
	cancel("srv", `10`) // too late: nothing
	assert.Len(t, dropped, 3)
	assert.Zero(t, b.Calls())
}

// An id may come again: the end of the first call is not that of the second.
func TestACallThatHasAnIDOfBefore(t *testing.T) {
	t.Parallel()
	b := bridge(&fake{name: "srv"})
	const message = `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}`
	dropped := 0
	first, second := job(t, b, "srv", message), jobOf(t, b, "srv", message, func() { dropped++ })
	first.Done()
	_, err := run(context.Background(), job(t, b, "srv", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}`))
	require.NoError(t, err)
	assert.Equal(t, 1, dropped)
	second.Done()
	assert.Zero(t, b.Calls())
}

func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	b := bridge(&fake{name: "srv"})
	assert.False(t, b.Add(&fake{name: "srv"}), "the name is taken")
	assert.True(t, b.Add(&fake{name: "more"}))
	job(t, b, "more", `{"id":1,"method":"ping"}`).Done()
	b.Remove("srv")
	_, err := mcp.Prepare(b)(request(t, "srv", `{"id":1,"method":"ping"}`))
	require.Error(t, err)
	assert.True(t, b.Add(&fake{name: "srv"}))
	job(t, b, "srv", `{"id":1,"method":"ping"}`).Done()
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

func (o *ordered) Enter(tool string) mcp.Place {
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
	var seen mcp.Place
	o := &ordered{places: map[string]*place{"write": p}}
	o.name = "srv"
	o.handle = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		seen = mcp.PlaceFromContext(ctx)
		panic("whatever happens")
	}
	b := bridge(o)
	j := job(t, b, "srv", `{"id":1,"method":"tools/call","params":{"name":"write"}}`)
	assert.Zero(t, *p, "the server is not asked on the actor")
	_, err := run(context.Background(), j)
	assert.Equal(t, 1, p.entered)
	require.ErrorAs(t, err, new(*session.PanicError))
	assert.Same(t, p, seen)
	assert.Positive(t, p.left)

	_, err = run(context.Background(), job(t, b, "srv", `{"id":1,"method":"tools/call","params":{"name":"read"}}`))
	require.ErrorAs(t, err, new(*session.PanicError))
	assert.Nil(t, seen, "no place, no order")
	_, err = run(context.Background(), job(t, b, "srv", `{"id":1,"method":"tools/list"}`))
	require.ErrorAs(t, err, new(*session.PanicError))
	assert.Equal(t, 1, p.entered)

	*p = place{}
	job(t, b, "srv", `{"id":2,"method":"tools/call","params":{"name":"write"}}`).Done() // cancelled before it ran
	assert.Zero(t, *p)
	_, err = run(context.Background(), job(t, b, "srv", `{"id":3,"method":"tools/call","params":{"name":"write"}}`))
	require.ErrorAs(t, err, new(*session.PanicError), "and holds up nobody")
	assert.Equal(t, place{entered: 1, left: 1}, *p)
}

// Places are taken in the order in which the calls arrive, in whatever order
// their tasks start.
func TestPlacesAreTakenInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		s := sim.New(seed)
		var order []string
		o := &recorder{fake: fake{name: "srv", handle: func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }}}
		o.enter = func(tool string) { order = append(order, tool) }
		b := mcp.NewBridge(mcp.BridgeConfig{Options: serving(o), Clock: s, Exec: s})
		var want []string
		for i := range 8 {
			tool := fmt.Sprint("t", i)
			j := jobOf(t, b, "srv", fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"name":%q}}`, i, tool), nil)
			if i == 3 {
				j.Done() // gave up before it began
				continue
			}
			want = append(want, tool)
			s.Go(func() {
				_, err := run(context.Background(), j)
				assert.NoError(t, err)
			})
		}
		require.NoError(t, s.Run(10_000))
		assert.Equal(t, want, order, "seed %d", seed)
		s.Close()
	}
}

// recorder notes who enters.
type recorder struct {
	fake
	enter func(tool string)
}

func (r *recorder) Enter(tool string) mcp.Place {
	r.enter(tool)
	return nil
}

func TestWhatAServerIsGiven(t *testing.T) {
	t.Parallel()
	var sent []string
	s := &fake{name: "srv", handle: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		notify, ok := mcp.NotifierFromContext(ctx)
		assert.True(t, ok)
		assert.NoError(t, notify("notifications/progress", json.RawMessage(`{"progressToken":77}`)))
		open := make(chan struct{})
		close(open)
		return nil, mcp.Await(ctx, open)
	}}
	b := mcp.NewBridge(mcp.BridgeConfig{Options: serving(s), Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Notify: func(server, method string, params json.RawMessage) error {
		sent = append(sent, server+" "+method+" "+string(params))
		return nil
	}})
	_, err := run(context.Background(), job(t, b, "srv", `{"id":1,"method":"tools/call","params":{"name":"t"}}`))
	require.NoError(t, err)
	assert.Equal(t, []string{`srv notifications/progress {"progressToken":77}`}, sent)
}

func TestNotification(t *testing.T) {
	t.Parallel()
	got, err := mcp.Notification("notifications/progress", json.RawMessage(`{"progressToken":77,"progress":1,"total":2}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"method":"notifications/progress","params":{"progressToken":77,"progress":1,"total":2},"jsonrpc":"2.0"}`, string(got))
}

func TestBareContext(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, ok := mcp.NotifierFromContext(ctx)
	assert.False(t, ok)
	_, ok = mcp.NotifierFromContext(mcp.ContextWithNotifier(ctx, nil))
	assert.False(t, ok)
	assert.Nil(t, mcp.PlaceFromContext(ctx))
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
		"simulation": func(ctx context.Context) context.Context { return mcp.ContextWithExecutor(ctx, s) },
	} {
		assert.NoError(t, mcp.Await(with(context.Background()), open), name)
		assert.NoError(t, mcp.Await(with(over), open), "%s: done wins", name)
		assert.ErrorIs(t, mcp.Await(with(over), shut), why, name)
	}
	assert.ErrorIs(t, mcp.Await(mcp.ContextWithExecutor(context.Background(), s), shut), sim.ErrDeadlock, "the executor decides how to wait")
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
			response, text := mcp.Denial(*request(t, "srv", tt.message).Frame, "why not")
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
		mcp.Denial(*r.Frame, "no")
		j, err := mcp.Prepare(b)(r)
		if err != nil {
			return
		}
		got, err := run(context.Background(), j)
		require.NoError(t, err)
		var answer protocol.MCPMessageReply
		require.NoError(t, json.Unmarshal([]byte(got), &answer))
		require.NotEmpty(t, answer.MCPResponse)
		require.Zero(t, b.Calls())
	})
}
