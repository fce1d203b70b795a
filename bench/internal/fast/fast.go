package fast

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
)

// EventSize is the length of one stream event, its newline included.
const EventSize = 200

// Serve speaks to a host until in ends. getenv may say what the prompt
// does not.
func Serve(in io.Reader, out io.Writer, getenv func(string) string) error {
	return newTalk(in, out, getenv).serve("")
}

func newTalk(in io.Reader, out io.Writer, getenv func(string) string) *talk {
	return &talk{in: bufio.NewReaderSize(in, 64<<10), out: out, getenv: getenv, hook: "hook_0", session: "fast-" + rand.Text()[:8]}
}

// serve is [Serve] in a session with that id; "": with one of the agent's own.
func (a *talk) serve(session string) error {
	if session != "" {
		a.session = session
	}
	for {
		line, err := a.in.ReadBytes('\n')
		var l hostLine
		if len(line) > 0 {
			if err := json.Unmarshal(line, &l); err != nil {
				return fmt.Errorf("line of the host: %w", err)
			}
			if err := a.take(l); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// talk is one conversation.
type talk struct {
	in     *bufio.Reader
	out    io.Writer
	getenv func(string) string
	hook   string // the callback id of the host's PreToolUse hook
	prompt string // that of its UserPromptSubmit hook; "" without one
	seq    int    // of the agent's requests
	line   []byte // the line being written
	fault  string // see Faults
	// session stands for every id: short, so that an event has room for text, and another
	// one in each conversation, since a session has one process at a time.
	session string
}

// hostLine is what a host writes, as far as it matters.
type hostLine struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     string          `json:"error"`
	} `json:"response"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

func (a *talk) take(l hostLine) error {
	if a.fault == Mute {
		return nil
	}
	switch l.Type {
	case "control_request":
		var init struct {
			Hooks map[string][]struct {
				IDs []string `json:"hookCallbackIds"`
			} `json:"hooks"`
		}
		if json.Unmarshal(l.Request, &init) == nil {
			for _, h := range init.Hooks["PreToolUse"] {
				a.hook = append(h.IDs, a.hook)[0]
			}
			for _, h := range init.Hooks["UserPromptSubmit"] {
				a.prompt = append(h.IDs, a.prompt)[0]
			}
		}
		return a.printf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"commands":[],"models":[]}}}`, l.RequestID)
	case "user":
		return a.turn(promptOf(l.Message.Content))
	}
	return nil
}

// promptOf reads the content of a user message: a string, or blocks.
func promptOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &blocks) // what is neither says nothing
	var all strings.Builder
	for _, b := range blocks {
		all.WriteString(b.Text)
	}
	return all.String()
}

func (a *talk) turn(prompt string) error {
	mode, n := measure.Asked(prompt, a.getenv)
	if a.prompt != "" {
		if err := a.ask(`{"subtype":"hook_callback","callback_id":"` + a.prompt + `","input":{"hook_event_name":"UserPromptSubmit","prompt":"go"}}`); err != nil {
			return err
		}
	}
	if err := a.printf(`{"type":"system","subtype":"init","session_id":%q,"model":"fast","cwd":"/","tools":[],"mcp_servers":[],"permissionMode":"default","uuid":%q}`, a.session, a.session); err != nil {
		return err
	}
	if a.fault != "" {
		return a.misbehave()
	}
	var ns int64
	var err error
	switch mode {
	case measure.Stream:
		ns, err = a.stream(n)
	case measure.Hook:
		ns, err = a.repeat(n, a.askHook)
	case measure.Perm:
		ns, err = a.repeat(n, a.askPermission)
	case measure.MCP:
		if err = a.handshake(); err == nil {
			ns, err = a.repeat(n, a.callTool)
		}
	case measure.Work:
		began := time.Now()
		time.Sleep(time.Duration(n) * time.Millisecond)
		ns = time.Since(began).Nanoseconds()
	case measure.Probe:
		err = a.probe(n)
	}
	if err != nil {
		return err
	}
	return a.result("success", measure.Result(ns))
}

func (a *talk) result(subtype, text string) error {
	return a.printf(`{"type":"result","subtype":%q,"is_error":%t,"num_turns":1,"duration_ms":1,"duration_api_ms":0,"total_cost_usd":0,"result":%q,"session_id":%q,"uuid":%q}`,
		subtype, subtype != "success", text, a.session, a.session)
}

