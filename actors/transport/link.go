package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/userproc"
	"github.com/agent-troupe/troupe/session"
)

// LinkConfig is what a link needs.
type LinkConfig struct {
	Clock   kernel.Clock
	Exec    kernel.Executor
	Spawner session.Spawner
	Command *session.Command // given up after the launch; nil: the zero value
	Gen     int              // which process of the session
	Leases  Leases           // nil: the process needs no right to run
	// SessionID is the agent's session that the process takes up or begins; "": the agent
	// chooses it.
	SessionID string
	Graces    session.Graces
	MaxLine   int // bytes; 0: 64 MiB
	Budget    *user.Budget
	Emit      func(session.Event)
	// Router, Session and Self send messages; Self sends to the transport actor. A worker is that of the reader, or nil.
	Router  func(w *kernel.Worker, in machine.Input)
	Session func(machine.LifeInput)
	Self    func(machine.ToTransport)
	// Room returns the channel that the reader waits for before it sends the router
	// more, or nil.
	Room func() <-chan struct{}
	// Idle is called when the reader rests and the agent has nothing to do.
	Idle func()
	// Role makes the role of the reader.
	Role func(job func(*kernel.Worker)) *kernel.Role
	// Stderr receives each line of the agent's stderr, without its newline,
	// on a task of the link. Optional.
	Stderr func(line string)
}

// Link is one agent process with its pumps. It outlives the transport actors
// that drive it. Safe for concurrent use.
type Link struct {
	cfg    LinkConfig
	life   context.Context // ends when the link has ended
	cancel context.CancelCauseFunc
	// reading ends with life, or before, when what is still unread is given up.
	reading  context.Context
	stopRead context.CancelCauseFunc
	// stopLaunch says that the launch is no longer wanted; nil without a launch.
	stopLaunch context.CancelCauseFunc

	stderr tail
	noise  tail

	// inStdout and inStderr say that a pump waits in its pipe, and nowhere else.
	inStdout, inStderr atomic.Bool

	// works: the agent has something to do, as far as the routing knows.
	works atomic.Bool
	// up: the process runs.
	up atomic.Bool
	// paused is closed when the reader may continue; nil while it may.
	paused atomic.Pointer[chan struct{}]

	mu         sync.Mutex
	phase      machine.Phase
	stage      machine.Stage
	wanted     machine.Stage
	waits      string // what the reader waits for, other than its consumer; "": nothing
	waitsAt    time.Time
	stageEnd   time.Time
	unattended kernel.Timer // of an Abort; nil: none
	why        string       // the ladder was wanted, if not for a close
	late       bool         // it was killed because it had not ended in time
	signal     string       // the last one that was sent before the process had ended; "": none
	path       string       // of the program
	proc       session.Process
	writer     *writer
	outputs    int // pumps still at work
	drained    []chan struct{}
	status     session.ExitStatus
	err        error // error of the launch, or a fatal error of the reader
	leftover   error
	lease      lease
}

// NewLink returns a link that is idle.
func NewLink(cfg LinkConfig) *Link {
	cfg.Gen = max(cfg.Gen, 1)
	if cfg.Command == nil {
		cfg.Command = &session.Command{}
	}
	cfg.Graces = cfg.Graces.WithDefaults()
	k := &Link{cfg: cfg, stderr: tail{max: 16 << 10}, noise: tail{max: 2 << 10}}
	k.life, k.cancel = context.WithCancelCause(context.Background())
	k.reading, k.stopRead = context.WithCancelCause(context.Background())
	return k
}

// Status describes the link as it is now.
func (k *Link) Status() machine.Link {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.describe()
}

// moved sends the session the state of the process. It does so under the lock, so that
// the messages are in order.
func (k *Link) moved() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cfg.Session(machine.Linked{Link: k.describe()})
}

// Waits is what the reader waits for, other than its consumer; "": nothing.
func (k *Link) Waits() (what string, since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waits, k.waitsAt
}

func (k *Link) readerWaits(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waits, k.waitsAt = what, k.cfg.Clock.Now()
}

func (k *Link) describe() machine.Link {
	s := machine.Link{
		Gen: k.cfg.Gen, Phase: k.phase, Stage: k.stage, Exit: k.status, Err: machine.Fault{Err: k.err}, Leftover: machine.Fault{Err: k.leftover},
		Signal: k.signal, Why: k.why, Late: k.late,
		Stderr: k.stderr.String(), Noise: k.noise.String(),
	}
	if k.proc != nil {
		s.PID = k.proc.PID()
	}
	return s
}

