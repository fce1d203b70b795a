package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a link in virtual time, driven by a transport actor, with a fake
// process at its other end.
type rig struct {
	*transport.Link
	t      *testing.T
	sched  *sim.Scheduler
	sys    *kernel.System
	start  time.Time
	side   *side
	events []session.Event
	stderr []string
	frames int // times the router was told
	moved  int
	proc   *fake

	address kernel.Address[machine.ToTransport]
	lives   int                   // incarnations of the actor
	left    []machine.ToTransport // what came while there was none
}

var graces = session.Graces{EOF: 5 * time.Second, Terminate: 3 * time.Second, Output: 2 * time.Second, Sweep: 10 * time.Second}

// config is of a routing that has nothing of its own to say.
var config = machine.Config{Rules: routertest.Rules{
	Deny: func(session.Kind, protocol.Frame, string) ([]byte, string) { return nil, "denied" },
}}

type setup struct {
	link transport.LinkConfig
	side routertest.Config
}

func newRig(t *testing.T, change ...func(*rig, *setup)) *rig {
	t.Helper()
	r := &rig{t: t, sched: sim.New(1)}
	r.sys = kernel.NewSystem(r.sched.Config())
	r.start = r.sched.Now()
	r.proc = newFake(r)
	s := &setup{
		link: transport.LinkConfig{
			Clock: r.sched, Exec: r.sched, Spawner: r.proc, Graces: graces,
			Command: &session.Command{Path: "/bin/agent", Dir: "/work"},
			Session: func(machine.LifeInput) { r.moved++ },
			Self:    func(m machine.ToTransport) { r.tell(m) },
			Router:  func(_ *kernel.Worker, in machine.Input) { r.frames++; r.side.Tell(in) },
			Idle:    func() {},
			Room:    func() <-chan struct{} { return r.address.Room(1) },
			Role:    r.sys.NewRole,
			Stderr:  func(line string) { r.stderr = append(r.stderr, line) },
		},
		side: routertest.Config{
			Config:   config,
			UserLine: func(*protocol.UserMessage) ([]byte, error) { return nil, nil },
			Emit:     func(e session.Event) { r.events = append(r.events, e) },
		},
	}
	for _, c := range change {
		c(r, s)
	}
	r.side = newSide(r.sched, s.side, r.tell)
	s.link.Budget, s.link.Emit = s.side.Budget, s.side.Emit
	r.Link = transport.NewLink(s.link)
	t.Cleanup(r.sched.Close)
	return r
}

// tell tells the actor, or the next one: a root, which it is here, leaves nothing.
func (r *rig) tell(m machine.ToTransport) {
	if r.lives > 0 && !r.address.Live() {
		r.left = append(r.left, m)
		return
	}
	r.address.Tell(nil, m)
}

// waits is what the reader and the routing wait for.
func (r *rig) waits() []session.Wait {
	var all []session.Wait
	if what, since := r.Waits(); what != "" {
		all = append(all, session.Wait{What: what, Age: r.sched.Now().Sub(since)})
	}
	return append(all, r.side.waits()...)
}

// actor starts the next incarnation of the transport actor, and the process.
func (r *rig) actor() *kernel.Address[machine.ToTransport] {
	r.t.Helper()
	r.lives++
	err := kernel.SpawnRoot(r.sys, fmt.Sprintf("transport#%d", r.lives), &r.address, &transport.Actor{Present: func() *transport.Link { return r.Link }})
	require.NoError(r.t, err)
	r.tell(machine.Launch{Gen: 1})
	for _, m := range r.left {
		r.tell(m)
	}
	r.left = nil
	return &r.address
}

// launch starts the process, which has initialize before it.
func (r *rig) launch() *rig {
	r.t.Helper()
	r.actor()
	r.settle()
	require.Equal(r.t, machine.Up, r.Status().Phase)
	return r
}

// up starts the process and initializes it.
func (r *rig) up() *rig {
	r.t.Helper()
	r.launch()
	r.side.begin()
	r.proc.in.got.Reset()
	return r
}

// want asks for the ladder, as the session does.
func (r *rig) want(stage machine.Stage) {
	r.tell(machine.Climb{Stage: stage})
}

// settle runs what is ready, without letting time go by.
func (r *rig) settle() {
	r.t.Helper()
	r.pass(0)
}

// pass lets virtual time go by and then runs what is ready.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	over := make(chan struct{})
	r.sched.AfterFunc(d, func() { close(over) })
	require.NoError(r.t, r.sched.Await(context.Background(), over))
}

// ended waits for the end of the link and returns how it ended.
func (r *rig) ended() machine.Link {
	r.t.Helper()
	require.NoError(r.t, r.sched.Await(context.Background(), r.Done()))
	require.NoError(r.t, r.sched.Run(10_000))
	require.Zero(r.t, r.sched.Parked(), "tasks left waiting")
	s := r.Status()
	require.Equal(r.t, machine.Gone, s.Phase)
	return s
}

// content reads what the user can read now, by its raw lines.
func (r *rig) content() []string {
	r.t.Helper()
	c, err := r.side.Consume()
	require.NoError(r.t, err)
	defer c.Release()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	var lines []string
	for {
		e, err := c.Next(now)
		if err != nil {
			return lines
		}
		lines = append(lines, string(e.Frame.Raw))
	}
}

