package scripted

import (
	"cmp"
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// Misbehaviour says what an agent does wrong, always or at a point of the protocol. For
// single mistakes use steps. The zero value is a correct agent.
type Misbehaviour struct {
	TrapTerm  bool          `yaml:"trap_term"`  // SIGTERM does nothing
	IgnoreEOF bool          `yaml:"ignore_eof"` // does not exit when stdin is closed
	ExitDelay time.Duration `yaml:"exit_delay"` // time from EOF to the exit
	NeverRead bool          `yaml:"never_read"` // never reads stdin
	NoHooks   bool          `yaml:"no_hooks"`   // calls no hooks of the host
	// Stderr is the number of bytes that the agent writes to stderr at the start.
	Stderr Size `yaml:"stderr"`
	// Stdout is the number of bytes, not JSON, that the agent writes to stdout at the
	// start.
	Stdout Size `yaml:"stdout"`

	Initialize InitializeFault `yaml:"initialize"`
	// Refuse are subtypes of the host's control requests that are answered with an error,
	// Ignore those that are not answered. "*" means all except initialize.
	Refuse []string `yaml:"refuse"`
	Ignore []string `yaml:"ignore"`
	// AnswerDelay delays every answer to a control request except initialize.
	AnswerDelay time.Duration `yaml:"answer_delay"`
	// RepeatRequests is how many more times each control request of the agent is written,
	// with the same id.
	RepeatRequests int `yaml:"repeat_requests"`

	// Split splits the output into small writes: bytes (each byte), runes (within every
	// character of more than one byte), or halves (each line in two).
	Split string `yaml:"split"`
	// Newline writes wrong line ends: crlf, blank (an empty line after each line), or
	// missing (no newline after a result until the next write).
	Newline string `yaml:"newline"`
	// Noise are lines that are written between frames, one after another.
	Noise []string `yaml:"noise"`

	Die *Die `yaml:"die"`
	// Children are started before the first write, by the binary only.
	Children []Child `yaml:"children"`
}

// InitializeFault says what goes wrong with the answer to initialize.
type InitializeFault struct {
	// Mode is "" (a correct answer), never, refuse, twice, or empty (a success without a
	// response).
	Mode  string        `yaml:"mode"`
	Delay time.Duration `yaml:"delay"` // time before the answer, in every mode
	Error string        `yaml:"error"` // text of the error, for refuse
	Code  string        `yaml:"code"`  // code of the error, for refuse
}

// Die makes the agent die at a point of the protocol, or after a number of lines.
type Die struct {
	At    agent.Point `yaml:"at"`
	Nth   int         `yaml:"nth"`   // which time the point is reached, from 1; 0 means 1
	Lines int         `yaml:"lines"` // number of written lines, instead of At
	// Only is fresh or resumed: the agent dies only in a process that has started or
	// resumed the session. "": in both.
	Only   string `yaml:"only"`
	Code   int    `yaml:"code"`   // exit code
	Signal string `yaml:"signal"` // signal without SIG, instead of Code
}

// Child is a process that the agent leaves behind.
type Child struct {
	Token      string        `yaml:"token"`       // text in its arguments, for tests to find it
	Session    bool          `yaml:"session"`     // runs in a new session (setsid)
	HoldStdout bool          `yaml:"hold_stdout"` // keeps the agent's stdout and stderr open
	TrapTerm   bool          `yaml:"trap_term"`   // SIGTERM does nothing
	Reparent   bool          `yaml:"reparent"`    // its parent has ended
	Forks      time.Duration `yaml:"forks"`       // interval at which it starts a copy of itself and ends
	Lifetime   time.Duration `yaml:"lifetime"`    // 0: 10 min
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
	r.agent.Record.request(req)
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
			text := cmp.Or(f.Error, "initialize refused")
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
