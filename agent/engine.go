package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Config configures the engine. Turn is required; the zero value of every other field
// means the dialect's default.
type Config struct {
	Dialect Dialect // [Claude] or [Qoder]

	// Turn plays one turn: everything between the prompt and the result. If it returns
	// nil without a call of [Turn.Finish], the engine ends the turn as a success. It must
	// return the errors of the engine's methods unchanged.
	Turn func(*Turn) error
	// Continue continues a turn after a Stop hook has blocked its end; nil: the agent
	// writes the hook's reason as text.
	Continue func(t *Turn, reason string) error

	// Control gets every request of the host before the engine. If it returns true, the
	// engine does not handle the request.
	Control func(*Request) bool
	// Answered is called with each answer of the host to a request of the agent, before
	// the agent continues. nil: no callback.
	Answered func(request Object, a Answer)
	// At is called at each [Point]. A non-nil Exit ends the agent there.
	At func(Moment) *Exit
	// History stores the session, so that a later process can resume it; nil: --resume
	// only sets the session's id.
	History History

	// Executor runs the tasks of [Strand.Do] and [Receive], or is nil.
	Executor Executor
	// AfterFunc makes the timer for tasks that do not end; nil: the agent waits for them
	// without a limit.
	AfterFunc func(d time.Duration, fn func()) (stop func() bool)
	// Now is the time of day, for timestamps; nil: a day that is made up, and frames have
	// no timestamps.
	Now func() time.Time

	// Live is set by an agent with a real model; nil: the engine makes up what such an agent
	// would say.
	Live *Live

	Version         string    // version in system/init; "": the version of the dialect
	ProtocolVersion string    // qodercli only
	SessionID       string    // used if the arguments have no session id
	Model           string    // used if the arguments have no model
	Capabilities    []string  // nil: the capabilities of the dialect
	Initialize      Object    // merged into the initialize response
	Init            Object    // merged into system/init
	CostPerCall     float64   // cost of one model call, in US dollars
	Handshake       Handshake // how the engine gets the tools of the host's MCP servers
	NoHooks         bool      // true: calls no hooks, like Claude Code in its minimal mode
	State           Switch    // session_state_changed frames; Auto: if the host's environment asks for them
	Partials        Switch    // stream_event frames; Auto: if the arguments ask for them
}

// Switch turns a feature on or off. The zero value does what the real CLI was
// observed to do.
type Switch int

// Values of [Switch].
const (
	On Switch = iota + 1
	Off
)

func (s Switch) or(auto bool) bool {
	switch s {
	case On:
		return true
	case Off:
		return false
	}
	return auto
}

// Point is a point of the protocol at which [Config].At is called.
type Point string

// The points at which [Config].At is called.
const (
	BeforeInitResponse Point = "before-init-response"
	AfterInitResponse  Point = "after-init-response"
	MidAssistant       Point = "mid-assistant" // Frame is the assistant line about to be written
	PendingPermission  Point = "pending-permission"
	BeforeResult       Point = "before-result"
	AfterResult        Point = "after-result"
)

// Moment is the argument of [Config].At. Everything before the point has been written.
type Moment struct {
	Point Point  // the point that was reached
	Frame []byte // the line that the point is about; nil: no line
	Port  Port   // for writing to the host directly
}

