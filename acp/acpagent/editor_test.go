package acpagent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/runtime"
)

// patience bounds waits for what must happen; a wait that ends so fails the test.
const patience = 20 * time.Second

type object = map[string]any

// editor is a client of the protocol that keeps every line in order.
type editor struct {
	t      *testing.T
	in     io.WriteCloser
	served chan error
	read   chan struct{} // closed when all that the agent wrote has been taken

	mu      sync.Mutex
	changed *sync.Cond
	lines   []line
	last    int
	// permit answers permission requests: an option, "" cancels, "error" is an error,
	// "never" does not answer.
	permit func(line) string
	form   func(line) object                // answers elicitation/create
	missed func(format string, args ...any) // called when an awaited line does not come
}

// line is a message from the agent.
type line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
		ToolCall  struct {
			ToolCallID string          `json:"toolCallId"`
			RawInput   json.RawMessage `json:"rawInput"`
		} `json:"toolCall"`
		Options []acp.PermissionOption `json:"options"`
		Request json.RawMessage        `json:"requestId"`
		Message string                 `json:"message"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *acp.Error      `json:"error"`
	raw    string
}

// bubble runs a test in virtual time, where an agent is never too slow or too fast. It has no subtests.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// newEditor connects an editor to an agent with a configuration.
func newEditor(t *testing.T, c acpagent.Config) *editor {
	t.Helper()
	if c.Options.Runtime == nil { // the shared one is outside of a bubble
		rt, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
		c.Options.Runtime = rt
	}
	r, in := io.Pipe()
	out, w := io.Pipe()
	e := &editor{t: t, missed: t.Errorf, in: in, served: make(chan error, 1), read: make(chan struct{}), permit: func(line) string { return "allow-once" }}
	e.changed = sync.NewCond(&e.mu)
	go func() {
		e.served <- acpagent.Serve(context.WithoutCancel(t.Context()), r, w, c)
		_ = w.Close()
	}()
	go func() {
		defer close(e.read)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			e.take(s.Text())
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		select {
		case err := <-e.served:
			assert.NoError(t, err)
		case <-time.After(patience):
			t.Error("Serve does not end")
		}
		<-e.read
	})
	return e
}

func (e *editor) take(raw string) {
	l := line{raw: raw}
	if err := json.Unmarshal([]byte(raw), &l); err != nil {
		e.t.Errorf("the agent wrote %q: %v", raw, err)
		return
	}
	e.mu.Lock()
	e.lines = append(e.lines, l)
	e.changed.Broadcast()
	permit, form := e.permit, e.form
	e.mu.Unlock()
	switch l.Method {
	case acp.MethodSessionRequestPermission:
		go e.answerPermission(l.ID, permit(l))
	case acp.MethodElicitationCreate:
		go e.write(object{"jsonrpc": "2.0", "id": l.ID, "result": form(l)})
	}
}

func (e *editor) answerPermission(id json.RawMessage, chosen string) {
	switch chosen {
	case "never":
	case "error":
		e.write(object{"jsonrpc": "2.0", "id": id, "error": object{"code": -32603, "message": "no window"}})
	case "":
		e.write(object{"jsonrpc": "2.0", "id": id, "result": object{"outcome": object{"outcome": "cancelled"}}})
	default:
		e.write(object{"jsonrpc": "2.0", "id": id, "result": object{"outcome": object{"outcome": "selected", "optionId": chosen}}})
	}
}

func (e *editor) write(v any) {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = e.in.Write(append(data, '\n'))
	}
	if err != nil {
		e.t.Logf("the editor cannot write: %v", err)
	}
}

// request sends a request and returns its id.
func (e *editor) request(method string, params any) int {
	e.mu.Lock()
	e.last++
	id := e.last
	e.mu.Unlock()
	e.write(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id
}

func (e *editor) notify(method string, params any) {
	e.write(object{"jsonrpc": "2.0", "method": method, "params": params})
}

// await waits for a line.
func (e *editor) await(what string, fits func(line) bool) line {
	e.t.Helper()
	stop := time.AfterFunc(patience, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.missed("no %s; there is:\n%s", what, strings.Join(e.story(), "\n"))
		e.lines = append(e.lines, line{Method: "timeout"})
		e.changed.Broadcast()
	})
	defer stop.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for _, l := range e.lines {
			if fits(l) {
				return l
			}
			if l.Method == "timeout" {
				e.t.FailNow()
			}
		}
		e.changed.Wait()
	}
}

// answer waits for the answer to a request.
func (e *editor) answer(id int) line {
	e.t.Helper()
	return e.await(fmt.Sprintf("answer to %d", id), func(l line) bool { return l.Method == "" && string(l.ID) == fmt.Sprint(id) })
}

// call makes a request whose answer must be a result.
func (e *editor) call(method string, params any) json.RawMessage {
	e.t.Helper()
	l := e.answer(e.request(method, params))
	require.Nil(e.t, l.Error, "%s: %s", method, l.raw)
	return l.Result
}

// fails makes a request whose answer must be an error.
func (e *editor) fails(method string, params any, code acp.ErrorCode) acp.Error {
	e.t.Helper()
	l := e.answer(e.request(method, params))
	require.NotNil(e.t, l.Error, "%s: %s", method, l.raw)
	assert.Equal(e.t, code, l.Error.Code, "%s: %s", method, l.raw)
	return *l.Error
}

// open initializes the agent and makes a session.
func (e *editor) open(capabilities object) string {
	e.t.Helper()
	if capabilities == nil {
		capabilities = object{}
	}
	e.call("initialize", object{"protocolVersion": 1, "clientCapabilities": capabilities})
	return e.newSession(e.t.TempDir())
}

func (e *editor) newSession(cwd string) string {
	e.t.Helper()
	var r acp.NewSessionResponse
	require.NoError(e.t, json.Unmarshal(e.call("session/new", object{"cwd": cwd, "mcpServers": []any{}}), &r))
	e.await("commands", func(l line) bool {
		return l.Params.SessionID == string(r.SessionID) && strings.Contains(l.raw, "available_commands_update")
	})
	return string(r.SessionID)
}

func prompt(session, text string) object {
	return object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}}
}

// ask sends a prompt and returns the stop reason.
func (e *editor) ask(session, text string) string {
	e.t.Helper()
	var r acp.PromptResponse
	require.NoError(e.t, json.Unmarshal(e.call("session/prompt", prompt(session, text)), &r))
	return string(r.StopReason)
}

func (e *editor) setPermit(f func(line) string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.permit = f
}

// told is the story so far.
func (e *editor) told() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.story()
}

// got is what the agent has written.
func (e *editor) got() []line {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lines)
}

// story is what the editor was told, one line each; mu is held. Ids are left out, settings
// and commands too.
func (e *editor) story() (out []string) {
	for _, l := range e.lines {
		if s := l.story(); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (l line) story() string {
	var u struct {
		Kind    string `json:"sessionUpdate"`
		Status  string `json:"status"`
		Title   string `json:"title"`
		Tool    string `json:"kind"`
		Mode    string `json:"currentModeId"`
		Content json.RawMessage
		Entries []acp.PlanEntry
	}
	switch {
	case l.Method == acp.MethodSessionRequestPermission:
		var options []string
		for _, o := range l.Params.Options {
			options = append(options, string(o.OptionID))
		}
		return "permission? " + strings.Join(options, " ")
	case l.Method == acp.MethodSessionUpdate:
		if err := json.Unmarshal(l.Params.Update, &u); err != nil {
			return err.Error()
		}
		var block struct{ Text string }
		_ = json.Unmarshal(u.Content, &block)
		switch u.Kind {
		case "available_commands_update", "config_option_update", "usage_update":
			return ""
		case "tool_call":
			return fmt.Sprintf("tool_call %s %s %s", u.Title, u.Tool, u.Status)
		case "tool_call_update":
			return strings.TrimRight("tool_call_update "+strings.TrimSpace(u.Title+" "+u.Status), " ")
		case "current_mode_update":
			return "mode " + u.Mode
		case "plan":
			s := "plan"
			for _, p := range u.Entries {
				s += fmt.Sprintf(" [%s: %s]", p.Status, p.Content)
			}
			return s
		}
		return strings.TrimSpace(u.Kind + " " + block.Text)
	case l.Method != "":
		return l.Method
	case l.Error != nil:
		return fmt.Sprintf("error %d", int(l.Error.Code))
	}
	var r acp.PromptResponse
	_ = json.Unmarshal(l.Result, &r)
	if r.StopReason == "" {
		return ""
	}
	return string(r.StopReason)
}
