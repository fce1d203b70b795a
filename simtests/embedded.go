package simtests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Embedded is the agent of package agent/embedded in a world, with its model and what its
// commands do. Its files are real ones, in [World.Dir].
//
// The kit's oracles look at what the model is asked, what the agent writes, runs and stores.
// They know a call by its input: no two calls of a session may run the same command, or write
// the same to a file.
type Embedded struct {
	// Server is the model. It may be that of several clients of one world, which sets its
	// Clock and Exec, and looks at each request before its Script and Fault do.
	Server *modeltest.Server
	// OpenAI: the model speaks chat completions; else the Messages API.
	OpenAI bool
	// Config is the agent's. Model is the world's, as is Dir if it is "".
	Config embedded.Config
	// Run is what a command does. Without it, a command prints nothing and succeeds at once.
	Run func(command string) Ran
	// Tools are those of each MCP server on stdio in the options; nil: their commands are those of
	// Run. Tool is what a call does: Output is its result, and with a Code that is not 0 the server
	// dies. Without it a call succeeds at once.
	Tools []string
	Tool  func(name string, arguments json.RawMessage) Ran
	// ToolsAfter is how long such a server takes to answer initialize.
	ToolsAfter time.Duration
	// Unasked are beginnings of commands that may run without permission. All else that
	// changes something has to be allowed by CanUseTool, if the options have one and neither
	// rules nor a mode.
	Unasked []string
	// Rests: the agent has no goroutine while it waits for its host, as in production.
	Rests bool

	world *World
	death *hostDeath
}

// OpenEmbedded connects a client to an embedded agent. The options are those of production,
// but for Runtime and Backend, which are the world's. Cwd "" is the directory work in
// [World.Dir]. An error ends the scenario as a failure; [World.DialEmbedded] returns it.
func (w *World) OpenEmbedded(o *sdk.Options, e *Embedded) *sdk.Client {
	w.Helper()
	c, err := w.DialEmbedded(o, e)
	if err != nil {
		w.Fatalf("open a session: %v", err)
	}
	return c
}

// DialEmbedded is [World.OpenEmbedded] for sessions that may not start.
func (w *World) DialEmbedded(o *sdk.Options, e *Embedded) (*sdk.Client, error) {
	if w.c.Level == Processes {
		return nil, errors.New("simtests: an embedded agent is no process: play it on another level")
	}
	var own sdk.Options
	if o != nil {
		own = *o
	}
	if own.Cwd == "" {
		own.Cwd = filepath.Join(w.Dir(), "work")
		if err := os.MkdirAll(own.Cwd, 0o700); err != nil {
			return nil, err
		}
	}
	own.Env = maps.Clone(own.Env)
	if own.Env == nil {
		own.Env = map[string]string{}
	}
	for _, name := range keyNames() { // no command may have them
		own.Env[name] = theKey
	}
	own.Env["TMPDIR"] = w.Dir()
	e.world = w
	return w.dial(&own, func(o *sdk.Options) *program {
		p := w.program(nil, o)
		p.loop = w.minds().mind(p, o, e)
		p.backend = &embeddedBackend{Backend: embedded.New(p.loop.config()), p: p}
		return p
	})
}

// Dir is a directory of the world's. It is empty at first, and gone after the history.
func (w *World) Dir() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir != "" {
		return w.dir
	}
	in := ""
	if memory, err := os.Stat("/dev/shm"); err == nil && memory.IsDir() {
		in = "/dev/shm" // tools sync what they write, which takes longer than all else
	}
	//troupe:seam nothing of a history follows from the name: only its length counts, which is always the same
	base, err := os.MkdirTemp(in, "troupe-sim-")
	if err != nil {
		panic(fmt.Sprintf("simtests: a directory for the world: %v", err))
	}
	// Its length is the same in each run: lengths of lines are part of a history.
	const length = 64
	w.dirs, w.dir = base, filepath.Join(base, strings.Repeat("w", max(1, length-len(base))))
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		panic(fmt.Sprintf("simtests: a directory for the world: %v", err))
	}
	return w.dir
}

// minds are the embedded agents of a world. Guarded by the world's mutex.
type minds struct {
	w        *World
	all      []*mind           // by their numbers, from 1
	servers  map[string]bool   // that are the world's, by their addresses
	last     map[string]string // the messages of the last request of a session
	edges    map[string]int    // the compactions before it
	parent   map[string]string // of a fork, the session that it began from
	ran      map[string]string // effects of a session, and the call that had it
	free     map[string]bool   // of them, those that need no permission
	synced   map[string]int    // sizes of the sessions' files that were synced
	named    map[string]bool   // those of them whose names were
	answers  map[int]*answered // of the model, by number
	ended    map[string]int    // of them, the last one of a conversation that the agent has written whole
	executor session.Executor
	profiles *model.Profiles
}

