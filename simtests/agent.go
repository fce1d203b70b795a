package simtests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// agent is the program of a session's processes.
func (w *World) agent(s *scripted.Script, o *session.Options) *program {
	if s == nil {
		s = scripted.Demo()
	}
	return w.program(scripted.New(scripted.WithScript(s), scripted.WithHistory(&transcripts{w: w}), scripted.WithEffect(func(_, line string) error {
		w.mu.Lock()
		w.effects = append(w.effects, line)
		w.mu.Unlock()
		w.note(Event{Kind: "effect", Lane: w.sched.running(), What: line})
		return nil
	})), o)
}

// program has an agent play on a port where things go wrong.
func (w *World) program(inner speaker, o *session.Options) *program {
	return &program{w: w, inner: inner, restarts: o.MaxRestarts, maxLine: o.MaxLine, consumer: o.Limits.Consumer, sent: make(map[string]int)}
}

// speaker is an agent that says whose CLI it speaks like.
type speaker interface {
	agent.Program
	AgentDialect() agent.Dialect
}

// program plays an agent on a port where things go wrong. It is that of one client.
type program struct {
	w        *World
	inner    speaker
	restarts int           // Options.MaxRestarts
	maxLine  int           // Options.MaxLine; 0: the default
	consumer time.Duration // Options.Limits.Consumer; 0: none

	// Guarded by the world's mutex.
	started int            // processes
	sent    map[string]int // user messages by uuid, and how often one was written
	wrote   []*content     // of all processes, in order
	read    int            // of wrote, those that a reader is past
	readers int            // that are in World.Read
	ended   bool           // the last process ended well, and everything it wrote has to be read
}

// AgentName implements [agent.Program].
func (p *program) AgentName() string { return p.inner.AgentName() }

// AgentDialect says whose CLI the agent speaks like.
func (p *program) AgentDialect() agent.Dialect { return p.inner.AgentDialect() }

// Serve implements [agent.Program].
func (p *program) Serve(l agent.Launch, port agent.Port) agent.Exit {
	w := p.w
	w.mu.Lock()
	w.launched++
	w.living++
	p.started++
	p.ended = false
	started := p.started
	lane := fmt.Sprintf("agent#%d", w.launched)
	w.mu.Unlock()
	if started > 1+p.restarts {
		w.Errorf("restarts: %s is process %d of a session with MaxRestarts %d", lane, started, p.restarts)
	}
	f := &faulty{Port: port, w: w, lane: lane, p: p, talk: newTalk(w, lane, p)}
	w.sched.be(lane)
	f.trapTerm = w.strike(lane, "", faultTrapTerm) != nil
	f.stay = w.strike(lane, "", faultStay) != nil
	w.note(Event{Kind: "note", Lane: lane, What: "starts"})
	exit := p.inner.Serve(l, f)
	if f.crashed != nil {
		exit = *f.crashed
	}
	well := f.crashed == nil && !f.killed && f.eof && exit == (agent.Exit{})
	f.talk.ended(well)
	w.mu.Lock()
	w.living--
	p.ended = well
	w.mu.Unlock()
	w.note(Event{Kind: "note", Lane: lane, What: fmt.Sprintf("ends: code %d %s", exit.Code, exit.Signal)})
	return exit
}

// faulty is an agent's port where things go wrong.
type faulty struct {
	agent.Port
	w        *World
	lane     string
	p        *program
	talk     *talk
	trapTerm bool
	stay     bool
	eof      bool
	killed   bool
	crashed  *agent.Exit
	late     []byte   // an answer that the next line overtakes, or the next answer
	toAnswer bool     // the next answer
	failed   [][]byte // answers of requests that the agent has cancelled, for the agent
}

// Elapsed implements [agent.Elapser].
func (f *faulty) Elapsed() time.Duration {
	if e, ok := f.Port.(agent.Elapser); ok {
		return e.Elapsed()
	}
	return f.w.Elapsed()
}

// lateLimit is how long an answer is held back for a line that may never come.
const lateLimit = time.Second

// Next implements [agent.Port].
func (f *faulty) Next(wait time.Duration) ([]byte, error) {
	for {
		if f.crashed != nil {
			return nil, agent.ErrKilled
		}
		if len(f.failed) > 0 {
			line := f.failed[0]
			f.failed = f.failed[1:]
			return line, nil
		}
		limit := wait
		hit := f.w.strike(f.lane, "", faultCrashWaiting)
		if hit != nil && (wait < 0 || wait > hit.d) {
			limit = hit.d
		}
		line, err := f.next(limit)
		switch {
		case limit != wait && errors.Is(err, agent.ErrWaited):
			f.crashed = &agent.Exit{Signal: "KILL"}
			return nil, agent.ErrKilled
		case err == nil:
			if hit := f.w.strike(f.lane, "", faultDeaf); hit != nil {
				f.pause(hit.d)
			}
			if f.talk.host(line) {
				continue
			}
			return line, nil
		case errors.Is(err, agent.ErrTerminated) && f.trapTerm:
			continue
		case errors.Is(err, io.EOF):
			f.eof = true
			f.talk.eof()
			if f.stay {
				continue
			}
		case errors.Is(err, agent.ErrKilled):
			f.killed = true
		}
		return nil, err
	}
}

