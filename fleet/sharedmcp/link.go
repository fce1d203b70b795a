package sharedmcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// sharedLink is the connection to the process of a shared server: JSON-RPC, one message on
// each line (the stdio transport of MCP 2025-06-18). The link
// gives the calls of all sessions its own ids and progress tokens.
type sharedLink struct {
	exec   session.Executor
	clock  session.Clock
	proc   session.Process
	stderr *kernel.Promise[struct{}]
	over   *kernel.Promise[struct{}] // nothing is read any more
	ended  *kernel.Promise[error]    // the process is gone
	ctx    context.Context           // of what the server asks; ends with the link
	cancel context.CancelFunc

	initialize, tools json.RawMessage // results; written before anybody else has the link

	writing sync.Mutex

	mu       sync.Mutex
	next     float64
	calls    map[jsonrpc.ID]*sharedCall
	tokens   map[string]*sharedCall // by the link's progress token
	lapsed   map[jsonrpc.ID]lapsed  // calls that were given up, until their answer
	views    []heard
	closed   *linkEnded // nil while it works
	stopping bool
	tail     []byte // of stderr
}

// sharedCall is a request under way.
type sharedCall struct {
	view   *sharedView // nil: the link's own
	notify notifier
	token  json.RawMessage // the agent's progress token; nil: none
	done   *kernel.Promise[json.RawMessage]
}

// lapsed is a call whose caller has given up. The server may still work at it, and ask.
type lapsed struct {
	view  *sharedView
	until time.Time
}

// lapseLimit is how long a call that was given up counts without an answer: a server that heeds
// the cancel sends none.
const lapseLimit = time.Minute

type notifier = func(method string, params json.RawMessage) error

// heard is a session that gets the changes of the server's lists.
type heard struct {
	view   *sharedView
	notify notifier
}

const (
	// maxSharedLine is the longest message of a server.
	maxSharedLine = 64 << 20
	// maxSharedTail is what is kept of stderr, for errors.
	maxSharedTail = 4 << 10
)

func newSharedLink(exec session.Executor, clock session.Clock, p session.Process) *sharedLink {
	l := &sharedLink{
		exec: exec, clock: clock, proc: p, over: kernel.NewPromise[struct{}](), stderr: kernel.NewPromise[struct{}](),
		calls: make(map[jsonrpc.ID]*sharedCall), tokens: make(map[string]*sharedCall),
		lapsed: make(map[jsonrpc.ID]lapsed),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	exec.Go(l.read)
	exec.Go(l.readErrors)
	return l
}

// cause says why the link does not work any more, or nil.
func (l *sharedLink) cause() *linkEnded {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// greet does the handshake, and asks for the tools, page by page.
func (l *sharedLink) greet(ctx context.Context) (err error) {
	l.initialize, err = l.call(ctx, nil, nil, "initialize", json.RawMessage(
		`{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"troupe","version":"1.0.0"}}`))
	if err != nil {
		return err
	}
	if err := l.write(&jsonrpc.Request{Method: "notifications/initialized"}); err != nil {
		return err
	}
	var offers struct {
		Capabilities struct {
			Tools *struct{} `json:"tools"`
		} `json:"capabilities"`
	}
	if err := json.Unmarshal(l.initialize, &offers); err != nil {
		return err
	}
	all := []json.RawMessage{}
	for cursor := ""; offers.Capabilities.Tools != nil; {
		var params json.RawMessage
		if cursor != "" {
			if params, err = json.Marshal(map[string]string{"cursor": cursor}); err != nil {
				return err
			}
		}
		page, err := l.call(ctx, nil, nil, "tools/list", params)
		if err != nil {
			return err
		}
		var p struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(page, &p); err != nil {
			return err
		}
		all = append(all, p.Tools...)
		if p.Next == "" || p.Next == cursor {
			break
		}
		cursor = p.Next
	}
	l.tools, err = json.Marshal(map[string]any{"tools": all})
	return err
}

// listen sends changes to a session from now on.
func (l *sharedLink) listen(v *sharedView, notify notifier) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.views {
		if l.views[i].view == v {
			l.views[i].notify = notify
			return
		}
	}
	l.views = append(l.views, heard{v, notify})
}

// call sends a request and waits for its answer. If ctx ends first, the server gets a cancellation.
func (l *sharedLink) call(ctx context.Context, v *sharedView, notify notifier, method string, params json.RawMessage) (json.RawMessage, error) {
	c := &sharedCall{view: v, notify: notify, done: kernel.NewPromise[json.RawMessage]()}
	l.mu.Lock()
	if l.closed != nil {
		defer l.mu.Unlock()
		return nil, l.closed
	}
	l.next++
	id, _ := jsonrpc.MakeID(l.next) // a number is an id
	token := strconv.FormatFloat(l.next, 'f', -1, 64)
	params, c.token = withToken(params, token)
	l.calls[id] = c
	if c.token != nil {
		l.tokens[token] = c
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, id)
		delete(l.tokens, token)
	}()
	if err := l.write(&jsonrpc.Request{ID: id, Method: method, Params: params}); err != nil {
		return nil, err
	}
	result, err := c.done.Wait(ctx, l.exec)
	if err != nil && ctx.Err() != nil && v != nil {
		l.lapse(id, v)
		if gone, err := json.Marshal(map[string]any{"requestId": id.Raw()}); err == nil {
			_ = l.write(&jsonrpc.Request{Method: "notifications/cancelled", Params: gone}) // a server that is gone needs no news
		}
	}
	return result, err
}