func (w *World) minds() *minds {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loops == nil {
		w.loops = &minds{
			w: w, servers: make(map[string]bool), last: make(map[string]string), edges: make(map[string]int), parent: make(map[string]string),
			ended: make(map[string]int), ran: make(map[string]string), free: make(map[string]bool), synced: make(map[string]int), named: make(map[string]bool), answers: make(map[int]*answered), executor: w.executor(), profiles: model.DefaultProfiles(),
		}
	}
	return w.loops
}

// embeddedBackend is the agent's backend, whose program is played on the world's port, with
// the world's commands and disk.
type embeddedBackend struct {
	session.Backend
	p *program
}

// Agent implements [backend.Backend].
func (b *embeddedBackend) Agent(in *dialect.Input) (backend.Agent, error) {
	a, err := b.Backend.(backend.Backend).Agent(in)
	if open := a.NewProgram; open != nil {
		a.NewProgram = func(s backend.Seams) agent.Program {
			s.Spawner, s.Disk = &shells{b.p.loop}, b.p.loop.onDisk
			b.p.inner = open(s)
			if b.p.loop.e.Rests {
				return &resting{program: b.p}
			}
			return b.p
		}
	}
	return a, err
}

// resting is a program that needs no goroutine while it waits.
type resting struct{ *program }

// Open implements [agent.Opener].
func (r *resting) Open(_ agent.Program, l agent.Launch, port agent.Port) agent.Player {
	f := r.begin(l, port)
	return &played{r.program, f, l, r.inner.(agent.Opener).Open(r.inner, l, f)}
}

// played is a conversation of a program that rests.
type played struct {
	p     *program
	f     *faulty
	l     agent.Launch
	inner agent.Player
}

// Play implements [agent.Player].
func (d *played) Play() (agent.Exit, bool) {
	d.p.w.sched.be(d.f.lane)
	for {
		exit, ended := d.inner.Play()
		switch {
		case ended:
			return d.p.end(d.f, d.l, exit), true
		case d.f.late != nil:
			d.p.w.Sleep(lateLimit)
			late := d.f.late
			d.f.late = nil
			_ = d.f.send(late) // a host that is gone says so in the next play
		case len(d.f.failed) == 0:
			return exit, false
		}
	}
}

const defaultModel = "claude-sonnet-4-5"

// noWeb is the web of a world whose agent has no Config.Web: no name leads anywhere.
type noWeb struct{}

func (noWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &net.DNSError{Err: "the world has no web", Name: r.URL.Hostname(), IsNotFound: true}
}

// config is the agent's configuration.
func (m *mind) config() embedded.Config {
	w, s := m.w, m.e.Server
	w.mu.Lock()
	if at := fmt.Sprintf("%p", s); !w.loops.servers[at] {
		w.loops.servers[at] = true
		s.Clock, s.Exec = w.sched, w.loops.executor
		script, fault := s.Script, s.Fault
		s.Script = func(r *modeltest.Request) *modeltest.Answer { return w.loops.answer(r, script) }
		s.Fault = func(r *modeltest.Request) *modeltest.Fault { return w.loops.fault(r, fault) }
	}
	w.mu.Unlock()
	c := m.e.Config
	open := s.Anthropic
	if m.e.OpenAI { // with a server that wants thinking back, as some do
		open = func(c model.Config) *model.Client {
			c.URL, c.AfterFunc = "http://model.invalid/v1", func(d time.Duration, fn func()) func() bool { return w.sched.AfterFunc(d, fn).Stop }
			return model.NewOpenAI(model.OpenAIConfig{Config: c, Quirks: model.Quirks{Reasoning: "reasoning_content"}})
		}
	}
	c.Model = open(model.Config{Key: func(context.Context) (string, error) { return theKey, nil }, Header: m.header(), Client: &http.Client{Transport: m}})
	c.Name = cmp.Or(c.Name, defaultModel)
	if c.Dir == "" {
		c.Dir = filepath.Join(w.Dir(), "sessions")
	}
	if c.Web == nil {
		c.Web = noWeb{}
	}
	m.dir = c.Dir
	return c
}