// Launch starts the process, once. The outcome is a change of phase.
func (k *Link) Launch() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase != machine.Idle {
		return
	}
	k.phase = machine.Launching
	ctx, cancel := context.WithCancelCause(context.Background())
	k.stopLaunch = cancel
	k.cfg.Exec.Go(func() { k.launch(ctx) })
}

func (k *Link) launch(ctx context.Context) {
	proc := k.begin(ctx)
	if proc == nil {
		return
	}
	k.mu.Lock()
	k.stopLaunch = nil                              // nor is it called: the context may have become the process's
	k.path, k.cfg.Command = k.cfg.Command.Path, nil // the rest has served
	k.proc = proc
	k.phase = machine.Up
	k.writer = &writer{
		out: proc.Stdin(), pressed: k.pressed,
		failed: func() { k.cfg.Router(nil, machine.Unwritable{}) },
		taken:  func(n int64) { k.cfg.Router(nil, machine.Taken{Bytes: n}) },
	}
	k.up.Store(true) // from here on the writer is read without the lock
	afterExit, onStderr := k.cfg.Exec.Go, k.cfg.Exec.Go
	if a, ok := proc.(announcer); ok {
		afterExit, onStderr = a.AfterExit, a.OnStderr
	}
	k.outputs = 1
	if proc.Stderr() != nil {
		k.outputs = 2
		k.inStderr.Store(true) // the watch waits in the pipe, too
		onStderr(k.pumpStderr)
	}
	k.cfg.Router(nil, machine.Connected{Gen: k.cfg.Gen}) // before what it writes
	newPump(k).start()
	afterExit(k.awaitExit)
	k.mu.Unlock()
	k.advance()            // a close that came during the launch
	k.cfg.Self(launched{}) // whose stage has its time
	k.moved()
}

// errNoReturn is the reason of a launch whose lease or spawner has ended the goroutine, and of what a
// process leaves behind whose methods did.
var errNoReturn = errors.New("it ended its goroutine instead of returning (runtime.Goexit does that, and so does FailNow of a test)")

// begin gets the lease and starts the process, or ends the link. It ends it, too, if the user's
// code ends the goroutine.
func (k *Link) begin(ctx context.Context) (proc session.Process) {
	var err error = &session.LeaseError{SessionID: k.cfg.SessionID, Err: errNoReturn}
	defer func() {
		if err != nil {
			k.end(func() { k.err = err })
		}
	}()
	if err = k.hold(ctx, k.cfg.SessionID); err != nil {
		return nil
	}
	err = startError(*k.cfg.Command, errNoReturn)
	if proc, err = userproc.Spawn(ctx, k.cfg.Spawner, *k.cfg.Command, k.Giveup); err != nil {
		err = startError(*k.cfg.Command, err)
		return nil
	}
	return proc
}

func startError(c session.Command, err error) error {
	var start *session.StartError
	if errors.As(err, &start) {
		return err
	}
	return &session.StartError{Path: c.Path, Dir: c.Dir, Err: err}
}

// awaitExit sees the process end, lets its output drain, and then makes sure
// that nothing of its tree is left.
func (k *Link) awaitExit() {
	over := false
	defer func() {
		if !over { // a method of the user's process has ended the goroutine
			k.end(func() { k.leftover = &session.LeftoverError{Err: errNoReturn} })
		}
	}()
	k.seeExit()
	over = true
}

func (k *Link) seeExit() {
	if k.cfg.Exec.Await(k.life, k.proc.Exited()) != nil {
		return // given up
	}
	k.writer.fail(errExited)
	k.mu.Lock()
	if k.phase != machine.Up {
		k.mu.Unlock()
		return // given up
	}
	k.phase = machine.Exited
	k.up.Store(false)
	k.mu.Unlock()
	k.pressed() // the rest of the pipe is read without regard to the credit
	k.moved()

	k.awaitOutput(k.cfg.Graces.Output)
	k.finish(k.sweep())
}

