package scripted

import (
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// Misbehaviour is what an agent does wrong, all the time or at a point of the
// protocol. What it does wrong once is a step. The zero value behaves.
type Misbehaviour struct {
	TrapTerm  bool          `yaml:"trap_term"`  // SIGTERM does nothing
	IgnoreEOF bool          `yaml:"ignore_eof"` // stays when stdin is closed
	ExitDelay time.Duration `yaml:"exit_delay"` // takes so long to exit after EOF
	NeverRead bool          `yaml:"never_read"` // never reads stdin
	NoHooks   bool          `yaml:"no_hooks"`   // calls no hooks of the host
	// Stderr is how many bytes of diagnostics it writes at the start.
	Stderr Size `yaml:"stderr"`
	// Stdout is how many bytes of diagnostics (not JSON) it writes at the start.
	Stdout Size `yaml:"stdout"`

	Initialize InitializeFault `yaml:"initialize"`
	// Refuse and Ignore list subtypes of the host's control requests that are
	// answered with an error, or not at all; "*" is all but initialize.
	Refuse []string `yaml:"refuse"`
	Ignore []string `yaml:"ignore"`
	// AnswerDelay holds back every answer to a control request but initialize.
	AnswerDelay time.Duration `yaml:"answer_delay"`
	// RepeatRequests writes every control request of the agent's so many times
	// more, under the same id.
	RepeatRequests int `yaml:"repeat_requests"`

	// Split cuts what it writes into small pieces: bytes (each byte), runes
	// (inside every character of more than one byte), or halves (each line in
	// two).
	Split string `yaml:"split"`
	// Newline ends lines wrongly: crlf, blank (an empty line after each), or
	// missing (none after a result, until something else is written).
	Newline string `yaml:"newline"`
	// Noise are lines written between frames, in turn.
	Noise []string `yaml:"noise"`

	Die *Die `yaml:"die"`
	// Children are started before anything is written, by the binary only.
	Children []Child `yaml:"children"`
}

// InitializeFault is what goes wrong with initialize.
type InitializeFault struct {
	// Mode is "" (answered), never, refuse, twice, empty (a success without a
	// response).
	Mode  string        `yaml:"mode"`
	Delay time.Duration `yaml:"delay"` // before the answer, whatever it is
	Error string        `yaml:"error"` // of refuse
	Code  string        `yaml:"code"`  // of refuse
}

// Die is a death. It comes at a point, or after so many lines were written.
type Die struct {
	At    agent.Point `yaml:"at"`
	Nth   int         `yaml:"nth"`   // the nth time the point is reached; 0 is the first
	Lines int         `yaml:"lines"` // or: after this many lines
	// Only limits it to a life that is fresh (not resumed) or resumed.
	Only   string `yaml:"only"`
	Code   int    `yaml:"code"`
	Signal string `yaml:"signal"`
}

// Child is a process the agent leaves behind.
type Child struct {
	Token      string        `yaml:"token"`       // stands in its arguments, to be found by
	Session    bool          `yaml:"session"`     // in a session of its own
	HoldStdout bool          `yaml:"hold_stdout"` // keeps the agent's stdout and stderr open
	TrapTerm   bool          `yaml:"trap_term"`   // SIGTERM does nothing
	Reparent   bool          `yaml:"reparent"`    // its parent is gone
	Forks      time.Duration `yaml:"forks"`       // starts another like itself so often, and goes
	Lifetime   time.Duration `yaml:"lifetime"`    // 0 is 10 min
}

// run is one life of an agent.
type run struct {
	agent   *Agent
	script  *Script
	resumed bool
	next    int // of the script's unconditional turns
	passed  int // times the deadly point was reached
	died    bool
}

// at is the deadly point.
func (r *run) at(m agent.Moment) *agent.Exit {
	d := r.script.Misbehave.Die
	if d == nil || d.At != m.Point || !r.applies(d) {
		return nil
	}
	if r.passed++; r.passed < max(d.Nth, 1) {
		return nil
	}
	if m.Point == agent.MidAssistant {
		_ = m.Port.Write(m.Frame[:len(m.Frame)/2]) // it dies either way
	}
	r.died = true
	return &agent.Exit{Code: d.Code, Signal: d.Signal}
}

func (r *run) applies(d *Die) bool {
	return d.Only == "" || (d.Only == "resumed") == r.resumed
}

// control spoils the answers to control requests.
func (r *run) control(req *agent.Request) bool {
	m := &r.script.Misbehave
	if req.Subtype == "initialize" {
		return m.Initialize.spoil(req)
	}
	switch {
	case listed(m.Ignore, req.Subtype):
		return true
	case m.AnswerDelay > 0:
		req.Later(func(s *agent.Strand) {
			if s.Sleep(m.AnswerDelay) == nil && !req.Cancelled() {
				m.serve(req)
			}
		})
		return true
	case listed(m.Refuse, req.Subtype):
		m.serve(req)
		return true
	}
	return false
}

func (m *Misbehaviour) serve(req *agent.Request) {
	if listed(m.Refuse, req.Subtype) {
		req.Fail("refused: "+req.Subtype, "refused")
		return
	}
	req.Serve()
}

func listed(list []string, subtype string) bool {
	for _, s := range list {
		if s == subtype || s == "*" {
			return true
		}
	}
	return false
}

// spoil reports whether it has dealt with initialize.
func (f InitializeFault) spoil(req *agent.Request) bool {
	answer := func() {
		switch f.Mode {
		case "never":
		case "refuse":
			text := f.Error
			if text == "" {
				text = "initialize refused"
			}
			req.Fail(text, f.Code)
		case "empty":
			req.Succeed(nil)
		case "twice":
			req.Serve()
			req.Serve()
		default:
			req.Serve()
		}
	}
	switch {
	case f.Delay > 0:
		req.Later(func(s *agent.Strand) {
			if s.Sleep(f.Delay) == nil {
				answer()
			}
		})
	case f.Mode == "":
		return false
	default:
		answer()
	}
	return true
}
