package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

// someServer is an MCP server in memory.
type someServer struct {
	mu       sync.Mutex
	tools    []string
	err      error
	changed  bool
	hangs    bool // Connect waits for the end of its context
	connects int
	calls    []string

	begun, goes chan struct{} // Connect says that it has begun, and waits; or nil
	gone        chan struct{} // gets each Disconnect; or nil
	quits       chan struct{} // the end of a call that does not wait for the answer to its question; or nil
}

func (s *someServer) Name() string      { return "db" }
func (s *someServer) Transport() string { return "stdio" }
func (s *someServer) Alive() bool       { return true }

func (s *someServer) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *someServer) Connect(ctx context.Context) (json.RawMessage, []json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connects++
	if s.hangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return nil, nil, context.Cause(ctx)
	}
	if s.begun != nil {
		s.mu.Unlock()
		s.begun <- struct{}{}
		<-s.goes
		s.mu.Lock()
	}
	s.changed = false
	var all []json.RawMessage
	for _, name := range s.tools {
		all = append(all, json.RawMessage(`{"name":"`+name+`","annotations":{"readOnlyHint":true}}`))
	}
	return json.RawMessage(`{"name":"db"}`), all, s.err
}

func (s *someServer) Disconnect(context.Context) error {
	if s.gone != nil {
		s.gone <- struct{}{}
	}
	return nil
}

func (s *someServer) Request(ctx context.Context, ask func(context.Context, Object) (Answer, error), method string, _ Object) (json.RawMessage, error) {
	s.mu.Lock()
	s.calls = append(s.calls, method)
	s.mu.Unlock()
	if s.quits != nil {
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			<-s.quits
			cancel(errors.New("it took too long"))
		}()
		_, err := ask(ctx, Object{"subtype": "elicitation", "mcp_server_name": "db", "message": "well?"})
		return nil, err
	}
	a, err := ask(ctx, Object{"subtype": "elicitation", "mcp_server_name": "db", "message": "well?"})
	if err != nil {
		return nil, err
	}
	return a.Body, nil
}

func (s *someServer) Login(context.Context, string) (string, error) { return "https://login", nil }
func (s *someServer) FinishLogin(context.Context, string) error     { return nil }
func (s *someServer) Logout(context.Context) error                  { return nil }
func (s *someServer) set(tools ...string) {
	s.mu.Lock()
	s.tools, s.changed = tools, true
	s.mu.Unlock()
}

// serverRun runs an agent with the server until the host has closed stdin.
func serverRun(t *testing.T, p *wakePort, s *someServer, turn func(*Turn) error) string {
	t.Helper()
	var all tasks
	Run(Launch{}, p, Config{
		Dialect: Claude, Turn: turn, Executor: &all, AfterFunc: func(d time.Duration, fn func()) func() bool { return time.AfterFunc(d, fn).Stop },
		Live: &Live{Servers: []MCPServer{s}, Used: func(*Turn) Object { return nil }},
	})
	all.Wait()
	return p.written()
}

