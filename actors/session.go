package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// session is one incarnation of the session actor.
type sessionActor struct {
	core *Core
	driver[message.ToSession]
	watching bool // a timer looks after the consumer
	stopping bool // the children were told to stop
	finished bool // the children have stopped
}

// NewSession returns a behaviour for the session of core. After a crash the
// next one goes on with the same core.
func NewSession(k *Core) (kernel.Behavior[message.ToSession], error) {
	s := &sessionActor{core: k}
	sup, err := supervisor.New(supervisor.Spec{
		Name: k.cfg.ID, Strategy: supervisor.RestForOne,
		Intensity: k.cfg.ActorIntensity, Backoff: k.cfg.ActorBackoff,
		Children: []supervisor.Child{{Name: "transport"}, {Name: "router"}}, // callbacks with the first request
	}, k.cfg.System.Rand(), observe(k.cfg.Emit))
	if err != nil {
		return nil, err
	}
	s.driver = driver[message.ToSession]{
		sup: sup, spawn: s.spawnChild, ended: s.supervisorEnded,
		timer: func(t message.Timer) message.ToSession { return message.SupervisorTimer(t) },
	}
	return s, nil
}

// Start implements [kernel.Behavior].
func (s *sessionActor) Start(c *kernel.Context[message.ToSession]) error {
	k := s.core
	k.Ledger.FailAllTaken("the host could not decide")
	if k.State() == session.StateAdmitting {
		if err := s.enter(session.StateStarting, ""); err != nil {
			return err
		}
	}
	s.driver.start(c)
	if k.closeAsked && !k.linkClosing { // the timer of an incarnation before
		c.After(max(k.until.Sub(c.Now()), 0), message.CloseStepOver{Flush: k.flushing.begun})
	}
	return s.check(c)
}

// Handle implements [kernel.Behavior].
func (s *sessionActor) Handle(c *kernel.Context[message.ToSession], m message.ToSession) error {
	switch m := m.(type) {
	case message.LinkChanged, message.LedgerChanged, message.CloseWanted:
	case message.ConsumerOver:
		s.watching = false
	case message.CloseStepOver:
		if m.Flush == s.core.flushing.begun {
			s.core.until = time.Time{} // whatever the clock says
		}
	case message.SupervisorTimer:
		s.fire(c, message.Timer(m))
	case message.Describe:
		s.describeTree(m.Reply)
		return nil
	default:
		return fmt.Errorf("session: unexpected message %T", m)
	}
	return s.check(c)
}

// ChildDown implements [kernel.ChildObserver].
func (s *sessionActor) ChildDown(c *kernel.Context[message.ToSession], d kernel.Down) error {
	s.down(c, d, func(child string) {
		if child == "callbacks" {
			s.core.Ledger.FailAllTaken("the host could not decide")
		}
	})
	return s.check(c)
}

// Stop implements [kernel.Behavior].
func (s *sessionActor) Stop(*kernel.Context[message.ToSession]) {}

func (s *sessionActor) spawnChild(c *kernel.Context[message.ToSession], child, name string, _ int) (kernel.Located, error) {
	k := s.core
	switch child {
	case "transport":
		return spawnAt[message.ToSession, message.ToTransport](c, name, &transport.Actor{Link: k.Link, Changed: k.changed}, &k.transport)
	case "router":
		return spawnAt[message.ToSession, message.ToRouter](c, name, router.New(router.Config{
			Ledger: k.Ledger, Session: &k.session, Callbacks: &k.callback, Uncalled: &k.callbacks,
		}), &k.router)
	default:
		b, err := newCallbacks(k)
		if err != nil {
			return nil, err
		}
		return spawnAt[message.ToSession, message.ToCallbacks](c, name, b, &k.callbacks)
	}
}

// spawnAt spawns the next incarnation of a child, which goes on with the messages
// of the one before, but for one that two have died of.
func spawnAt[P, M any](c *kernel.Context[P], name string, b kernel.Behavior[M], at *kernel.Address[M]) (kernel.Located, error) {
	if at.Tries() > 1 {
		at.DropHead()
	}
	return at, kernel.Spawn(c, name, at, b)
}

// supervisorEnded is the end of the children: they were told to stop, or the
// supervisor gave up.
func (s *sessionActor) supervisorEnded(c *kernel.Context[message.ToSession], reason error) {
	s.finished = true
	var failure *supervisor.Failure
	if errors.As(reason, &failure) && !s.stopping {
		s.close(c, failure)
	}
}

// close begins the end of the session. The first reason stands.
func (s *sessionActor) close(c *kernel.Context[message.ToSession], reason error) {
	k := s.core
	if k.closeAsked {
		return
	}
	k.closeAsked, k.closeReason = true, reason
	orderly := reason == nil && k.Ledger.Initialized() != nil
	k.Ledger.Serve(orderly && k.cfg.Graces.Flush > 0)
	k.Ledger.BeginClosing(reason == nil)
	why := "closed by the user"
	if reason != nil {
		why = reason.Error()
	}
	_ = s.enter(session.StateClosing, why) // legal from every state that lives
	// A turn that runs would go on after the end of stdin, and so would its
	// tools; a background task that ends would start a turn. They are stopped
	// first.
	switch busy := k.Ledger.Busy(); {
	case !orderly:
		s.closeLink(reason != nil && busy)
	case !busy:
		s.flush(c)
	case !s.interrupt(c):
		s.closeLink(false)
	}
}

