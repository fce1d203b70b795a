package scripted_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

// tape is a port with a time of its own and a host made of functions.
type tape struct {
	t      testing.TB
	now    time.Duration
	in     []event
	out    bytes.Buffer
	cut    int // bytes of out that host has seen
	stderr bytes.Buffer
	host   func(f frame) // called for every whole line the agent writes
	frames []frame
	stuck  bool // the agent waits for ever and nothing will come
	looks  int
}

type event struct {
	at   time.Duration
	line string
	err  error
}

// frame is a line of the agent's, decoded.
type frame map[string]any

func (f frame) str(path ...string) string {
	s, _ := f.get(path...).(string)
	return s
}

func (f frame) get(path ...string) any {
	var v any = map[string]any(f)
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

func (f frame) is(key string) bool {
	b, _ := f[key].(bool)
	return b
}

func newTape(tb testing.TB) *tape {
	tb.Helper()
	return &tape{t: tb}
}

// send puts a line where the agent will find it next.
func (p *tape) send(line any) { p.sendAt(p.now, line) }

func (p *tape) sendAt(at time.Duration, line any) {
	text, ok := line.(string)
	if !ok {
		b, err := json.Marshal(line)
		require.NoError(p.t, err)
		text = string(b)
	}
	p.add(event{at: at, line: text})
}

func (p *tape) errAt(at time.Duration, err error) { p.add(event{at: at, err: err}) }
func (p *tape) eof()                              { p.errAt(p.now, io.EOF) }

func (p *tape) add(e event) {
	p.in = append(p.in, e)
	slices.SortStableFunc(p.in, func(a, b event) int { return int(a.at - b.at) })
}

func (p *tape) Next(wait time.Duration) ([]byte, error) {
	if p.looks++; p.looks > 200_000 {
		p.t.Error("the agent spins")
		return nil, agent.ErrKilled
	}
	if len(p.in) > 0 && (wait < 0 || p.in[0].at <= p.now+wait) {
		e := p.in[0]
		p.in = p.in[1:]
		p.now = max(p.now, e.at)
		return []byte(e.line), e.err
	}
	if wait < 0 {
		p.stuck = true
		return nil, agent.ErrKilled
	}
	p.now += wait
	return nil, agent.ErrWaited
}

func (p *tape) Elapsed() time.Duration { return p.now }

func (p *tape) Write(b []byte) error {
	p.out.Write(b)
	for {
		rest := p.out.Bytes()[p.cut:]
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return nil
		}
		p.cut += i + 1
		var f frame
		if json.Unmarshal(rest[:i], &f) != nil || f == nil {
			continue
		}
		p.frames = append(p.frames, f)
		if p.host != nil {
			p.host(f)
		}
	}
}

func (p *tape) Stderr(b []byte) { p.stderr.Write(b) }

// pick returns the frames whose kind starts with prefix.
func (p *tape) pick(prefix string) []frame {
	var out []frame
	for _, f := range p.frames {
		if strings.HasPrefix(kind(f), prefix) {
			out = append(out, f)
		}
	}
	return out
}

// kind names a frame: its type, subtype, and what else tells it apart.
func kind(f frame) string {
	k := f.str("type")
	if s := f.str("subtype"); s != "" {
		k += "/" + s
	}
	switch k {
	case "system/session_state_changed", "command_lifecycle":
		k += " " + f.str("state")
	case "control_request":
		k += " " + f.str("request", "subtype")
		if e := f.str("request", "input", "hook_event_name"); e != "" {
			k += " " + e
		}
		if m := f.str("request", "message", "method"); m != "" {
			k += " " + m
		}
	case "control_response":
		k += " " + f.str("response", "subtype")
	case "stream_event":
		k += " " + f.str("event", "type")
	case "assistant", "user":
		k += " " + content(f)
		if f.is("aborted") {
			k += " aborted"
		}
		if f.is("isReplay") {
			k += " replay"
		}
		if f.get("parent_tool_use_id") != nil {
			k += " ^"
		}
	}
	return k
}

func content(f frame) string {
	blocks, ok := f.get("message", "content").([]any)
	if !ok {
		return "text"
	}
	var kinds []string
	for _, b := range blocks {
		kinds = append(kinds, frame(b.(map[string]any)).str("type"))
	}
	return strings.Join(kinds, "+")
}

func kinds(frames []frame) []string {
	out := make([]string, len(frames))
	for i, f := range frames {
		out[i] = kind(f)
	}
	return out
}

func initialize(more map[string]any) map[string]any {
	request := map[string]any{"subtype": "initialize"}
	maps.Copy(request, more)
	return map[string]any{"type": "control_request", "request_id": "init", "request": request}
}

func control(id, subtype string, more map[string]any) map[string]any {
	c := initialize(more)
	c["request_id"] = id
	c["request"].(map[string]any)["subtype"] = subtype
	return c
}

func user(text string) map[string]any {
	return map[string]any{
		"type": "user", "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": text},
	}
}

func userID(id, text string) map[string]any {
	u := user(text)
	u["uuid"] = id
	return u
}

func success(id string, body any) map[string]any {
	r := map[string]any{"subtype": "success", "request_id": id}
	if body != nil {
		r["response"] = body
	}
	return map[string]any{"type": "control_response", "response": r}
}

func failure(id, text string) map[string]any {
	return map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "error", "request_id": id, "error": text,
	}}
}

// answering makes p's host answer every request of a subtype.
func (p *tape) answering(subtype string, answer func(f frame) any) {
	before := p.host
	p.host = func(f frame) {
		if before != nil {
			before(f)
		}
		if f.str("type") == "control_request" && f.str("request", "subtype") == subtype {
			if a := answer(f); a != nil {
				p.send(a)
			}
		}
	}
}

// closing makes p's host close stdin after n results.
func (p *tape) closing(n int) {
	before := p.host
	p.host = func(f frame) {
		if before != nil {
			before(f)
		}
		if f.str("type") == "result" {
			if n--; n == 0 {
				p.eof()
			}
		}
	}
}

func parse(tb testing.TB, script string) *scripted.Script {
	tb.Helper()
	s, err := scripted.Parse([]byte(script))
	require.NoError(tb, err)
	return s
}

// serve plays a script against p's host.
func (p *tape) serve(script string, args ...string) agent.Exit {
	p.t.Helper()
	a := scripted.New(scripted.WithScript(parse(p.t, script)))
	return a.Serve(agent.Launch{Args: args, Dir: "/work", Seed: 7}, p)
}

var errEOF = io.EOF

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
