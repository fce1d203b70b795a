package transport

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Phase is how far the life of an agent process has come.
type Phase int

// Phases, in order. A link never goes back.
const (
	Idle      Phase = iota // not launched
	Launching              // the spawner is at work
	Up                     // the process runs
	Exited                 // the process has ended; output is drained, the tree swept
	Ended                  // nothing is left, or it is known what is
)

func (p Phase) String() string {
	return [...]string{"idle", "launching", "up", "exited", "ended"}[p]
}

// LinkConfig is what a link needs.
type LinkConfig struct {
	Clock   kernel.Clock
	Exec    kernel.Executor
	Spawner Spawner
	Command Command
	Graces  session.Graces
	MaxLine int // bytes; 0: 64 MiB
	Ledger  *ledger.Ledger
	// Moved tells the transport actor, Frames the router. Both only send.
	Moved func()
	// Frames is given the worker of the reader, which runs it then, or nil.
	Frames func(*kernel.Worker)
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
	// stopLaunch says that the launch is no longer wanted; nil when there is none.
	stopLaunch context.CancelCauseFunc

	stderr tail
	noise  tail

	// inStdout and inStderr say that a pump waits in its pipe, and nowhere else.
	inStdout, inStderr atomic.Bool

	mu       sync.Mutex
	phase    Phase
	stage    Stage
	wanted   Stage
	stageEnd time.Time
	why      string // the ladder was wanted, if not for a close
	late     bool   // it was killed because it had not ended in time
	signal   string // the last one that was sent before the process had ended; "": none
	proc     Process
	writer   *writer
	outputs  int // pumps still at work
	drained  []chan struct{}
	status   session.ExitStatus
	err      error // of the launch, or what the reader could not bear
	leftover error
}

// NewLink returns a link that is idle.
func NewLink(cfg LinkConfig) *Link {
	cfg.Graces = cfg.Graces.WithDefaults()
	k := &Link{cfg: cfg, stderr: tail{max: 16 << 10}, noise: tail{max: 2 << 10}}
	k.life, k.cancel = context.WithCancelCause(context.Background())
	k.reading, k.stopRead = context.WithCancelCause(context.Background())
	return k
}

// Status is what can be said of a link at one instant.
type Status struct {
	Phase    Phase
	Stage    Stage
	PID      int
	Exit     session.ExitStatus // from phase Exited on: valid in Ended
	Late     bool               // it was killed because a grace, or whoever waited for it, had run out
	Err      error              // why it could not start, or had to be given up
	Leftover error              // what did not stop
	Signal   string             // what the ladder, or a Giveup, sent the process while it ran; "": nothing
	Why      string             // the ladder was begun by the link itself; "": it was not
	Stderr   string             // tail
	Noise    string             // tail of what was no frame
}

// Status describes the link as it is now.
func (k *Link) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Status{
		Phase: k.phase, Stage: k.stage, Exit: k.status, Err: k.err, Leftover: k.leftover,
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
	if k.phase != Idle {
		return
	}
	k.phase = Launching
	ctx, cancel := context.WithCancelCause(context.Background())
	k.stopLaunch = cancel
	k.cfg.Exec.Go(func() { k.launch(ctx) })
}

func (k *Link) launch(ctx context.Context) {
	proc, err := k.spawn(ctx)
	if err != nil {
		k.end(func() { k.err = startError(k.cfg.Command, err) })
		return
	}
	k.mu.Lock()
	k.stopLaunch = nil                                // nor is it called: the context may have become the process's
	k.cfg.Command = Command{Path: k.cfg.Command.Path} // the rest has served
	k.proc = proc
	k.phase = Up
	k.writer = &writer{
		exec: k.cfg.Exec, out: proc.Stdin(),
		pressed: k.cfg.Ledger.WakeReader,
		failed:  k.writeFailed,
		taken: func(n int64) {
			k.cfg.Ledger.Taken(n)
			k.cfg.Frames(nil) // what waited for room may be on its way
		},
	}
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
	k.cfg.Ledger.SetOutlet(k.writer)
	newPump(k).start()
	afterExit(k.awaitExit)
	k.mu.Unlock()
	k.advance()       // a close that came during the launch
	k.cfg.Frames(nil) // there is somebody to write to
	k.cfg.Moved()
}

// spawn guards against a spawner of the user's that panics.
func (k *Link) spawn(ctx context.Context) (p Process, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &session.PanicError{Value: r, Message: "Spawn", Stack: debug.Stack()}
		}
	}()
	p, err = k.cfg.Spawner.Spawn(ctx, k.cfg.Command)
	if err == nil && p == nil {
		err = errors.New("the spawner returned neither a process nor an error")
	}
	return p, err
}

func startError(c Command, err error) error {
	var start *session.StartError
	if errors.As(err, &start) {
		return err
	}
	return &session.StartError{Path: c.Path, Dir: c.Dir, Err: err}
}

// writeFailed ends an agent that will never hear anything again: at once if it
// waits for the decision of a gate.
func (k *Link) writeFailed(error) {
	if k.cfg.Ledger.Unanswered() > 0 {
		k.wantBecause(Killed, "its stdin could not be written")
	} else {
		k.wantBecause(ClosedStdin, "its stdin could not be written")
	}
	k.cfg.Moved()
}

// awaitExit sees the process end, lets its output drain, and then makes sure
// that nothing of its tree is left.
func (k *Link) awaitExit() {
	if k.cfg.Exec.Await(k.life, k.proc.Exited()) != nil {
		return // given up
	}
	k.writer.fail(errExited)
	k.mu.Lock()
	if k.phase != Up {
		k.mu.Unlock()
		return // given up
	}
	k.phase = Exited
	k.mu.Unlock()
	k.cfg.Ledger.WakeReader() // what is left in the pipe is read whatever the credit
	k.cfg.Moved()

	k.awaitOutput(k.cfg.Graces.Drain)
	k.finish(k.sweep())
}

// finish releases a process that has exited and was swept.
func (k *Link) finish(leftover error) {
	// Whoever still held the pipes is gone now; what cannot be swept must not
	// hold the session either.
	if !k.awaitOutput(k.cfg.Graces.Drain) {
		if held := k.heldOutput(); leftover == nil && held != nil {
			leftover = &session.LeftoverError{Err: held}
		}
		k.stopRead(errExited)
		k.proc.CloseOutput()
		k.awaitOutput(k.cfg.Graces.Drain) // a function of the user's may hold the pump of stderr for ever
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

// heldOutput is an error if a process still holds the other end of an output.
// A pump that waits elsewhere, for the consumer or in the user's callback, is no
// sign of one.
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

func (k *Link) end(settle func()) {
	k.mu.Lock()
	settle()
	k.phase = Ended
	k.mu.Unlock()
	k.cfg.Ledger.SetOutlet(nil)
	k.cfg.Ledger.EndOfInput()
	k.cancel(errExited)
	k.stopRead(errExited)
	k.cfg.Frames(nil)
	k.cfg.Moved()
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
	left := session.ProcInfo{PID: k.proc.PID(), Command: k.cfg.Command.Path}
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
	proc, up := k.proc, k.phase == Up
	if up {
		k.signal = "SIGKILL"
	}
	k.mu.Unlock()
	if up {
		_ = proc.Kill()
	}
	k.cfg.Moved()
}

// Done is closed when the link has ended.
func (k *Link) Done() <-chan struct{} { return k.life.Done() }
