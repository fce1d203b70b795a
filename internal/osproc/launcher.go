package osproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Config holds what all processes of a Launcher share. The zero value works.
type Config struct {
	Clock    kernel.Clock    // default: the wall clock
	Executor kernel.Executor // default: goroutines
	Rand     kernel.Rand     // names markers and temporary directories; default: seeded by the system
	// KeepProcess is asked about each process that a sweep found outside the
	// agent's own process group; true spares it and its descendants. It is for
	// daemons that an agent's command started and the user shares (tmux, gradle,
	// adb). It must be quick, as all sweeps wait for it. A panic counts as
	// false. Default: nothing is spared. Members of the group never are.
	KeepProcess func(ProcInfo) bool
	TempDir     string       // parent of the host's directory for temporary files; default: os.TempDir()
	Logger      *slog.Logger // default: none
	// StateDir is where launches are recorded, for a later host with the same StateDir
	// to end their remaining processes. It is made if it is missing. Default: none, no
	// record.
	StateDir string
	// Guard is the command of a program that calls [Guard]. It runs while processes of the
	// launcher live, in its own process session, and sweeps when the host dies; it needs a
	// StateDir. Default: none.
	Guard []string
	// HostSwept is called for each host that died. Default: nil.
	HostSwept func(Remains)
}

// Launcher starts processes. It is safe for concurrent use, and holds no
// goroutine, thread or descriptor while none of its processes lives.
type Launcher struct {
	cfg     Config
	markers []string // the host's own, as NAME=1: it may run under another launch
	exits   exitWatcher
	sweeper sweeper
	first   sync.Once
	temp    *HostDir // has the temporary files
	state   *HostDir // has the records of launches; nil without records
	guard   *guard   // or nil

	hosts      sync.Once
	hostsSwept *kernel.Promise[struct{}]
	noPidfd    bool // do as on a kernel without pidfd; set by tests

	mu      sync.Mutex
	queue   []*spawn         // waiting for the launching thread
	live    int              // queued, or started and not reaped
	leaders map[int]*Process // started and not reaped, by pid
	running bool             // the launching thread is up
	wake    chan struct{}    // the launching thread waits on it; nil while it does not wait
}