// next waits for a line. An answer that is held back is written after lateLimit.
func (f *faulty) next(wait time.Duration) ([]byte, error) {
	if f.late == nil || wait >= 0 && wait <= lateLimit {
		return f.Port.Next(wait)
	}
	line, err := f.Port.Next(lateLimit)
	if !errors.Is(err, agent.ErrWaited) {
		return line, err
	}
	late := f.late
	f.late = nil
	if err := f.send(late); err != nil {
		return nil, err
	}
	if wait >= 0 {
		wait -= lateLimit
	}
	return f.Port.Next(wait)
}

// pause lets time go by, and ends early when the agent is killed.
func (f *faulty) pause(d time.Duration) {
	for d > 0 && f.Port.Write(nil) == nil {
		step := min(d, 200*time.Millisecond)
		f.w.Sleep(step)
		d -= step
	}
}

// Write implements [agent.Port].
func (f *faulty) Write(p []byte) error {
	for len(p) > 0 {
		line := p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			line = p[:i+1]
		}
		p = p[len(line):]
		if err := f.writeLine(line); err != nil {
			return err
		}
	}
	return nil
}

func (f *faulty) writeLine(line []byte) error {
	w := f.w
	if f.crashed != nil {
		return agent.ErrKilled
	}
	hit := w.strike(f.lane, "", faultExit)
	if hit == nil && bytes.Contains(line, []byte(`"type":"tool_result"`)) {
		hit = w.strike(f.lane, "", faultCrashInTool)
	}
	if hit != nil {
		f.crashed = &agent.Exit{Code: hit.n}
		if hit.n < 0 {
			f.crashed = &agent.Exit{Signal: "KILL"}
		}
		return agent.ErrKilled
	}
	if hit := w.strike(f.lane, "", faultStall); hit != nil {
		f.pause(hit.d)
	}
	if err := f.insert(line); err != nil {
		return err
	}
	answer := isAnswer(line)
	if answer {
		switch {
		case w.strike(f.lane, "", faultDrop) != nil:
			return nil
		case f.late == nil && w.strike(f.lane, "", faultSwap) != nil:
			f.late, f.toAnswer = bytes.Clone(line), false
			return nil
		case f.late == nil && w.strike(f.lane, "", faultReorder) != nil:
			f.late, f.toAnswer = bytes.Clone(line), true
			return nil
		case w.strike(f.lane, "", faultRepeat) != nil:
			if err := f.send(line); err != nil {
				return err
			}
		}
	}
	if err := f.send(line); err != nil {
		return err
	}
	if late := f.late; late != nil && (answer || !f.toAnswer) {
		f.late = nil
		if err := f.send(late); err != nil {
			return err
		}
	}
	return f.cancel(line)
}

// insert writes what goes wrong before a line.
func (f *faulty) insert(line []byte) error {
	if hit := f.w.strike(f.lane, "", faultInsert); hit != nil {
		text := []byte(hit.text)
		if hit.n > 0 {
			text = overlong(hit.n)
		}
		if err := f.send(text); err != nil {
			return err
		}
	}
	if !bytes.HasPrefix(line, []byte(`{"type":"assistant"`)) {
		return nil
	}
	hit := f.w.strike(f.lane, "", faultRetries)
	if hit == nil {
		return nil
	}
	word := map[int]string{429: "rate_limit", 529: "overloaded"}[hit.status]
	for i := range hit.n {
		delay := min(time.Second<<min(i, 5), 32*time.Second)
		err := f.send(fmt.Appendf(nil, `{"type":"system","subtype":"api_retry","attempt":%d,"max_retries":%d,"retry_delay_ms":%d,"error_status":%d,"error":%q}`+"\n",
			i+1, hit.n, delay.Milliseconds(), hit.status, word))
		if err != nil {
			return err
		}
		f.pause(delay)
	}
	return nil
}

