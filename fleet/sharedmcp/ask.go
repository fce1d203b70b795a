package sharedmcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// answer answers a request of the server for the session whose call is open.
func (l *sharedLink) answer(m *jsonrpc.Request) {
	reply := &jsonrpc.Response{ID: m.ID}
	var err error
	if m.Method == "ping" {
		reply.Result = json.RawMessage("{}")
	} else if v := l.speaker(); v == nil {
		err = fmt.Errorf("%s is refused: the server serves several sessions, and not exactly one of them has a call open", m.Method)
	} else {
		reply.Result, err = v.asked(l.ctx, m)
	}
	if err != nil {
		reply.Result, reply.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	_ = l.write(reply) // a server that is gone waits for nothing
}

// lapse notes a call that was given up without an answer.
func (l *sharedLink) lapse(id jsonrpc.ID, v *sharedView) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	maps.DeleteFunc(l.lapsed, func(_ jsonrpc.ID, c lapsed) bool { return now.After(c.until) })
	l.lapsed[id] = lapsed{v, now.Add(lapseLimit)}
}

// speaker is the one session whose call is open, or nil if there is not exactly one. A call of another
// session that was given up may be what the server asks about, too.
func (l *sharedLink) speaker() *sharedView {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *sharedCall
	for _, c := range l.calls { //troupe:maporder it is the only one, or none is returned
		switch {
		case c.view == nil:
		case found == nil:
			found = c
		case found.view != c.view:
			return nil
		}
	}
	if found == nil {
		return nil
	}
	for _, c := range l.lapsed { //troupe:maporder one is enough
		if c.view != found.view && !l.clock.Now().After(c.until) {
			return nil
		}
	}
	return found.view
}

// asked is what the session answers.
func (v *sharedView) asked(ctx context.Context, m *jsonrpc.Request) (json.RawMessage, error) {
	switch m.Method {
	case "roots/list":
		type root struct {
			URI string `json:"uri"`
		}
		roots := []root{}
		for _, dir := range append([]string{v.opts.Cwd}, v.opts.AdditionalDirectories...) {
			path, err := filepath.Abs(dir)
			if err != nil {
				return nil, err
			}
			roots = append(roots, root{(&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()})
		}
		return json.Marshal(map[string]any{"roots": roots})
	case "elicitation/create":
		return v.elicit(ctx, m.Params)
	}
	return nil, fmt.Errorf("sessions do not serve %s to shared MCP servers", m.Method)
}

// elicit asks Options.OnElicitation. Without it the answer is a refusal, as of any session.
func (v *sharedView) elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	answer := protocol.ElicitationResult{Action: protocol.ElicitDecline}
	if ask := v.opts.OnElicitation; ask != nil {
		var p struct {
			Message string          `json:"message"`
			Mode    string          `json:"mode"`
			URL     string          `json:"url"`
			ID      string          `json:"elicitationId"`
			Schema  json.RawMessage `json:"requestedSchema"`
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		request := &protocol.ElicitationRequest{
			MCPServerName: v.server.name, Message: p.Message, Mode: p.Mode, URL: p.URL, ElicitationID: p.ID, RequestedSchema: p.Schema,
		}
		answer = answered(ctx, ask, request)
	}
	return json.Marshal(answer)
}

// answered is what the user's function answers. If it fails or panics, the answer is a
// refusal: the server learns nothing of the host's errors.
func answered(ctx context.Context, ask session.ElicitationHandler, request *protocol.ElicitationRequest) (answer protocol.ElicitationResult) {
	refused := protocol.ElicitationResult{Action: protocol.ElicitDecline}
	defer func() {
		if recover() != nil {
			answer = refused
		}
	}()
	answer, err := ask(ctx, request)
	if err != nil {
		return refused
	}
	return answer
}

// end ends the process and all that it has started, and returns when they are gone. now:
// without giving it time to end by itself.
func (l *sharedLink) end(now bool) error {
	l.mu.Lock()
	if l.stopping {
		done := l.ended
		l.mu.Unlock()
		err, _ := done.Wait(context.Background(), l.exec)
		return err
	}
	l.stopping, l.ended = true, kernel.NewPromise[error]()
	l.mu.Unlock()
	_ = l.proc.Stdin().Close()
	if now || !l.exits() {
		if !now {
			_ = l.proc.Signal(session.SignalTerminate)
		}
		if now || !l.exits() {
			_ = l.proc.Kill()
		}
	}
	_ = l.fail(sdk.ErrMCPServerClosed)
	over, stop := kernel.WithTimeout(context.Background(), l.clock, &session.TimeoutError{What: "end of a shared MCP server", Limit: sharedEnd})
	defer stop()
	_ = l.exec.Await(over, l.proc.Exited())
	_, err := l.proc.Sweep(over)
	l.proc.CloseOutput()
	_, _ = l.over.Wait(over, l.exec)
	_, _ = l.stderr.Wait(over, l.exec)
	if _, reaped := l.proc.Reap(); err == nil {
		err = reaped
	}
	l.ended.Resolve(err)
	return err
}

// exits reports whether the process ends within the grace.
func (l *sharedLink) exits() bool {
	ctx, cancel := kernel.WithTimeout(context.Background(), l.clock, &session.TimeoutError{What: "end of a shared MCP server", Limit: sharedGrace})
	defer cancel()
	return l.exec.Await(ctx, l.proc.Exited()) == nil
}