func eventsOf[E session.Event](r *rig) []E {
	var found []E
	for _, e := range r.events {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

// fake is a spawner and the one process it starts. What happens to the process
// is logged with its time; on says what it does about it.
type fake struct {
	r       *rig
	log     []string
	on      map[string]func()
	in      *sink
	out     *feed
	err     *feed
	exited  chan struct{}
	status  session.ExitStatus
	spawn   func(context.Context) error // before the process is there
	sweep   func(context.Context) ([]session.ProcInfo, error)
	reapErr error
	let     bool // go of the outputs by all processes; the pumps only have not seen it
}

func newFake(r *rig) *fake {
	f := &fake{r: r, on: make(map[string]func()), exited: make(chan struct{})}
	f.in, f.out, f.err = &sink{f: f}, &feed{r: r}, &feed{r: r}
	return f
}

// note logs what happens to the process, at the time since the rig's start.
func (f *fake) note(what string) {
	f.log = append(f.log, fmt.Sprintf("%v %s", f.r.sched.Now().Sub(f.r.start), what))
	if react := f.on[what]; react != nil {
		react()
	}
}

// exit ends the process and closes its outputs.
func (f *fake) exit(status session.ExitStatus) func() {
	return func() { f.out.close(); f.err.close(); f.end(status) }
}

// end ends the process itself; whoever else holds its outputs lives on.
func (f *fake) end(status session.ExitStatus) {
	select {
	case <-f.exited:
	default:
		f.status = status
		close(f.exited)
	}
}

// exitAfter ends the process some time later.
func (f *fake) exitAfter(d time.Duration, code int) func() {
	return func() { f.r.sched.AfterFunc(d, f.exit(session.ExitStatus{Code: code})) }
}

var killed = session.ExitStatus{Code: -1, Signal: "SIGKILL"}

func (f *fake) Spawn(ctx context.Context, _ session.Command) (session.Process, error) {
	f.note("spawn")
	if f.spawn != nil {
		if err := f.spawn(ctx); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fake) PID() int                      { return 4711 }
func (f *fake) Stdin() io.WriteCloser         { return f.in }
func (f *fake) Stdout() io.Reader             { return f.out }
func (f *fake) Exited() <-chan struct{}       { return f.exited }
func (f *fake) Signal(s session.Signal) error { f.note(s.String()); return nil }
func (f *fake) Kill() error                   { f.note("SIGKILL"); return nil }
func (f *fake) CloseOutput()                  { f.note("close output"); f.out.close(); f.err.close() }

func (f *fake) OutputHeld() (stdout, stderr bool) { return !f.let, !f.let }

func (f *fake) Stderr() io.Reader {
	if f.err == nil {
		return nil
	}
	return f.err
}

func (f *fake) Sweep(ctx context.Context) ([]session.ProcInfo, error) {
	f.note("sweep")
	if f.sweep != nil {
		return f.sweep(ctx)
	}
	return nil, nil
}

func (f *fake) Reap() (session.ExitStatus, error) { f.note("reap"); return f.status, f.reapErr }

// say writes lines to stdout.
func (f *fake) say(lines ...string) {
	for _, line := range lines {
		f.out.write(line + "\n")
	}
}

// without leaves some entries of the log out.
func (f *fake) without(what ...string) []string {
	return slices.DeleteFunc(slices.Clone(f.log), func(entry string) bool {
		_, name, _ := bytes.Cut([]byte(entry), []byte(" "))
		return slices.Contains(what, string(name))
	})
}

// feed is what a process writes.
type feed struct {
	r      *rig
	buf    []byte
	chunk  int // bytes of one read; 0: all there is
	reads  int
	closed bool
	wake   chan struct{}
}

func (f *feed) write(s string) { f.buf = append(f.buf, s...); f.fire() }
func (f *feed) close()         { f.closed = true; f.fire() }

func (f *feed) fire() {
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

func (f *feed) Read(p []byte) (int, error) {
	for {
		if len(f.buf) > 0 {
			if f.chunk > 0 {
				p = p[:min(f.chunk, len(p))]
			}
			n := copy(p, f.buf)
			f.buf = f.buf[n:]
			f.reads++
			return n, nil
		}
		if f.closed {
			return 0, io.EOF
		}
		f.wake = make(chan struct{})
		if err := f.r.sched.Await(context.Background(), f.wake); err != nil {
			return 0, err
		}
	}
}

// sink is what a process reads.
type sink struct {
	f       *fake
	got     bytes.Buffer
	blocked chan struct{} // non-nil: writes wait for it
	fail    error
	closed  bool
}

func (s *sink) Write(p []byte) (int, error) {
	if s.blocked != nil {
		if err := s.f.r.sched.Await(context.Background(), s.blocked); err != nil {
			return 0, err
		}
	}
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	if s.fail != nil {
		return 0, s.fail
	}
	return s.got.Write(p)
}

func (s *sink) Close() error {
	if s.closed {
		return errors.New("closed twice")
	}
	s.closed = true
	s.f.note("EOF")
	if s.blocked != nil {
		close(s.blocked)
		s.blocked = nil
	}
	return nil
}

func assistant(n int) string { return fmt.Sprintf(`{"type":"assistant","n":%d}`, n) }

func joined[S fmt.Stringer](all ...S) string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.String()
	}
	return strings.Join(names, " ")
}

// connected reports whether a session that has made no call yet can write to its
// agent: initialize is made then.
