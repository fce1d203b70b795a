package simtests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// agent is the program of a session's processes.
func (w *World) agent(s *scripted.Script) session.Backend {
	if s == nil {
		s = scripted.Demo()
	}
	history := &scripted.MemoryHistory{}
	return &program{w: w, script: s, inner: scripted.New(scripted.WithScript(s), scripted.WithHistory(history), scripted.WithEffect(func(_, line string) error {
		w.mu.Lock()
		w.effects = append(w.effects, line)
		w.mu.Unlock()
		w.note(Event{Kind: "effect", Lane: w.sched.running(), What: line})
		return nil
	}))}
}

// program plays a script on a port where things go wrong.
type program struct {
	w      *World
	script *scripted.Script
	inner  *scripted.Agent
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
	lane := fmt.Sprintf("agent#%d", w.launched)
	w.mu.Unlock()
	f := &faulty{Port: port, w: w, lane: lane, talk: newTalk(w, lane)}
	w.sched.be(lane)
	f.trapTerm = w.strike(lane, "", faultTrapTerm) != nil
	f.stay = w.strike(lane, "", faultStay) != nil
	w.note(Event{Kind: "note", Lane: lane, What: "starts"})
	exit := p.inner.Serve(l, f)
	if f.crashed != nil {
		exit = *f.crashed
	}
	f.talk.ended(f.crashed == nil && !f.killed && f.eof && exit == (agent.Exit{}))
	w.mu.Lock()
	w.living--
	w.mu.Unlock()
	w.note(Event{Kind: "note", Lane: lane, What: fmt.Sprintf("ends: code %d %s", exit.Code, exit.Signal)})
	return exit
}

// faulty is an agent's port where things go wrong.
type faulty struct {
	agent.Port
	w        *World
	lane     string
	talk     *talk
	trapTerm bool
	stay     bool
	eof      bool
	killed   bool
	crashed  *agent.Exit
	late     []byte // an answer that the next line overtakes
}

// Elapsed implements [agent.Elapser].
func (f *faulty) Elapsed() time.Duration {
	if e, ok := f.Port.(agent.Elapser); ok {
		return e.Elapsed()
	}
	return f.w.Elapsed()
}

// Next implements [agent.Port].
func (f *faulty) Next(wait time.Duration) ([]byte, error) {
	for {
		if f.crashed != nil {
			return nil, agent.ErrKilled
		}
		line, err := f.Port.Next(wait)
		switch {
		case err == nil:
			if hit := f.w.strike(f.lane, "", faultDeaf); hit != nil {
				f.pause(hit.d)
			}
			f.talk.host(line)
			return line, nil
		case errors.Is(err, agent.ErrTerminated) && f.trapTerm:
			continue
		case errors.Is(err, io.EOF):
			f.eof = true
			if f.stay {
				continue
			}
		case errors.Is(err, agent.ErrKilled):
			f.killed = true
		}
		return nil, err
	}
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
	if hit := w.strike(f.lane, "", faultExit); hit != nil {
		f.crashed = &agent.Exit{Code: hit.n}
		if hit.n < 0 {
			f.crashed = &agent.Exit{Signal: "KILL"}
		}
		return agent.ErrKilled
	}
	if hit := w.strike(f.lane, "", faultStall); hit != nil {
		f.pause(hit.d)
	}
	if hit := w.strike(f.lane, "", faultInsert); hit != nil {
		text := []byte(hit.text)
		if hit.n > 0 {
			text = overlong(hit.n)
		}
		if err := f.send(text); err != nil {
			return err
		}
	}
	if isAnswer(line) {
		switch {
		case w.strike(f.lane, "", faultDrop) != nil:
			return nil
		case w.strike(f.lane, "", faultSwap) != nil:
			f.late = append(f.late, line...)
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
	if late := f.late; late != nil {
		f.late = nil
		return f.send(late)
	}
	return nil
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
	return f.Port.Write(line)
}

// talk is what one process and its host said to each other, and what the oracles
// have to say about it.
type talk struct {
	w    *World
	lane string
	asks map[string]*asked
	ids  []string
}

// asked is a request of the agent's.
type asked struct {
	times     int // it was written
	answers   int
	cancelled bool
	subtype   string
	tool      string // the id of the tool call that it is about
}

func newTalk(w *World, lane string) *talk {
	return &talk{w: w, lane: lane, asks: make(map[string]*asked)}
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
		}
		_ = json.Unmarshal(f.Body(), &body) // what is no object names no tool call
		a.tool = body.ToolUseID
	case "control_cancel_request":
		if a := t.asks[f.RequestID]; a != nil {
			a.cancelled = true
		}
	}
}

// host sees a line of the host's. What it says is held against answered-once and
// fail-closed.
func (t *talk) host(line []byte) {
	f, ok := t.line("host", "host", t.lane, line)
	if !ok || f.Type != "control_response" {
		return
	}
	a := t.asks[f.RequestID]
	if a == nil {
		t.w.Errorf("answered-once: %s got an answer to %q, which it never asked", t.lane, f.RequestID)
		return
	}
	if a.answers++; a.answers > a.times {
		t.w.Errorf("answered-once: %s got %d answers to its request %q (%s)", t.lane, a.answers, f.RequestID, a.subtype)
	}
	if a.subtype != "can_use_tool" {
		return
	}
	var body struct {
		Response struct {
			Behavior string `json:"behavior"`
		} `json:"response"`
	}
	_ = json.Unmarshal(f.Body(), &body) // what is no object allows nothing
	if body.Response.Behavior == "allow" && !t.w.allowed(a.tool) {
		t.w.Errorf("fail-closed: %s was allowed the tool call %q, and no callback had allowed it", t.lane, a.tool)
	}
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