// engine serves one conversation. Everything in it belongs to one coroutine at
// a time.
type engine struct {
	cfg    Config
	tr     traits
	port   Port
	launch Launch
	flags  flags
	ids    *ids

	polls     bool          // receive does not wait for the host; see Conversation.Play
	rests     bool          // and has found nothing to do before the host says something
	waited    time.Duration // sum of the waits that ran out, when the port is not an Elapser
	outside   *outside      // nil: strands cannot work outside
	strands   []*Strand
	current   *Strand
	job       func() // what current wants done on the engine's goroutine
	looks     int    // how often the port was asked
	out       []byte
	exit      *Exit
	eof       bool // the host closed stdin
	restored  bool // what an earlier life of the session left was looked for
	leaving   bool // SIGINT or SIGTERM: end when the turn has ended
	lastError bool // the last result had is_error

	session  session
	perms    permissions
	host     host
	asked    []*pending // our requests that are open, oldest first
	openAsks int        // of them, those that wait for a person
	inbox    []*message
	seen     map[string]bool // uuids of user lines, this and earlier lives of the session

	remembered map[string]bool // of them, those of earlier lives
	mem        memory
	turn       *Turn
	tasks      []*Task
	own        []*mcpServer // servers that the agent itself connects to
	apart      int          // strands for which the agent's end does not wait
	watched    []*Task      // sub-agents of a real model in the foreground
	syncing    *syncRun     // the last one
	sidechains []*sidechain // of real models' sub-agents that run, oldest first
	state      string       // last session_state_changed
	spent      float64
	calls      int // model calls
	results    int
}

func newEngine(l Launch, p Port, cfg Config) *engine {
	e := &engine{
		cfg: cfg, tr: cfg.Dialect.traits(), port: p, launch: l,
		flags: parseFlags(l.Args), ids: newIDs(l.Seed), seen: map[string]bool{},
		remembered: map[string]bool{},
	}
	if cfg.Version != "" {
		e.tr.version = cfg.Version
	}
	if cfg.ProtocolVersion != "" {
		e.tr.protocolVersion = cfg.ProtocolVersion
	}
	if h, ok := cfg.History.(lagger); ok {
		e.mem.lag = h.Lag()
	}
	e.outside = newOutside(p, &e.cfg)
	e.session = newSession(e)
	e.perms = newPermissions(e.flags, e.session.cwd, cfg.Live != nil)
	e.host = newHost()
	e.own = ownServers(cfg.Live)
	e.host.servers = e.own
	return e
}

// now is the time the engine goes by.
func (e *engine) now() time.Duration {
	if c, ok := e.port.(Elapser); ok {
		return c.Elapsed()
	}
	return e.waited
}

// receive waits for one line or for the next deadline.
func (e *engine) receive() {
	wait := e.nextDeadline()
	starting := e.turn == nil && len(e.inbox) > 0
	if starting {
		wait = 0 // what is already there belongs before the turn
	}
	forever := wait < 0
	polled := e.polls && forever
	if polled {
		wait = 0
	}
	line, err := e.port.Next(wait)
	if polled && errors.Is(err, ErrWaited) {
		e.rests = true
		return
	}
	e.looks++
	switch {
	case err == nil:
		e.line(line)
	case errors.Is(err, errWake):
		e.outside.woken.Store(false)
	case errors.Is(err, ErrWaited):
		e.waited += max(wait, 0)
		if starting {
			e.startTurn()
		}
	case errors.Is(err, io.EOF):
		if e.eof { // a port that says so again and again: let the time pass
			if forever {
				e.quit(Exit{Code: 1})
			}
			e.waited += max(wait, 0)
			if starting {
				e.startTurn()
			}
			return
		}
		e.eof = true
		e.closeGates()
	case errors.Is(err, ErrInterrupted):
		e.leaving = true
		e.stopTasks()
		e.interrupt()
	case errors.Is(err, ErrTerminated):
		e.terminate()
	default:
		e.quit(Exit{Signal: "KILL"})
	}
}

// finished reports whether there is nothing left to do.
func (e *engine) finished() bool {
	if e.turn != nil || len(e.strands) > e.apart {
		return false
	}
	return e.leaving || e.eof && len(e.inbox) == 0
}

// naturalExit is how Claude Code was seen to exit at EOF: 1 after a result
// with is_error, else 0. SIGINT always ends in 0.
func (e *engine) naturalExit() Exit {
	if e.lastError && !e.leaving {
		return Exit{Code: 1}
	}
	return Exit{}
}

