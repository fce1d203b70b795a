package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

const (
	grace    = 2 * time.Second  // after end of input, and after SIGTERM
	endLimit = 30 * time.Second // of all processes, once they are killed
)

// answer answers a request of the server for the session whose call is open.
func (l *Link) answer(m *jsonrpc.Request) {
	reply := &jsonrpc.Response{ID: m.ID}
	var err error
	if m.Method == "ping" {
		reply.Result = json.RawMessage("{}")
	} else if v := l.speaker(); v == nil {
		err = fmt.Errorf("%s is refused: the server serves several sessions, and not exactly one of them has a call open", m.Method)
	} else {
		reply.Result, err = v.Asked(l.ctx, m)
	}
	if err != nil {
		reply.Result, reply.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	_ = l.write(reply) // a server that is gone waits for nothing
}

// lapse notes a call that was given up without an answer.
func (l *Link) lapse(id jsonrpc.ID, v Caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	maps.DeleteFunc(l.lapsed, func(_ jsonrpc.ID, c lapsed) bool { return now.After(c.until) })
	l.lapsed[id] = lapsed{v, now.Add(lapseLimit)}
}

// speaker is the one whom a question is for: the owner, or the one session whose call is open, or
// nil if there is not exactly one. A call of another session that was given up may be what the
// server asks about, too.
func (l *Link) speaker() Caller {
	if l.owner != nil {
		return l.owner
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *openCall
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

// End implements [Conn]: it ends the process and all that it has started, and returns when they
// are gone. now: without giving it time to end by itself.
func (l *Link) End(now bool) error {
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
	_ = l.fail(l.shut)
	over, stop := kernel.WithTimeout(context.Background(), l.clock, &session.TimeoutError{What: "end of an MCP server", Limit: endLimit})
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
func (l *Link) exits() bool {
	ctx, cancel := kernel.WithTimeout(context.Background(), l.clock, &session.TimeoutError{What: "end of an MCP server", Limit: grace})
	defer cancel()
	return l.exec.Await(ctx, l.proc.Exited()) == nil
}
