package runtime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Runtime runs sessions. It is safe for concurrent use. An idle runtime has no
// goroutine.
type Runtime struct {
	cfg       Config
	sys       *kernel.System
	host      actors.Host
	fleet     kernel.Address[toFleet]
	bus       *bus
	spawner   session.Spawner
	private   *privateDirs
	breaks    *breakers
	admission *admission
	keeper    *keeper // nil if sessions are kept without a limit
	began     time.Time
	counts    counts
	history   past
	usual     *session.Supervisors // of sessions with the defaults

	mu       sync.Mutex
	sessions map[string]*Session
	accounts map[string]*Account
	// exclusive has the last caller that asked for each name that is taken.
	exclusive map[string]*kernel.Promise[struct{}]
	waiting   []*Session    // registered, not started
	past      []SessionTree // the last sessions that have ended, oldest first
	closing   bool
	parent    []string // environment that the last session was given
	environ   []string // environment of the last session's agent
}

// New returns a runtime without sessions.
func New(cfg Config) (*Runtime, error) {
	seams := kernel.SeamsOf(cfg.Clock)
	if seams.Logger == nil && cfg.Logger != nil && cfg.Logger.Enabled(context.Background(), slog.LevelError) {
		seams.Logger = slog.New(levelFloor{cfg.Logger.Handler()})
	}
	if err := errors.Join(slices.Concat(session.CheckPolicy("Supervisor", cfg.Supervisor), cfg.Breakers.validate(), cfg.Admission.validate())...); err != nil {
		return nil, err
	}
	if err := errors.Join(cfg.checkGuard(), cfg.checkKeep()); err != nil {
		return nil, err
	}
	cfg.Supervisor = cfg.Supervisor.Or(actorPolicy())
	rt := &Runtime{
		cfg: cfg, sessions: make(map[string]*Session), accounts: make(map[string]*Account),
		exclusive: make(map[string]*kernel.Promise[struct{}]),
	}
	rt.usual = rt.supervisors(session.Supervisors{})
	crashed := seams.OnCrash
	seams.OnCrash = func(c kernel.Crash) {
		if crashed != nil {
			crashed(c)
		}
		rt.actorFailed(c)
	}
	rt.sys = kernel.NewSystem(seams)
	rt.began = rt.sys.Clock().Now()
	rt.host.System, rt.host.Budget = rt.sys, user.NewBudget(cfg.LineBudget)
	rt.bus = &bus{exec: rt.sys.Executor(), broke: func(err error) {
		rt.emit(&session.CallbackFailed{Kind: "event", Name: "EventsWhere", Err: err})
	}}
	if logger := cfg.Logger; logger != nil {
		rt.bus.logTo(func() *slog.Logger { return logger }, math.MinInt)
	} else {
		rt.bus.logTo(slog.Default, slog.LevelWarn) // a bug in a callback must not be silent
	}
	rt.admission = newAdmission(cfg.Admission, rt.sys)
	rt.admission.queue.failed = rt.unmeasured
	rt.breaks = newBreakers(cfg.Breakers, rt.sys, rt.emit)
	if rt.spawner = seams.Spawner; rt.spawner == nil {
		rt.spawner = transport.NewProcessSpawner(transport.ProcessConfig{
			Clock: rt.sys.Clock(), Exec: rt.sys.Executor(), Rand: rt.sys.Rand(), KeepProcess: cfg.KeepProcess,
			TempDir: cfg.TempDir, StateDir: cfg.StateDir, Guard: cfg.Guard, HostSwept: rt.hostSwept,
		})
	}
	rt.private = newPrivateDirs(cfg, rt.sys.Rand())
	if err := kernel.SpawnRoot(rt.sys, "fleet", &rt.fleet, newFleet(rt)); err != nil {
		return nil, err
	}
	rt.keeper = newKeeper(cfg, rt.sys, func(problem string) { rt.emit(&session.WarningIssued{Problem: problem}) }, rt.inSession)
	if rt.keeper != nil {
		rt.keeper.sweepSoon()
	}
	if processes, ok := rt.spawner.(*transport.ProcessSpawner); ok && cfg.StateDir != "" { // not only when the first agent starts
		rt.sys.Executor().Go(func() { _ = processes.SweepHosts(context.Background()) })
	}
	return rt, nil
}