func (s *sessionActor) interrupt(c *kernel.Context[message.ToSession]) bool {
	k := s.core
	k.Ledger.Serve(false) // the turn ends without what it asked for
	request, err := k.cfg.Dialect.Encode(&protocol.InterruptRequest{CancelQueued: true})
	if err != nil {
		return false
	}
	if _, err := k.Ledger.OpenCall("interrupt", request, ledger.First()); err != nil {
		return false
	}
	k.router.Tell(nil, message.WorkReady{})
	k.until = c.Now().Add(k.cfg.InterruptGrace)
	c.After(k.cfg.InterruptGrace, message.CloseStepOver{})
	return true
}

// closeLink starts the close ladder, at its second step if terminate is set:
// then a turn is still running and must not see the end of stdin.
func (s *sessionActor) closeLink(terminate bool) {
	k := s.core
	k.linkClosing = true
	k.Ledger.Serve(false)
	stage := transport.ClosedStdin
	if terminate {
		stage = transport.Terminated
	}
	k.Link.Want(stage)
	k.transport.Tell(nil, message.LinkMoved{})
}

// check looks at the link and the ledger and draws the conclusions. It may run
// any number of times.
func (s *sessionActor) check(c *kernel.Context[message.ToSession]) error {
	k := s.core
	if why := cmp.Or(k.Ledger.Broken(), k.Ledger.GatesOff()); why != nil && k.closeReason == nil {
		k.Link.Want(transport.Killed) // before a tool can run
		s.close(c, why)
		k.closeReason = why // also of a session that was being closed
		k.transport.Tell(nil, message.LinkMoved{})
	}
	if k.closeWanted.Load() {
		s.close(c, nil)
	}
	if !k.callbacks.Live() && k.uncalled() {
		if err := s.want(c, "callbacks"); err != nil {
			return err
		}
	}
	link := k.Link.Status()
	switch {
	case k.State().Terminal():
		k.Ledger.Terminate(k.endReason(link))
		c.StopSelf()
		return nil
	case link.Phase == transport.Ended:
		return s.afterLink(c, link)
	case link.Err != nil && !k.closeAsked:
		s.close(c, link.Err)
	case k.Ledger.InitFailure() != nil && !k.closeAsked:
		s.close(c, initFailure(k.Ledger.InitFailure(), link))
	case k.closeAsked:
		s.checkClosing(c)
	case k.State() == session.StateStarting && link.Phase == transport.Up:
		return s.enter(session.StateInitializing, "")
	case k.State() == session.StateInitializing && k.Ledger.Initialized() != nil && !k.Ledger.SettingUp():
		if err := s.enter(session.StateReady, ""); err != nil {
			return err
		}
		k.router.Tell(nil, message.WorkReady{})
		return s.settle(c)
	case k.State() >= session.StateReady && k.State() <= session.StateAwaitingConsumer:
		if limit := k.Ledger.Limits().Consumer; limit > 0 && k.Ledger.StalledFor() >= limit {
			over := &session.TimeoutError{What: "the consumer of the messages", Limit: limit, SetBy: "Limits.Consumer"}
			s.close(c, fmt.Errorf("%w: %w", session.ErrConsumerStalled, over))
			return nil
		}
		return s.settle(c)
	}
	return nil
}

// settle derives the working state.
func (s *sessionActor) settle(c *kernel.Context[message.ToSession]) error {
	k := s.core
	k.Ledger.MarkReady()
	to := session.StateReady
	switch {
	case k.Ledger.Gates() > 0:
		to = session.StateAwaitingHost
	case k.Ledger.Stalled():
		to = session.StateAwaitingConsumer
		if limit := k.Ledger.Limits().Consumer; limit > 0 && !s.watching {
			s.watching = true
			c.After(max(limit-k.Ledger.StalledFor(), 0), message.ConsumerOver{})
		}
	case k.Ledger.Running():
		to = session.StateRunning
	}
	return s.enter(to, "")
}

// checkClosing goes on with a close that waits for the running turn, or for the
// flush.
func (s *sessionActor) checkClosing(c *kernel.Context[message.ToSession]) {
	k := s.core
	switch {
	case k.linkClosing:
		// A new transport actor finds the stage in the link; a link that has
		// no actor at all is ended directly.
		if s.finished {
			k.Link.Abort()
		}
	case k.flushing.begun || !k.Ledger.Busy():
		s.flush(c)
	case s.finished || !c.Now().Before(k.until):
		s.closeLink(true)
	}
}