// cancel takes a request back that was just written.
func (f *faulty) cancel(line []byte) error {
	if !bytes.Contains(line, []byte(`"can_use_tool"`)) && !bytes.Contains(line, []byte(`"hook_callback"`)) {
		return nil
	}
	r, err := protocol.ParseFrame(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		return fmt.Errorf("simtests: the agent wrote a request that is no frame: %w", err)
	}
	if r.Type != "control_request" {
		return nil
	}
	hit := f.w.strike(f.lane, "", faultCancel)
	if hit == nil {
		return nil
	}
	if hit.rng.IntN(2) == 0 {
		f.pause(5 * time.Millisecond)
	}
	id := fmt.Sprintf("%q", r.RequestID)
	f.failed = append(f.failed, []byte(`{"type":"control_response","response":{"subtype":"error","request_id":`+id+`,"error":"cancelled"}}`))
	f.talk.drop(r.RequestID)
	return f.send([]byte(`{"type":"control_cancel_request","request_id":` + id + "}\n"))
}

// isAnswer reports whether a line answers a call of the host's, initialize aside.
func isAnswer(line []byte) bool {
	return bytes.Contains(line, []byte(`"control_response"`)) && !bytes.Contains(line, []byte(`"commands"`))
}

func overlong(n int) []byte {
	return append(append([]byte(`{"type":"assistant","message":{"role":"assistant","content":"`), bytes.Repeat([]byte("x"), n)...), "\"}}\n"...)
}

// send writes a line, in pieces if need be.
func (f *faulty) send(line []byte) error {
	f.talk.agent(line)
	c := f.p.writes(line)
	if len(line) > 1 && f.w.strike(f.lane, "", faultSplit) != nil {
		f.w.mu.Lock()
		at := 1 + f.w.rng.IntN(len(line)-1)
		f.w.mu.Unlock()
		if err := f.Port.Write(line[:at]); err != nil {
			return err
		}
		f.w.Sleep(time.Millisecond)
		line = line[at:]
	}
	err := f.Port.Write(line)
	if err == nil && c != nil {
		f.w.mu.Lock()
		c.whole = true
		f.w.mu.Unlock()
	}
	return err
}

// talk is what one process and its host said to each other, and what the oracles
// have to say about it.
type talk struct {
	w    *World
	lane string
	p    *program
	asks map[string]*asked
	ids  []string

	turns       int  // user messages since the last result
	interrupted bool // since the last of them came
}

// asked is a request of the agent's.
type asked struct {
	times     int // it was written
	answers   int
	cancelled bool
	dropped   bool // the agent is not to see the answer
	subtype   string
	event     string // of hook_callback
	message   string // the JSON-RPC id of mcp_message
	tool      string // the id of the tool call that it is about
}

func newTalk(w *World, lane string, p *program) *talk {
	return &talk{w: w, lane: lane, p: p, asks: make(map[string]*asked)}
}

// drop has answers to a request not reach the agent.
func (t *talk) drop(id string) {
	if a := t.asks[id]; a != nil {
		a.dropped = true
	}
}

// label names a line in the trace: what it is, its length and a sum of its bytes.
func label(f protocol.Frame) string {
	sum := fnv.New32a()
	_, _ = sum.Write(f.Raw) // never fails
	name := f.Type
	if f.Subtype != "" {
		name += "/" + f.Subtype
	}
	return fmt.Sprintf("%s %d %08x", name, len(f.Raw), sum.Sum32())
}

func (t *talk) line(kind, from, to string, line []byte) (protocol.Frame, bool) {
	f, err := protocol.ParseFrame(bytes.TrimSuffix(line, []byte("\n")))
	e := Event{Kind: kind, Lane: to, From: from, What: label(f)}
	if t.w.full {
		e.Text = string(line[:min(len(line), maxText)])
	}
	t.w.note(e)
	return f, err == nil
}

// agent sees a line of the agent's.
func (t *talk) agent(line []byte) {
	f, ok := t.line("agent", t.lane, "host", line)
	if !ok {
		return
	}
	switch f.Type {
	case "control_request":
		a := t.asks[f.RequestID]
		if a == nil {
			a = &asked{subtype: f.Subtype}
			t.asks[f.RequestID] = a
			t.ids = append(t.ids, f.RequestID)
		}
		a.times++
		var body struct {
			ToolUseID string `json:"tool_use_id"`
			Input     struct {
				Event string `json:"hook_event_name"`
			} `json:"input"`
			Message struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params struct {
					RequestID json.RawMessage `json:"requestId"`
				} `json:"params"`
			} `json:"message"`
		}
		_ = json.Unmarshal(f.Body(), &body) // what is no object names no tool call
		a.tool, a.event = body.ToolUseID, body.Input.Event
		a.message = string(body.Message.ID)
		if body.Message.Method == "notifications/cancelled" {
			t.cancelMCP(string(body.Message.Params.RequestID))
		}
	case "result":
		t.turns = 0 // one result may end several
	case "control_cancel_request":
		if a := t.asks[f.RequestID]; a != nil {
			a.cancelled = true
			t.w.cancelled(a)
		}
	}
}