func toolsOf(l *Lane) string {
	var names []string
	for _, tool := range l.MCPTools() {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// The list of tools changes between turns only.
func TestToolsOfAServerWithinATurn(t *testing.T) {
	t.Parallel()
	s := &someServer{tools: []string{"one"}}
	p := newWakePort(helloLine, promptLine, promptLine)
	close(p.lines)
	var seen []string
	out := serverRun(t, p, s, func(turn *Turn) error {
		seen = append(seen, toolsOf(turn.Lane))
		s.set("one", "two")
		require.NoError(t, turn.Strand().Yield())
		seen = append(seen, toolsOf(turn.Lane))
		_, _, known := turn.MCPTool("mcp__db__one")
		assert.True(t, known)
		return turn.Text("done")
	})
	assert.Equal(t, []string{"one", "one", "one two", "one two"}, seen)
	assert.Contains(t, out, `"mcp_servers":[{"name":"db","source":"dynamic","status":"connected"}]`)
	assert.Contains(t, out, `"mcp__db__two"`)
}

// A turn waits for the servers, and an interrupt and the end of stdin do not.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	s := &someServer{hangs: true}
	p := newWakePort(helloLine, promptLine)
	go func() {
		p.wait(`"subtype":"success"`)
		p.lines <- interruptLine
		p.wait(`"type":"result"`)
		close(p.lines)
	}()
	out := serverRun(t, p, s, func(*Turn) error { return errors.New("it does not wait") })
	assert.NotContains(t, out, "it does not wait")
	assert.Equal(t, 1, s.connects)
}

// A server's question goes to the host, and its answer to the server.
func TestAServerAsksTheHost(t *testing.T) {
	t.Parallel()
	s := &someServer{tools: []string{"one"}}
	p := newWakePort(helloLine, promptLine)
	go func() {
		p.wait(`"elicitation"`)
		out := p.written()
		_, rest, _ := strings.Cut(out[strings.LastIndex(out[:strings.Index(out, `"elicitation"`)], "\n")+1:], `"request_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		p.lines <- `{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":{"action":"accept"}}}`
		close(p.lines)
	}()
	out := serverRun(t, p, s, func(turn *Turn) error {
		answer, err := turn.Strand().RequestMCP("db", "tools/call", Object{"name": "one"})
		if err != nil {
			return err
		}
		_, missing := turn.Strand().RequestMCP("none", "tools/call", nil)
		require.Error(t, missing)
		return turn.Text(string(answer))
	})
	assert.Contains(t, out, `"result":"{\"action\":\"accept\"}"`)
	assert.Equal(t, []string{"tools/call"}, s.calls)
}

// A server that wants a login says so, and the host begins it.
func TestAServerThatWantsALogin(t *testing.T) {
	t.Parallel()
	s := &someServer{err: ErrNeedsLogin}
	p := newWakePort(helloLine, promptLine)
	go func() {
		p.wait(`"type":"result"`)
		p.lines <- `{"type":"control_request","request_id":"7","request":{"subtype":"mcp_authenticate","serverName":"db"}}`
		p.lines <- `{"type":"control_request","request_id":"8","request":{"subtype":"mcp_authenticate","serverName":"none"}}`
		p.wait(`"request_id":"7"`)
		p.wait(`"request_id":"8"`)
		close(p.lines)
	}()
	out := serverRun(t, p, s, func(turn *Turn) error { return turn.Text("without it") })
	assert.Contains(t, out, `"status":"needs-auth"`)
	assert.Contains(t, out, `"authUrl":"https://login"`)
	assert.Contains(t, out, "Server not found: none")
}

// A question that the server gives up is withdrawn: the call does not wait for its answer.
func TestAServerGivesUpItsQuestion(t *testing.T) {
	t.Parallel()
	s := &someServer{tools: []string{"one"}, quits: make(chan struct{})}
	p := newWakePort(helloLine, promptLine)
	go func() {
		p.wait(`"elicitation"`)
		close(s.quits)
		p.wait(`"type":"result"`)
		close(p.lines)
	}()
	out := serverRun(t, p, s, func(turn *Turn) error {
		_, err := turn.Strand().RequestMCP("db", "tools/call", Object{"name": "one"})
		return turn.Text(err.Error())
	})
	assert.Contains(t, out, `"result":"it took too long"`)
	assert.Contains(t, out, `"type":"control_cancel_request"`)
}

// A server that is removed while the agent connects to it does not live on.
func TestAServerIsRemovedWhileItConnects(t *testing.T) {
	t.Parallel()
	s := &someServer{begun: make(chan struct{}), goes: make(chan struct{}), gone: make(chan struct{}, 2)}
	p := newWakePort(helloLine, `{"type":"control_request","request_id":"7","request":{"subtype":"mcp_set_servers","servers":{"db":{"type":"stdio","command":"db"}}}}`)
	var all tasks
	all.Go(func() {
		<-s.begun
		p.lines <- `{"type":"control_request","request_id":"8","request":{"subtype":"mcp_set_servers","servers":{}}}`
		<-s.gone
		close(s.goes)
		select {
		case <-s.gone:
		case <-time.After(time.Minute):
			t.Error("the server lives on")
		}
		close(p.lines)
	})
	Run(Launch{}, p, Config{
		Dialect: Claude, Executor: &all, AfterFunc: func(d time.Duration, fn func()) func() bool { return time.AfterFunc(d, fn).Stop },
		Live: &Live{NewServer: func(string, protocol.MCPServerConfig, MCPServer) (MCPServer, error) { return s, nil }},
	})
	all.Wait()
	assert.Contains(t, p.written(), `"removed":["db"]`)
}
