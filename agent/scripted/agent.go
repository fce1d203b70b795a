package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// Agent plays a script. It implements [agent.Program]; one value may serve many
// conversations at the same time. The zero value plays [Demo].
type Agent struct {
	Script  *Script       // nil: Demo()
	Dialect agent.Dialect // "": the script's dialect

	// Effect is called for each side effect of a tool, with a line and the name of the
	// file for it. nil: the line is appended to the file.
	Effect func(file, line string) error
	// History stores sessions. By default they are stored in files if Script.Transcript is
	// true, otherwise not at all.
	History agent.History
	// Spawn starts the children of scripts; nil: no children are started.
	Spawn func(Child) error
	// Record keeps what the host says, and which steps are reached; nil keeps nothing.
	Record *Record
}

// Option is an option of [New].
type Option func(*Agent)

// WithScript plays s.
func WithScript(s *Script) Option { return func(a *Agent) { a.Script = s } }

// WithTurns plays turns one after another.
func WithTurns(turns ...Turn) Option {
	return func(a *Agent) { a.Script = &Script{Turns: turns} }
}

// WithEffect passes the side effects of tools to f instead of files.
func WithEffect(f func(file, line string) error) Option { return func(a *Agent) { a.Effect = f } }

// WithHistory stores sessions in h.
func WithHistory(h agent.History) Option { return func(a *Agent) { a.History = h } }

// WithSpawn starts children with f.
func WithSpawn(f func(Child) error) Option { return func(a *Agent) { a.Spawn = f } }

// New returns an agent that plays the demo, unless an option says otherwise.
func New(opts ...Option) *Agent {
	a := &Agent{}
	for _, o := range opts {
		o(a)
	}
	if a.Script == nil {
		a.Script = Demo() // one for all conversations
	}
	return a
}

// AgentName implements [agent.Program].
func (a *Agent) AgentName() string { return "scripted" }

// AgentDialect returns the dialect that the agent uses. Package sdk reads it.
func (a *Agent) AgentDialect() agent.Dialect {
	switch {
	case a.Dialect != "":
		return a.Dialect
	case a.Script != nil && a.Script.Dialect != "":
		return a.Script.Dialect
	}
	return agent.Claude
}

// Serve implements [agent.Program].
func (a *Agent) Serve(l agent.Launch, p agent.Port) agent.Exit {
	t := a.open(l, p)
	if exit := t.run.start(p); exit != nil {
		return *exit
	}
	return t.end(t.Run())
}

// Open implements [agent.Opener].
func (a *Agent) Open(asked agent.Program, l agent.Launch, p agent.Port) agent.Player {
	if asked != agent.Program(a) {
		return nil
	}
	return a.open(l, p)
}

// talk is one conversation.
type talk struct {
	*agent.Conversation
	run    *run
	faults *faultPort
	port   agent.Port // the real one; nil once something was played
}

func (a *Agent) open(l agent.Launch, p agent.Port) *talk {
	s := a.Script
	if s == nil {
		s = Demo()
	}
	a.Record.begin(s)
	r := &run{agent: a, script: s, resumed: resumed(l.Args)}
	port, faults := spoiled(p, &s.Misbehave, r.deathByLines())
	return &talk{run: r, faults: faults, port: p, Conversation: agent.Open(l, port, agent.Config{
		Dialect: a.AgentDialect(), Version: s.Version, ProtocolVersion: s.ProtocolVersion,
		SessionID: s.SessionID, Model: s.Model, Capabilities: s.Capabilities,
		Initialize: s.Initialize, Init: s.Init, CostPerCall: s.CostPerCall,
		Handshake: s.MCPHandshake, NoHooks: s.Misbehave.NoHooks, State: toSwitch(s.SessionState), Partials: toSwitch(s.Partials),
		History: a.history(l),
		Turn: func(t *agent.Turn) error {
			a.Record.turn(t)
			return r.player(t).play(s.choose(r, t.Prompt()))
		},
		Answered: a.Record.answer,
		Continue: r.goOn, Control: r.control, At: r.at,
	})}
}

// Play implements [agent.Player].
func (t *talk) Play() (agent.Exit, bool) {
	if p := t.port; p != nil {
		t.port = nil
		if exit := t.run.start(p); exit != nil {
			return *exit, true
		}
	}
	exit, ended := t.Conversation.Play()
	if ended {
		exit = t.end(exit)
	}
	return exit, ended
}

// end is what happens after the conversation.
func (t *talk) end(exit agent.Exit) agent.Exit {
	if t.run.died {
		return exit
	}
	return t.faults.linger(exit)
}

// ReadSession implements [agent.Archive].
func (a *Agent) ReadSession(l agent.Launch, id string) ([]byte, error) {
	h := a.history(l)
	if h == nil {
		return nil, errors.New("the agent stores no sessions")
	}
	return h.Load(agent.SessionFile(l.Dir, id))
}

func (a *Agent) history(l agent.Launch) agent.History {
	h := a.stored(l)
	if h != nil && a.Script != nil && a.Script.TranscriptLag > 0 {
		h = lagging{h, a.Script.TranscriptLag}
	}
	return h
}

func (a *Agent) stored(l agent.Launch) agent.History {
	if a.History != nil || a.Script == nil || !a.Script.Transcript {
		return a.History
	}
	dir := l.Getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(l.Getenv("HOME"), ".claude")
	}
	return DirHistory(dir)
}

// start is what happens before the first line.
func (r *run) start(p agent.Port) *agent.Exit {
	m := &r.script.Misbehave
	for _, c := range m.Children {
		if err := r.agent.spawn(c); err != nil {
			p.Stderr([]byte(err.Error() + "\n"))
			return &agent.Exit{Code: 1}
		}
	}
	for n := int(m.Stderr); n > 0; n -= 80 {
		p.Stderr(diagnostics(n))
	}
	for n := int(m.Stdout); n > 0; n -= 80 {
		if p.Write(diagnostics(n)) != nil {
			return &agent.Exit{Code: 1}
		}
	}
	return nil
}

// diagnostics is a line of up to 80 bytes.
func diagnostics(n int) []byte {
	return append(bytes.Repeat([]byte{'.'}, min(n, 80)-1), '\n')
}

func (r *run) player(t *agent.Turn) *player {
	return &player{Lane: t.Lane, run: r, turn: t, prompt: t.Prompt()}
}

func (r *run) goOn(t *agent.Turn, reason string) error {
	p := r.player(t)
	p.prompt = reason
	if r.script.OnStopBlock == nil {
		return p.Text("Going on: " + reason)
	}
	return p.play(r.script.OnStopBlock)
}

func (r *run) deathByLines() *Die {
	if d := r.script.Misbehave.Die; d != nil && d.Lines > 0 && r.applies(d) {
		return d
	}
	return nil
}

// effect records a side effect.
func (a *Agent) effect(file, line string) error {
	if a.Effect != nil {
		return a.Effect(file, line)
	}
	if err := appendTo(file, []byte(line+"\n")); err != nil {
		return fmt.Errorf("scripted: count a side effect: %w", err)
	}
	return nil
}

func (a *Agent) spawn(c Child) error {
	if a.Spawn == nil {
		return nil
	}
	if err := a.Spawn(c); err != nil {
		return fmt.Errorf("scripted: start a child: %w", err)
	}
	return nil
}

// resumed reports whether args continue an earlier life of a session.
func resumed(args []string) bool {
	for _, a := range args {
		if a == "--continue" || a == "--resume" || strings.HasPrefix(a, "--resume=") {
			return true
		}
	}
	return false
}