// terminate is SIGTERM: the tool that runs dies with it, no result follows.
func (e *engine) terminate() {
	if e.turn != nil {
		e.turn.scope.err = errTerminated
	}
	e.stopTasks()
	e.schedule()
	e.flush()
	e.quit(Exit{Code: 143})
}

var errTerminated = fmt.Errorf("%w by SIGTERM", errAborted)

// quit ends the agent; whatever strands still do goes nowhere.
func (e *engine) quit(x Exit) {
	if e.exit == nil {
		e.sync(x == Exit{} || x == Exit{Code: 143}) // what is killed or crashes stores nothing more
		x.Signal = strings.TrimPrefix(x.Signal, "SIG")
		e.exit = &x
	}
}

// at passes a point.
func (e *engine) at(p Point, frame []byte) {
	if e.cfg.At == nil || e.exit != nil {
		return
	}
	e.flush()
	e.onPort(func() {
		if x := e.cfg.At(Moment{Point: p, Frame: frame, Port: e.port}); x != nil {
			e.quit(*x)
		}
	})
}

// fatal ends the agent the way the CLI does on input it cannot live with.
func (e *engine) fatal(format string, a ...any) {
	e.flush()
	e.stderr(fmt.Sprintf(format, a...))
	e.quit(Exit{Code: 1})
}

func (e *engine) stderr(text string) {
	e.onPort(func() { e.port.Stderr([]byte(text + "\n")) })
}

// ExitError is an error that ends the agent, as a port or a turn function
// returns it.
type ExitError struct {
	Exit Exit // how the agent ends
}

// Error implements error.
func (x *ExitError) Error() string {
	if x.Exit.Signal != "" {
		return "agent: ends by signal " + x.Exit.Signal
	}
	return fmt.Sprintf("agent: ends with code %d", x.Exit.Code)
}

// send writes one frame.
func (e *engine) send(o Object) {
	if e.exit != nil {
		return
	}
	if e.out == nil { // a frame has some hundred bytes, and a buffer that grows to that copies it three times
		e.out = make([]byte, 0, firstOut)
	}
	b := bytes.NewBuffer(e.out)
	if err := write(b, o); err != nil {
		e.fatal("agent: frame cannot be encoded: %v", err)
		return
	}
	b.WriteByte('\n')
	e.sent(b.Bytes())
}

func (e *engine) sendLine(line []byte) {
	if e.exit != nil {
		return
	}
	e.sent(append(append(e.out, line...), '\n'))
}

// sent takes what is to be written, with a line more.
func (e *engine) sent(out []byte) {
	if e.out = out; len(out) > maxOut {
		e.flush()
	}
}

// firstOut is the room of a buffer that is made for frames.
const firstOut = 1 << 10

// maxOut is how much is written at once, more or less.
const maxOut = 256 << 10

// muchOut is how much is written at once by an agent that keeps the buffer for what comes next.
const muchOut = 4 << 10

// emit writes a message of the session: a frame with uuid and session id.
func (e *engine) emit(o Object) {
	if _, ok := o["uuid"]; !ok {
		o["uuid"] = e.ids.uuid()
	}
	o["session_id"] = e.session.id
	e.send(o)
}

func (e *engine) system(subtype string, o Object) {
	e.emit(o.with(Object{"type": "system", "subtype": subtype}))
}

// flush writes what has been sent.
func (e *engine) flush() {
	if len(e.out) == 0 {
		return
	}
	e.onPort(func() {
		few := len(e.out) < muchOut
		err := e.port.Write(e.out)
		if e.out = e.out[:0]; e.turn == nil || few {
			e.out = nil // nothing may come for long
		}
		var x *ExitError
		switch {
		case err == nil:
		case errors.As(err, &x):
			e.quit(x.Exit)
		default:
			e.quit(Exit{Code: 1})
		}
	})
}