// withToken puts the link's progress token in place of the agent's, which it returns; nil:
// the agent wants no progress.
func withToken(params json.RawMessage, token string) (json.RawMessage, json.RawMessage) {
	if !bytes.Contains(params, []byte("progressToken")) {
		return params, nil
	}
	var fields, meta map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil || json.Unmarshal(fields["_meta"], &meta) != nil {
		return params, nil
	}
	old, ok := meta["progressToken"]
	if !ok {
		return params, nil
	}
	meta["progressToken"] = json.RawMessage(strconv.Quote(token))
	var err error
	if fields["_meta"], err = json.Marshal(meta); err != nil {
		return params, nil
	}
	changed, err := json.Marshal(fields)
	if err != nil {
		return params, nil
	}
	return changed, old
}

// write sends a message. An error ends the link.
func (l *sharedLink) write(m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if _, err := l.proc.Stdin().Write(append(line, '\n')); err != nil {
		return l.fail(err)
	}
	return nil
}

// fail ends the link: all calls under way fail.
func (l *sharedLink) fail(cause error) *linkEnded {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = &linkEnded{cause}
		l.cancel()
		for _, c := range l.calls { //troupe:maporder each ends a wait of its own
			c.done.Fail(l.closed)
		}
	}
	return l.closed
}

// read reads until the process ends. Its remains are cleared up then.
func (l *sharedLink) read() {
	in := bufio.NewScanner(l.proc.Stdout())
	in.Buffer(make([]byte, 0, 16<<10), maxSharedLine)
	for in.Scan() {
		m, err := jsonrpc.DecodeMessage(in.Bytes())
		if err != nil {
			continue // some servers print other things, too
		}
		l.take(m)
	}
	cause := in.Err()
	if cause == nil {
		cause = io.EOF
	}
	_ = l.fail(cause)
	l.over.Resolve(struct{}{})
	_ = l.end(true)
}

func (l *sharedLink) readErrors() {
	defer l.stderr.Resolve(struct{}{})
	from := l.proc.Stderr()
	if from == nil {
		return
	}
	buf := make([]byte, maxSharedTail)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		l.tail = append(l.tail, buf[:n]...)
		l.tail = l.tail[max(len(l.tail)-maxSharedTail, 0):]
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// said is the end of stderr, to follow an error.
func (l *sharedLink) said() string {
	const most = 500
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.tail), "\uFFFD"))
	if text == "" {
		return ""
	}
	return ": " + shown.Tail(text, most)
}

// take handles a message of the server.
func (l *sharedLink) take(m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		l.mu.Lock()
		c := l.calls[m.ID]
		delete(l.lapsed, m.ID)
		l.mu.Unlock()
		if c == nil {
			return // cancelled
		}
		var failed *jsonrpc.Error
		switch {
		case errors.As(m.Error, &failed):
			c.done.Fail(&mcp.RPCError{Code: int(failed.Code), Message: failed.Message, Data: failed.Data})
		case m.Error != nil:
			c.done.Fail(&mcp.RPCError{Code: mcp.CodeInternal, Message: m.Error.Error()})
		default:
			c.done.Resolve(m.Result)
		}
	case *jsonrpc.Request:
		if m.IsCall() {
			l.exec.Go(func() { l.answer(m) })
			return
		}
		l.forward(m.Method, m.Params)
	}
}

// forward passes a notification on to the session that it is for: progress to the call, a
// change of a list to all. Others, such as log messages, do not say whose they are, and may
// come after the answer: they are dropped, because they may be about another session's data.
func (l *sharedLink) forward(method string, params json.RawMessage) {
	var to []notifier
	switch {
	case method == "notifications/progress":
		var fields map[string]json.RawMessage
		var token string
		if json.Unmarshal(params, &fields) != nil || json.Unmarshal(fields["progressToken"], &token) != nil {
			return
		}
		l.mu.Lock()
		c := l.tokens[token]
		l.mu.Unlock()
		if c == nil {
			return
		}
		fields["progressToken"] = c.token
		if changed, err := json.Marshal(fields); err == nil {
			params, to = changed, []notifier{c.notify}
		}
	case strings.HasSuffix(method, "/list_changed"):
		l.mu.Lock()
		for _, h := range l.views {
			to = append(to, h.notify)
		}
		l.mu.Unlock()
	}
	for _, notify := range to {
		if notify != nil {
			_ = notify(method, params) // it fails when the session is over, and so is the news
		}
	}
}

// forget sends nothing to a session any more.
func (l *sharedLink) forget(v *sharedView) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.views {
		if l.views[i].view == v {
			l.views = append(l.views[:i:i], l.views[i+1:]...)
			return
		}
	}
}