// finish releases a process that has exited and was swept.
func (k *Link) finish(leftover error) {
	// Other holders of the pipes are gone now; a process that cannot be swept must not
	// hold the session either.
	if !k.awaitOutput(k.cfg.Graces.Output) {
		if held := k.heldOutput(); leftover == nil && held != nil {
			leftover = &session.LeftoverError{Err: held}
		}
		k.stopRead(errExited)
		k.proc.CloseOutput()
		k.awaitOutput(k.cfg.Graces.Output) // the user's Stderr may block
	}
	status, err := k.proc.Reap()
	_ = k.proc.Stdin().Close()
	k.end(func() {
		k.status, k.leftover = status, leftover
		if k.leftover == nil && err != nil {
			k.leftover = &session.LeftoverError{Err: err}
		}
	})
}

// heldOutput is an error if a process still holds the other end of an output. A pump
// that waits elsewhere, for the consumer or in the user's callback, is not a sign of
// one.
func (k *Link) heldOutput() error {
	stdout, stderr := true, true
	if h, ok := k.proc.(holder); ok {
		stdout, stderr = h.OutputHeld()
	}
	switch {
	case stdout && k.inStdout.Load():
		return session.ErrStdoutHeld
	case stderr && k.inStderr.Load():
		return session.ErrStderrHeld
	}
	return nil
}

func (k *Link) sweep() error {
	limit := &session.TimeoutError{What: "sweep of the agent's process tree", Limit: k.cfg.Graces.Sweep}
	ctx, cancel := kernel.WithTimeout(context.Background(), k.cfg.Clock, limit)
	defer cancel()
	_ = k.proc.Kill() // the group, before the leader is reaped
	left, err := k.proc.Sweep(ctx)
	if err != nil || len(left) > 0 {
		return &session.LeftoverError{Processes: left, Err: err}
	}
	return nil
}

// end ends the link. note writes down how, under mu.
func (k *Link) end(note func()) {
	k.giveBack() // before another process of the session asks
	k.mu.Lock()
	note()
	k.phase = machine.Gone
	k.up.Store(false)
	if k.unattended != nil {
		k.unattended.Stop()
	}
	k.mu.Unlock()
	k.cfg.Router(nil, machine.Disconnected{})
	k.cfg.Router(nil, machine.OutputEnded{})
	k.cancel(errExited)
	k.stopRead(errExited)
	k.moved()
}

// awaitOutput waits until the pumps have seen the end of both outputs, at most
// d.
func (k *Link) awaitOutput(d time.Duration) bool {
	ctx, cancel := kernel.WithTimeout(context.Background(), k.cfg.Clock, &session.TimeoutError{What: "end of output", Limit: d})
	defer cancel()
	done := make(chan struct{})
	k.mu.Lock()
	if k.outputs == 0 {
		close(done)
	} else {
		k.drained = append(k.drained, done)
	}
	k.mu.Unlock()
	return k.cfg.Exec.Await(ctx, done) == nil
}

func (k *Link) outputEnded() {
	k.mu.Lock()
	k.outputs--
	if k.outputs == 0 {
		for _, ch := range k.drained {
			close(ch)
		}
		k.drained = nil
	}
	k.mu.Unlock()
}

// unkillable ends a link whose process did not end when it was killed. The
// sweep may still have ended it, which finds it by another way; else it says
// so, and touches the process no more.
func (k *Link) unkillable() {
	k.writer.fail(errExited)
	swept := k.sweep()
	select {
	case <-k.proc.Exited():
		k.finish(swept)
		return
	default:
	}
	k.proc.CloseOutput()
	left := session.ProcInfo{PID: k.proc.PID(), Command: k.path}
	k.end(func() {
		k.status = session.ExitStatus{Code: -1}
		k.leftover = &session.LeftoverError{Processes: []session.ProcInfo{left}, Err: errors.Join(errUnkillable, swept)}
	})
}

var errUnkillable = errors.New("the agent did not end when it was killed")

// Giveup ends the process at once for a reason that the session will report.
func (k *Link) Giveup(reason error) {
	k.mu.Lock()
	if k.err == nil {
		k.err = reason
	}
	proc, up := k.proc, k.phase == machine.Up
	if up {
		k.signal = "SIGKILL"
	}
	k.mu.Unlock()
	if up {
		_ = proc.Kill()
	}
	k.moved()
}

// Done is closed when the link has ended.
func (k *Link) Done() <-chan struct{} { return k.life.Done() }
