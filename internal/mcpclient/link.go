package mcpclient

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

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Link is the connection to the process of a server: JSON-RPC, one message on
// each line (the stdio transport of MCP 2025-06-18). The link
// gives the calls of all callers its own ids and progress tokens.
type Link struct {
	exec   session.Executor
	clock  session.Clock
	proc   session.Process
	stderr *kernel.Promise[struct{}]
	over   *kernel.Promise[struct{}] // nothing is read any more
	ended  *kernel.Promise[error]    // the process is gone
	owner  Caller                    // nil: questions are for the one whose call is open
	shut   error                     // why calls fail after End
	ctx    context.Context           // of what the server asks; ends with the link
	cancel context.CancelFunc

	initialize, tools json.RawMessage // results; written before anybody else has the link

	writing sync.Mutex

	mu       sync.Mutex
	next     float64
	calls    map[jsonrpc.ID]*openCall
	tokens   map[string]*openCall  // by the link's progress token
	lapsed   map[jsonrpc.ID]lapsed // calls that were given up, until their answer
	views    []heard
	unheard  bool        // the tools have changed before anybody listened
	closed   *EndedError // nil while it works
	stopping bool
	tail     []byte // of stderr
}

// openCall is a request under way.
type openCall struct {
	view   Caller // nil: the link's own
	notify Notify
	token  json.RawMessage // the agent's progress token; nil: none
	done   *kernel.Promise[json.RawMessage]
}

// lapsed is a call whose caller has given up. The server may still work at it, and ask.
type lapsed struct {
	view  Caller
	until time.Time
}

// lapseLimit is how long a call that was given up counts without an answer: a server that heeds
// the cancel sends none.
const lapseLimit = time.Minute

const (
	// maxLine is the longest message of a server.
	maxLine = 64 << 20
	// maxTail is what is kept of stderr, for errors.
	maxTail = 4 << 10
)

func newLink(exec session.Executor, clock session.Clock, p session.Process, owner Caller, closed error) *Link {
	l := &Link{
		owner: owner,
		exec:  exec, clock: clock, proc: p, shut: closed, over: kernel.NewPromise[struct{}](), stderr: kernel.NewPromise[struct{}](),
		calls: make(map[jsonrpc.ID]*openCall), tokens: make(map[string]*openCall),
		lapsed: make(map[jsonrpc.ID]lapsed),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	exec.Go(l.read)
	exec.Go(l.readErrors)
	return l
}

// Hello implements [Conn].
func (l *Link) Hello() (initialize, tools json.RawMessage) { return l.initialize, l.tools }

// Ended implements [Conn].
func (l *Link) Ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		return nil
	}
	return l.closed
}

// greet does the handshake, and asks for the tools.
func (l *Link) greet(ctx context.Context) (err error) {
	l.initialize, err = l.Call(ctx, nil, nil, "initialize", json.RawMessage(
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
	if offers.Capabilities.Tools == nil {
		l.tools = json.RawMessage(`{"tools":[]}`)
		return nil
	}
	l.tools, err = l.Tools(ctx)
	return err
}

// Tools implements [Conn]: it asks page by page.
func (l *Link) Tools(ctx context.Context) (json.RawMessage, error) {
	all := []json.RawMessage{}
	for cursor := ""; ; {
		var params json.RawMessage
		if cursor != "" {
			var err error
			if params, err = json.Marshal(map[string]string{"cursor": cursor}); err != nil {
				return nil, err
			}
		}
		page, err := l.Call(ctx, nil, nil, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var p struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(page, &p); err != nil {
			return nil, err
		}
		all = append(all, p.Tools...)
		if p.Next == "" || p.Next == cursor {
			return json.Marshal(map[string]any{"tools": all})
		}
		cursor = p.Next
	}
}

// Call implements [Conn]. If ctx ends first, the server gets a cancellation.
func (l *Link) Call(ctx context.Context, v Caller, notify Notify, method string, params json.RawMessage) (json.RawMessage, error) {
	c := &openCall{view: v, notify: notify, done: kernel.NewPromise[json.RawMessage]()}
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
func (l *Link) write(m jsonrpc.Message) error {
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
func (l *Link) fail(cause error) *EndedError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = &EndedError{cause}
		l.cancel()
		for _, c := range l.calls { //troupe:maporder each ends a wait of its own
			c.done.Fail(l.closed)
		}
	}
	return l.closed
}

// read reads until the process ends. Its remains are cleared up then.
func (l *Link) read() {
	cause := errNoReturn
	defer func() {
		_ = l.fail(cause)
		l.over.Resolve(struct{}{})
		_ = l.End(true)
	}()
	in := bufio.NewScanner(l.proc.Stdout())
	in.Buffer(make([]byte, 0, 16<<10), maxLine)
	for in.Scan() {
		m, err := jsonrpc.DecodeMessage(in.Bytes())
		if err != nil {
			continue // some servers print other things, too
		}
		l.take(m)
	}
	if cause = in.Err(); cause == nil {
		cause = io.EOF
	}
}

// errNoReturn is why a server has ended whose process of a user's spawner ended the goroutine that read.
var errNoReturn = errors.New("the output of the server ended the goroutine that read it")

func (l *Link) readErrors() {
	defer l.stderr.Resolve(struct{}{})
	from := l.proc.Stderr()
	if from == nil {
		return
	}
	buf := make([]byte, maxTail)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		l.tail = append(l.tail, buf[:n]...)
		l.tail = l.tail[max(len(l.tail)-maxTail, 0):]
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Said implements [Conn]: the end of stderr, to follow an error.
func (l *Link) Said() string {
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
func (l *Link) take(m jsonrpc.Message) {
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
			c.done.Fail(failed)
		case m.Error != nil:
			c.done.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: m.Error.Error()})
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