// host sees a line of the host's. What it says is held against answered-once,
// sent-once and fail-closed. It reports whether the agent is not to see the line.
func (t *talk) host(line []byte) (drop bool) {
	f, ok := t.line("host", "host", t.lane, line)
	switch {
	case ok && f.Type == "user":
		t.p.user(line)
		t.turns, t.interrupted = t.turns+1, false
		return false
	case ok && f.Type == "control_request" && f.Subtype == "interrupt":
		t.interrupted = true
		return false
	case !ok || f.Type != "control_response":
		return false
	}
	a := t.asks[f.RequestID]
	if a == nil {
		t.w.Errorf("answered-once: %s got an answer to %q, which it never asked", t.lane, f.RequestID)
		return false
	}
	if a.answers++; a.answers > a.times {
		t.w.Errorf("answered-once: %s got %d answers to its request %q (%s)", t.lane, a.answers, f.RequestID, a.subtype)
	}
	switch {
	case a.subtype == "can_use_tool":
		var body struct {
			Behavior string `json:"behavior"`
		}
		_ = json.Unmarshal(said(f), &body) // what is no object allows nothing
		if body.Behavior == "allow" && !t.w.allowed(a.tool) {
			t.w.Errorf("fail-closed: %s was allowed the tool call %q, and no callback had allowed it", t.lane, a.tool)
		}
	case a.subtype == "hook_callback" && !denies(f):
		if why := t.w.hookPassed(a.event, a.tool); why != "" {
			t.w.Errorf("fail-closed: %s may go on with the tool call %q, %s", t.lane, a.tool, why)
		}
	}
	return a.dropped
}

// eof holds the end of stdin against close-in-order: a turn that runs goes on after it,
// tools included, so it is interrupted first.
func (t *talk) eof() {
	if t.turns > 0 && !t.interrupted {
		t.w.Errorf("close-in-order: %s got the end of its stdin during a turn that was not interrupted", t.lane)
	}
}

// cancelMCP notes that the agent gives up a JSON-RPC request: it needs no answer then.
func (t *talk) cancelMCP(message string) {
	for _, id := range t.ids {
		if a := t.asks[id]; a.subtype == "mcp_message" && a.message != "" && a.message == message {
			a.cancelled = true
		}
	}
}

// cancelled notes when the agent gave up a request.
func (w *World) cancelled(a *asked) {
	name := a.event
	if a.subtype == "can_use_tool" {
		name = "CanUseTool"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.verdicts.gaveUp == nil {
		w.verdicts.gaveUp = make(map[string]time.Time)
	}
	w.verdicts.gaveUp[name+" "+a.tool] = w.sched.Now()
}

// cancelLimit is how long a callback may go on after the agent has cancelled its request.
const cancelLimit = 10 * time.Second

// uncancelled holds a callback that still runs against the cancels that the host has had
// the time to read.
func (w *World) uncancelled(name, tool string) {
	w.mu.Lock()
	at, was := w.verdicts.gaveUp[name+" "+tool]
	late := w.sched.Now().Sub(at)
	if w.reached[session.StateAwaitingConsumer.String()] || w.happened(faultJump) {
		was = false
	}
	w.mu.Unlock()
	if was && late > cancelLimit {
		w.Errorf("cancelled: the context of %s for %s had not ended %v after the agent had cancelled the request", name, tool, late)
	}
}

// happened reports whether a fault of one of the kinds has happened; mu is held.
func (w *World) happened(kinds ...faultKind) bool {
	return slices.ContainsFunc(w.faults, func(a *applied) bool { return a.fired > 0 && slices.Contains(kinds, a.kind) })
}

// said is what an answer says; nil if it is an error.
func said(f protocol.Frame) json.RawMessage {
	r, err := protocol.DecodeControlResponse(f)
	if err != nil || r.Failed() {
		return nil
	}
	return r.Response
}

// denies reports whether the answer to a hook stops the tool call.
func denies(f protocol.Frame) bool {
	var body struct {
		Decision string `json:"decision"`
		Continue *bool  `json:"continue"`
		Specific struct {
			Decision string `json:"permissionDecision"`
		} `json:"hookSpecificOutput"`
	}
	_ = json.Unmarshal(said(f), &body) // what is no object denies nothing
	return body.Decision == "block" || body.Continue != nil && !*body.Continue || body.Specific.Decision == "deny"
}

// ended looks at what was left open. An agent that ended well, after the end of its
// stdin, had every answer.
func (t *talk) ended(well bool) {
	if !well {
		return
	}
	for _, id := range t.ids {
		if a := t.asks[id]; a.answers == 0 && !a.cancelled {
			t.w.Errorf("answered-once: %s never got an answer to its request %q (%s)", t.lane, id, a.subtype)
		}
	}
}