// NewLauncher returns a launcher; it starts nothing.
func NewLauncher(cfg Config) *Launcher {
	if cfg.Clock == nil {
		cfg.Clock = kernel.NewClock(nil)
	}
	if cfg.Executor == nil {
		cfg.Executor = kernel.GoExecutor{}
	}
	if cfg.Rand == nil {
		cfg.Rand = kernel.NewRand(nil)
	}
	if cfg.TempDir == "" {
		cfg.TempDir = os.TempDir()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Launcher{
		cfg: cfg, markers: hostMarkers(os.Environ()), leaders: make(map[int]*Process),
		temp: NewHostDir(cfg.TempDir, cfg.Rand), hostsSwept: kernel.NewPromise[struct{}](),
	}
	switch {
	case cfg.StateDir == "":
	case filepath.Clean(cfg.StateDir) == filepath.Clean(cfg.TempDir):
		l.state = l.temp
	default:
		l.state = NewHostDir(cfg.StateDir, cfg.Rand)
	}
	if len(cfg.Guard) > 0 && cfg.StateDir != "" {
		l.guard = &guard{argv: cfg.Guard, cfg: cfg}
	}
	l.exits.init(cfg.Clock, cfg.Executor)
	l.sweeper.init(cfg, newTable(l.leads, l.carried))
	return l
}

// spawn is one order to the launching thread. done, abandoned and err are
// guarded by the launcher's mutex until done is closed.
type spawn struct {
	*launch
	done      chan struct{}
	settled   bool
	abandoned bool // the caller has given up: the thread ends the process that it made
	err       error
}

// Start launches c. It returns a *StartError on failure, and then nothing is
// left behind. ctx bounds the start only: when it ends first, a process that
// comes up all the same is killed, swept and reaped without the caller.
func (l *Launcher) Start(ctx context.Context, c Command) (*Process, error) {
	if ctx.Err() != nil {
		return nil, &StartError{Op: "start", Path: c.Path, Dir: c.Dir, Argv: MaskArgs(c.Args), Err: context.Cause(ctx)}
	}
	if err := l.SweepHosts(ctx); err != nil {
		return nil, &StartError{Op: "start", Path: c.Path, Dir: c.Dir, Argv: MaskArgs(c.Args), Err: err}
	}
	if l.guard != nil {
		if err := l.guard.hold(ctx); err != nil {
			return nil, &StartError{Op: "guard", Path: c.Path, Dir: c.Dir, Argv: MaskArgs(c.Args), Err: err}
		}
	}
	n, err := l.prepare(c)
	if err != nil {
		if l.guard != nil {
			l.guard.drop()
		}
		return nil, err
	}
	n.proc.guarded = l.guard != nil
	fail := func(op string, err error) (*Process, error) {
		head := n.argv[:len(n.argv)-len(c.Args)]
		return nil, &StartError{Op: op, Path: n.path, Dir: c.Dir, Argv: MaskArgs(slices.Concat(head, c.Args)), Err: err}
	}
	s := &spawn{launch: n, done: make(chan struct{})}
	l.enqueue(s)
	if err := l.cfg.Executor.Await(ctx, s.done); err != nil && (l.withdraw(s) || l.hangs(s) && l.abandon(s)) {
		return fail("start", err)
	}
	if s.err != nil {
		n.release()
		l.drop()
		return fail("spawn", explainSpawn(s.err, n))
	}
	return n.proc, nil
}

// explainSpawn adds what only the launch knows.
func explainSpawn(err error, n *launch) error {
	if !errors.Is(err, syscall.E2BIG) {
		return err
	}
	longest := func(texts []string) (int, int) {
		i, size := 0, 0
		for j, text := range texts {
			if len(text) > size {
				i, size = j, len(text)
			}
		}
		return i, size
	}
	arg, size := longest(n.argv)
	variable, value := longest(n.env)
	if value > size {
		name, _, _ := strings.Cut(n.env[variable], "=")
		return fmt.Errorf("%w (the longest variable is %s, %d bytes)", err, name, value)
	}
	return fmt.Errorf("%w (the longest argument is number %d, %d bytes)", err, arg, size)
}

// enqueue hands s to the launching thread, which it brings up if need be.
func (l *Launcher) enqueue(s *spawn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live++
	l.queue = append(l.queue, s)
	if !l.running {
		l.running = true
		l.cfg.Executor.Go(l.thread)
		return
	}
	l.wakeLocked()
}

// withdraw takes s out of the queue. It reports false when the thread has
// begun it.
func (l *Launcher) withdraw(s *spawn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, s)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	s.release()
	l.dropLocked()
	return true
}

// spawnLimit is how long a spawn that was begun is waited for once its caller has given
// up: it takes milliseconds, unless the program lies on a file server that is gone.
const spawnLimit = 5 * time.Second

// hangs waits for a spawn that was begun, so that the caller gets the process and can
// end it in order.
func (l *Launcher) hangs(s *spawn) bool {
	ctx, cancel := kernel.WithTimeout(context.Background(), l.cfg.Clock, &session.TimeoutError{What: "spawn", Limit: spawnLimit})
	defer cancel()
	return l.cfg.Executor.Await(ctx, s.done) != nil
}

// abandon gives up waiting for s. It reports false when s has been settled
// meanwhile, so that its outcome is to be used after all.
func (l *Launcher) abandon(s *spawn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.abandoned = !s.settled
	return s.abandoned
}