// StateDir is Config.StateDir.
func (rt *Runtime) StateDir() string { return rt.cfg.StateDir }

// emit reports an event of the runtime itself.
func (rt *Runtime) emit(e session.Event) {
	rt.bus.publish(session.EventRecord{At: rt.sys.Clock().Now(), Event: e})
}

// unmeasured reports that the state of the machine is not known. Locks are held, so it does
// that on another task.
func (rt *Runtime) unmeasured(err error) {
	problem := "the machine counts as full until Admission.Measure returns: " + err.Error()
	rt.sys.Executor().Go(func() { rt.emit(&session.WarningIssued{Problem: problem}) })
}

// hostSwept reports what an earlier program had left.
func (rt *Runtime) hostSwept(dir string, agents int, err error) {
	problem := fmt.Sprintf("a program that died had left %s with %s: removed", dir, shown.Count(agents, "agent"))
	if err != nil {
		problem = fmt.Sprintf("a program that died has left %s with %s, and not all could be removed: %v", dir, shown.Count(agents, "agent"), err)
	}
	rt.emit(&session.WarningIssued{Problem: problem})
}

// unstarted hands the registered sessions to the fleet.
func (rt *Runtime) unstarted() []*Session {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	waiting := rt.waiting
	rt.waiting = nil
	return waiting
}

// Open starts a session and waits until its agent is initialized. If the start fails,
// Open leaves nothing of the session behind. If ctx ends first, the agent is killed,
// and the error is a *[session.UnfinishedError]; Open returns when the session has
// ended, at most 30 s after the end of ctx.
func (rt *Runtime) Open(ctx context.Context, spec Spec) (*Session, error) {
	s, err := rt.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := s.AwaitReady(ctx); err != nil {
		limit := &session.TimeoutError{What: "close session " + s.id, Limit: openTimeout}
		over, cancel := kernel.WithTimeout(context.WithoutCancel(ctx), rt.sys.Clock(), limit)
		defer cancel()
		return nil, errors.Join(err, s.Kill(over))
	}
	return s, nil
}

// openTimeout bounds the end of a session whose opening was given up.
const openTimeout = 30 * time.Second

// Start starts a session without waiting for its agent. With Config.Admission it waits for
// a place, at most until ctx ends, or until the session, which [Runtime.Sessions] has already, is
// closed; then the error is [session.ErrClosed]. Call [Session.AwaitReady] next, and
// [Session.Kill] if that fails.
func (rt *Runtime) Start(ctx context.Context, spec Spec) (*Session, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open session %q: %w", spec.ID, context.Cause(ctx))
	}
	s, err := rt.newSession(ctx, spec)
	if err != nil {
		return nil, err
	}
	place, err := rt.admission.enter(ctx, &s.wait)
	if err != nil {
		s.core.Fail(err) // there is no actor yet
		s.core.Retire()
		return nil, fmt.Errorf("open session %q: %w", s.id, err)
	}
	rt.enqueue(s, place)
	rt.fleet.Tell(nil, sessionsChanged{})
	return s, nil
}

// enqueue hands an admitted session to the fleet.
func (rt *Runtime) enqueue(s *Session, place *ticket) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s.place = place
	rt.waiting = append(rt.waiting, s)
}

func (rt *Runtime) register(s *Session) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closing {
		return session.ErrShutdown
	}
	if _, taken := rt.sessions[s.id]; taken {
		return fmt.Errorf("session id %q is taken in this runtime: choose another or leave it empty", s.id)
	}
	rt.sessions[s.id] = s
	return nil
}