// stream writes n events of [EventSize] bytes, each by itself, as agents do.
func (a *talk) stream(n int) (int64, error) {
	e := a.event()
	began := time.Now()
	for range n {
		if _, err := a.out.Write(e); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Nanoseconds(), nil
}

func (a *talk) event() []byte {
	form := `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}},"session_id":"` +
		a.session + `","parent_tool_use_id":null,"uuid":"` + a.session + `"}` + "\n"
	text := max(EventSize-(len(form)-2), 0)
	return fmt.Appendf(nil, form, strings.Repeat("x", text))
}

// repeat asks n times, one after the other, and returns how long it waited.
func (a *talk) repeat(n int, ask func() error) (int64, error) {
	began := time.Now()
	for range n {
		if err := ask(); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Nanoseconds(), nil
}

const toolUse = `"tool_use_id":"toolu_bench","tool_name":"Bash"`

func (a *talk) askHook() error {
	return a.ask(`{"subtype":"hook_callback","callback_id":"` + a.hook + `","tool_use_id":"toolu_bench","input":{"session_id":"` + a.session +
		`","transcript_path":"/t","cwd":"/","hook_event_name":"PreToolUse",` + toolUse + `,"tool_input":{"command":"true"}}}`)
}

func (a *talk) askPermission() error {
	return a.ask(`{"subtype":"can_use_tool",` + toolUse + `,"display_name":"Bash","input":{"command":"true"},"permission_suggestions":[]}`)
}

func (a *talk) callTool() error {
	return a.message(`{"jsonrpc":"2.0","id":` + strconv.Itoa(a.seq+1) + `,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`)
}

func (a *talk) handshake() error {
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"fast","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	} {
		if err := a.message(m); err != nil {
			return err
		}
	}
	return nil
}

func (a *talk) message(m string) error {
	return a.ask(`{"subtype":"mcp_message","server_name":"bench","message":` + m + `}`)
}

// probe asks a hook, and writes an event before it has the answer: at first, and
// after n questions without.
func (a *talk) probe(n int) error {
	if err := a.askAndWrite(); err != nil {
		return err
	}
	if _, err := a.repeat(n, a.askHook); err != nil {
		return err
	}
	return a.askAndWrite()
}

func (a *talk) askAndWrite() error {
	id, err := a.request(`{"subtype":"hook_callback","callback_id":"` + a.hook + `","tool_use_id":"toolu_bench","input":{"hook_event_name":"PreToolUse",` + toolUse + `,"tool_input":{}}}`)
	if err != nil {
		return err
	}
	if _, err := a.out.Write(a.event()); err != nil {
		return err
	}
	return a.await(id)
}

func (a *talk) ask(request string) error {
	id, err := a.request(request)
	if err != nil {
		return err
	}
	return a.await(id)
}

func (a *talk) request(request string) (id string, err error) {
	a.seq++
	id = "r" + strconv.Itoa(a.seq)
	a.line = append(a.line[:0], `{"type":"control_request","request_id":"`...)
	a.line = append(a.line, id...)
	a.line = append(a.line, `","request":`...)
	a.line = append(a.line, request...)
	a.line = append(a.line, "}\n"...)
	_, err = a.out.Write(a.line)
	return id, err
}

// await reads until the answer to id is there.
func (a *talk) await(id string) error {
	l, err := a.answer(id)
	if err == nil && l.Response.Subtype != "success" {
		err = fmt.Errorf("request %s was refused: %s", id, l.Response.Error)
	}
	return err
}

// answer reads until there is an answer to id, also one that refuses it.
func (a *talk) answer(id string) (l hostLine, err error) {
	for {
		line, err := a.in.ReadSlice('\n')
		if err != nil {
			return l, fmt.Errorf("waiting for the answer to %s: %w", id, err)
		}
		l = hostLine{}
		if err := json.Unmarshal(line, &l); err != nil {
			return l, fmt.Errorf("line of the host: %w", err)
		}
		if l.Response.RequestID == id {
			return l, nil
		}
		if err := a.take(l); err != nil {
			return l, err
		}
	}
}

func (a *talk) printf(format string, args ...any) error {
	a.line = fmt.Appendf(a.line[:0], format, args...)
	a.line = append(a.line, '\n')
	_, err := a.out.Write(a.line)
	return err
}