// thread runs every spawn. It stays locked to its operating system thread as
// long as a process lives: the kernel sends Pdeathsig when the thread that
// forked ends, and Go ends a thread with the locked goroutine of any library.
func (l *Launcher) thread() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.first.Do(l.sweeper.remember)
	for s := l.next(); s != nil; s = l.next() {
		err := l.execute(s)
		s.closeChild()
		l.spawned(s, err)
	}
}

// textBusy is how long a program's file may be open for writing. Each child has the open files of this program
// from its fork to its exec, so that a script that was just written cannot be started meanwhile
// (https://go.dev/issue/22315).
const textBusy = 100 * time.Millisecond

// execute starts the process, again if its file is open for writing.
func (l *Launcher) execute(s *spawn) error {
	for pause := time.Millisecond; ; pause *= 2 {
		err := s.proc.spawn(s.launch)
		if !errors.Is(err, syscall.ETXTBSY) || pause > textBusy {
			return err
		}
		over := make(chan struct{})
		l.cfg.Clock.AfterFunc(pause, func() { close(over) })
		_ = l.cfg.Executor.Await(context.Background(), over)
	}
}

// next waits for an order; nil means that no process is left.
func (l *Launcher) next() *spawn {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 {
			s := l.queue[0]
			l.queue = slices.Delete(l.queue, 0, 1)
			l.mu.Unlock()
			return s
		}
		if l.live == 0 {
			l.running = false
			l.mu.Unlock()
			return nil
		}
		wake := make(chan struct{})
		l.wake = wake
		l.mu.Unlock()
		_ = l.cfg.Executor.Await(context.Background(), wake)
	}
}

// spawned takes note of how a spawn ended.
func (l *Launcher) spawned(s *spawn, err error) {
	if err == nil {
		l.exits.watch(s.proc)
	}
	l.mu.Lock()
	s.settled, s.err = true, err
	if err == nil {
		l.leaders[s.proc.pid] = s.proc
	}
	abandoned := s.abandoned
	close(s.done)
	l.mu.Unlock()
	if !abandoned {
		return
	}
	if err != nil {
		s.release()
		l.drop()
		return
	}
	l.cfg.Executor.Go(func() { l.dispose(s.proc) })
}

// dispose ends a process whose starter went away.
func (l *Launcher) dispose(p *Process) {
	ctx := context.Background()
	_ = p.Kill()
	_ = l.cfg.Executor.Await(ctx, p.exited)
	if _, err := p.Sweep(ctx); err != nil {
		l.cfg.Logger.Warn("sweep of an abandoned launch", "pid", p.pid, "marker", p.marker, "err", err)
	}
	if _, err := p.Reap(); err != nil {
		l.cfg.Logger.Warn("reap of an abandoned launch", "pid", p.pid, "err", err)
	}
}

// reaped ends a process's life in the launcher. Its pid may already be the
// next leader's.
func (l *Launcher) reaped(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaders[p.pid] == p {
		delete(l.leaders, p.pid)
	}
	l.dropLocked()
}

// leads reports whether pid is a leader that is still to be reaped.
func (l *Launcher) leads(pid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaders[pid] != nil
}

// carried returns the names of the markers that a leader was started with; nil if pid is
// not a leader that is still to be reaped.
func (l *Launcher) carried(pid int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.leaders[pid]; p != nil {
		return p.carries
	}
	return nil
}

// drop ends one launch's share of the launching thread.
func (l *Launcher) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked()
}

func (l *Launcher) dropLocked() {
	l.live--
	if l.live == 0 {
		l.wakeLocked()
	}
}

func (l *Launcher) wakeLocked() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// SweepMarker sweeps an old launch by its marker (see [Process.Marker]), for a
// host that resumes sessions whose first host is gone. It is Process.Sweep for
// everything that carries the marker; there is no group to signal any more.
func (l *Launcher) SweepMarker(ctx context.Context, marker string) ([]ProcInfo, error) {
	if !isMarker(marker) {
		return nil, fmt.Errorf("osproc: %q is not a launch marker", marker)
	}
	return l.sweeper.sweep(ctx, marker, nil)
}
