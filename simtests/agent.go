package simtests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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
	return w.program(scripted.New(scripted.WithScript(s), scripted.WithHistory(w.store), scripted.WithEffect(func(_, line string) error {
		w.mu.Lock()
		w.effects = append(w.effects, line)
		w.mu.Unlock()
		w.note(Event{Kind: "effect", Lane: w.sched.running(), What: line})
		return nil
	})), o)
}

// program has an agent play on a port where things go wrong.
func (w *World) program(inner agent.Program, o *session.Options) *program {
	return &program{w: w, inner: inner, restarts: o.MaxRestarts, maxLine: o.MaxLine, consumer: o.Limits.Consumer, calls: newToolCalls(false), sent: make(map[string]int)}
}

// speaker is an agent that says whose CLI it speaks like.
type speaker interface {
	agent.Program
	AgentDialect() agent.Dialect
}

// program plays an agent on a port where things go wrong. It is that of one client.
type program struct {
	w        *World
	inner    agent.Program
	backend  session.Backend // nil: the program itself
	loop     *mind           // of an embedded agent
	restarts int             // Options.MaxRestarts
	maxLine  int             // Options.MaxLine; 0: the default
	consumer time.Duration   // Options.Limits.Consumer; 0: none
	calls    *toolCalls

	// Guarded by the world's mutex.
	started int            // processes
	begun   int            // of them, those that began a session under its id, because the one before did not find it
	rested  int            // how often the session was passivated: the process after that is not a restart
	sent    map[string]int // user messages by uuid, and the process that one was last written to
	wrote   []*content     // of all processes, in order
	read    int            // of wrote, those that a reader is past
	readers int            // that are in World.Read
	told    deaths
	ended   bool // the last process ended well, and everything it wrote has to be read
}

// AgentName implements [agent.Program].
func (p *program) AgentName() string { return p.inner.AgentName() }

// AgentDialect says whose CLI the agent speaks like.
func (p *program) AgentDialect() agent.Dialect {
	if s, ok := p.inner.(speaker); ok {
		return s.AgentDialect()
	}
	return agent.Claude
}

// ReadSession implements [agent.Archive].
func (p *program) ReadSession(l agent.Launch, id string) ([]byte, error) {
	if a, ok := p.inner.(agent.Archive); ok {
		return a.ReadSession(l, id)
	}
	return nil, errors.New("the agent stores no sessions")
}

// Serve implements [agent.Program].
func (p *program) Serve(l agent.Launch, port agent.Port) agent.Exit {
	f := p.begin(l, port)
	return p.end(f, l, p.inner.Serve(l, f))
}

// begin begins a process.
func (p *program) begin(l agent.Launch, port agent.Port) *faulty {
	w := p.w
	w.mu.Lock()
	w.launched++
	w.living++
	p.started++
	p.ended = false
	if p.started > 1 && slices.ContainsFunc(l.Args, func(a string) bool { return strings.HasPrefix(a, "--session-id") }) {
		p.begun++
	}
	lane, soon := fmt.Sprintf("agent#%d", w.launched), p.soon()
	w.mu.Unlock()
	if soon > 0 {
		w.Errorf("backoff: a process starts %v before the time that its session had announced", soon)
	}
	f := &faulty{Port: port, w: w, lane: lane, p: p, talk: newTalk(w, lane, p)}
	w.sched.be(lane)
	f.trapTerm = w.strike(lane, "", faultTrapTerm) != nil
	f.stay = w.strike(lane, "", faultStay) != nil
	w.note(Event{Kind: "note", Lane: lane, What: "starts"})
	w.crowded(f)
	f.session = w.lease.begins(f, l)
	if p.loop != nil {
		p.loop.begins(lane, l)
	}
	return f
}

// end ends it, and returns how it ended.
func (p *program) end(f *faulty, _ agent.Launch, exit agent.Exit) agent.Exit {
	w, lane := p.w, f.lane
	if p.loop != nil {
		p.loop.over()
	}
	w.lease.ends(f, f.session)
	if f.crashed != nil {
		exit = *f.crashed
	}
	if want := (agent.Exit{Code: 143}); p.loop != nil && f.termed && f.crashed == nil && !f.killed && exit != want {
		w.Errorf("told: %s got SIGTERM and ends with %+v", lane, exit)
	}
	well := f.crashed == nil && !f.killed && f.eof && exit == (agent.Exit{})
	f.talk.ended(well)
	w.mu.Lock()
	w.living--
	w.ports = slices.DeleteFunc(w.ports, func(o *faulty) bool { return o == f })
	p.ended = well
	p.exits(exit)
	w.mu.Unlock()
	w.note(Event{Kind: "note", Lane: lane, What: fmt.Sprintf("ends: code %d %s", exit.Code, exit.Signal)})
	return exit
}

// faulty is an agent's port where things go wrong.
type faulty struct {
	agent.Port
	w        *World
	lane     string
	session  string // that the process runs; "": it is not known
	p        *program
	talk     *talk
	trapTerm bool
	stay     bool
	eof      bool
	killed   bool
	termed   bool // it got SIGTERM
	crashed  *agent.Exit
	late     []byte   // an answer that the next line overtakes, or the next answer
	toAnswer bool     // the next answer
	failed   [][]byte // answers of requests that the agent has cancelled, for the agent
}

// Signal implements [agent.Signaller]: a task of the agent's wakes it.
func (f *faulty) Signal(err error) {
	if s, ok := f.Port.(agent.Signaller); ok {
		s.Signal(err)
	}
}

// Stderr implements [agent.Port].
func (f *faulty) Stderr(p []byte) {
	if f.p.loop != nil {
		f.w.loops.secret("the agent's stderr", string(p))
	}
	f.Port.Stderr(p)
}

// Elapsed implements [agent.Elapser].
func (f *faulty) Elapsed() time.Duration {
	if e, ok := f.Port.(agent.Elapser); ok {
		return e.Elapsed()
	}
	return f.w.Elapsed()
}

// alive reports whether the process is there: an agent that was killed may notice it later.
func (f *faulty) alive() bool { return f != nil && f.Port.Write(nil) == nil }

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
		case errors.Is(err, agent.ErrTerminated):
			f.termed = true
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