// afterLink ends the session once everything the agent wrote was delivered.
func (s *sessionActor) afterLink(c *kernel.Context[message.ToSession], link transport.Status) error {
	k := s.core
	if !k.Ledger.Drained() {
		return nil // the router tells
	}
	if !k.closeAsked {
		s.close(c, k.exitReason(link))
	}
	if !s.stopping {
		s.stopping = true
		s.driver.stop(c, k.closeReason)
	}
	if !s.finished {
		return nil
	}
	to := session.StateClosed
	if k.closeReason != nil {
		to = session.StateFailed
	}
	if err := s.enter(to, ""); err != nil {
		return err
	}
	k.Ledger.Terminate(k.endReason(link))
	c.StopSelf()
	return nil
}

// endReason is why the session ended, with what it left behind.
func (k *Core) endReason(link transport.Status) error {
	if link.Leftover == nil {
		return k.closeReason
	}
	return errors.Join(k.closeReason, link.Leftover)
}

// exitReason describes an end of the agent that nobody asked for.
func (k *Core) exitReason(link transport.Status) error {
	if link.Err != nil && link.Exit == (session.ExitStatus{}) {
		return link.Err // it never ran
	}
	e := &session.ExitError{Status: link.Exit, During: "idle", StderrTail: tailOf(link.Stderr), StdoutTail: tailOf(link.Noise)}
	switch {
	case k.Ledger.Initialized() == nil:
		e.During = "initialize"
	case k.Ledger.Running():
		e.During = "a turn"
	}
	e.LastResult, e.LadderStep = k.Ledger.LastFailure(), ladderStep(link)
	if expired := k.cfg.Dialect.Traits().AuthExpiredExit; expired != 0 && link.Exit.Code == expired {
		k.Ledger.AuthExpired(e.Error())
		return &session.AuthError{Backend: k.cfg.Dialect.Name(), Err: e}
	}
	if link.Err != nil {
		return errors.Join(e, link.Err)
	}
	return e
}

// ladderStep says which signal Troupe sent the agent, at which step and why; "" if
// it sent none.
func ladderStep(link transport.Status) string {
	switch {
	case link.Signal == "":
		return ""
	case link.Stage < transport.Terminated: // a Giveup
		return link.Signal
	case link.Why == "":
		return link.Stage.String() + ", " + link.Signal
	}
	return link.Stage.String() + ", " + link.Signal + ", because " + link.Why
}

// initFailure adds to a missing answer to initialize what the agent wrote instead.
func initFailure(err error, link transport.Status) error {
	var late *session.TimeoutError
	if !errors.As(err, &late) {
		return err
	}
	told := *late // others hold the one without
	told.StderrTail, told.StdoutTail = tailOf(link.Stderr), tailOf(link.Noise)
	return &told
}

func tailOf(s string) string {
	s = strings.TrimSpace(s)
	if over := len(s) - 2048; over > 0 {
		for over < len(s) && !utf8.RuneStart(s[over]) {
			over++
		}
		s = "…" + s[over:]
	}
	return s
}

func (s *sessionActor) enter(to session.State, why string) error {
	from := s.core.State()
	if from == to {
		return nil
	}
	if !legal(from, to) {
		err := &session.IllegalTransitionError{From: from, To: to}
		if s.core.cfg.PanicOnIllegalStep {
			panic(err)
		}
		return err
	}
	s.core.state.Store(int32(to))
	s.core.cfg.Emit(session.StateChanged{From: from.String(), To: to.String(), Reason: why})
	return nil
}

func (s *sessionActor) describeTree(reply *kernel.Promise[[]message.ActorInfo]) {
	infos := s.describe("")
	if !s.core.callbacks.Live() {
		reply.Resolve(infos)
		return
	}
	sub := kernel.NewPromise[[]message.ActorInfo]()
	s.core.callbacks.Tell(nil, message.Describe{Reply: sub})
	exec := s.core.cfg.System.Executor()
	exec.Go(func() {
		limit := &session.TimeoutError{What: "description of the callbacks", Limit: time.Second}
		ctx, cancel := kernel.WithTimeout(context.Background(), s.core.cfg.System.Clock(), limit)
		defer cancel()
		more, _ := sub.Wait(ctx, exec) // a supervisor that is restarting has nothing to tell
		reply.Resolve(append(infos, more...))
	})
}

// pass changes the state of a session that has no actor, if that is legal.
func (k *Core) pass(to session.State, why string) {
	if from := k.State(); legal(from, to) {
		k.state.Store(int32(to))
		k.cfg.Emit(session.StateChanged{From: from.String(), To: to.String(), Reason: why})
	}
}

// Fail ends a session that has no actor any more and will get none: its
// process is ended, what it wrote is delivered, and everything that waits
// learns the reason. It blocks until the link has ended and must run on a
// task of its own.
func (k *Core) Fail(reason error) {
	k.pass(session.StateClosing, reason.Error())
	k.Ledger.BeginClosing(false)
	k.Link.Abort()
	_ = k.cfg.System.Executor().Await(context.Background(), k.Link.Done())
	k.pass(session.StateFailed, "")
	k.Ledger.Terminate(errors.Join(reason, k.Link.Status().Leftover))
}