// share returns *last if it is equal to now, so that sessions with the same environment
// share one slice.
func (rt *Runtime) share(last *[]string, now []string) []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if !slices.Equal(*last, now) {
		*last = now
	}
	return *last
}

func (rt *Runtime) remove(s *Session, last SessionTree) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.bury(last)
	if s.place != nil {
		rt.admission.leave(s.place)
		s.place = nil
	}
	if s.starts.place != nil {
		rt.admission.retire(s.starts.place)
	}
	if rt.sessions[s.id] == s {
		delete(rt.sessions, s.id)
	}
	if len(rt.sessions) == 0 {
		rt.sessions = make(map[string]*Session) // a map never gives memory back
	}
}

// Sessions returns the sessions that have not ended, sorted by id.
func (rt *Runtime) Sessions() []*Session {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	all := make([]*Session, 0, len(rt.sessions))
	for _, s := range rt.sessions {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Session) int { return strings.Compare(a.id, b.id) })
	return all
}

// Events yields the events of all sessions, from the start of the loop until ctx ends
// or the runtime is shut down. If the loop falls behind by more than 1,024 events, the
// oldest are dropped.
func (rt *Runtime) Events(ctx context.Context) iter.Seq[session.EventRecord] {
	return rt.bus.read(ctx, "", nil, func() bool { return false })
}

// EventsWhere is [Runtime.Events] with the events for which want returns true. Those that are left out
// wake no goroutine, and no event is lost because of them. want is called where the event happens:
// it must be fast, must not block, and must not call the runtime. If it panics, the loop ends after
// the events so far, and a [session.CallbackFailed] event of the runtime says so.
func (rt *Runtime) EventsWhere(ctx context.Context, want func(*session.EventRecord) bool) iter.Seq[session.EventRecord] {
	return rt.bus.read(ctx, "", want, func() bool { return false })
}

// Shutdown closes every session and stops the runtime. If ctx ends first, the remaining
// processes are killed, and the error says which sessions did not stop in time.
// Shutdown may be called more than once.
func (rt *Runtime) Shutdown(ctx context.Context) error {
	rt.stopIntake()
	all := rt.Sessions()
	for _, s := range all {
		s.core.Close()
	}
	for _, s := range all {
		if err := rt.sys.Executor().Await(ctx, s.Done()); err != nil {
			err = rt.unstopped(err)
			for _, s := range rt.Sessions() {
				s.core.Link().Expire()
			}
			return err
		}
	}
	if err := kernel.StopAndWait(ctx, &rt.fleet); err != nil {
		return err
	}
	if err := rt.private.removeAll(); err != nil {
		rt.emit(&session.WarningIssued{Problem: fmt.Sprintf("private configuration directories are left: %v", err)})
	}
	rt.bus.end()
	if log := rt.bus.log; log != nil { // the last lines are the ones that are missed
		return rt.sys.Executor().Await(ctx, log.drained())
	}
	return nil
}

func (rt *Runtime) stopIntake() {
	rt.endHistory()
	rt.admission.close()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.closing = true
}

func (rt *Runtime) unstopped(cause error) error {
	var ids []string
	for _, s := range rt.Sessions() {
		ids = append(ids, s.id+" ("+s.State().String()+")")
	}
	return fmt.Errorf("%s %s not ended: %s: %w", shown.Count(len(ids), "session"), shown.Verb(len(ids), "has", "have"), strings.Join(ids, ", "), cause)
}

// levelFloor keeps the actor library's chatter below Warn out of the log.
type levelFloor struct{ slog.Handler }

// WithAttrs implements [slog.Handler].
func (h levelFloor) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelFloor{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h levelFloor) WithGroup(name string) slog.Handler {
	return levelFloor{h.Handler.WithGroup(name)}
}

// Enabled implements [slog.Handler].
func (h levelFloor) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
