package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// Session is one conversation with one agent. It is safe for concurrent use.
type Session struct {
	id          string
	rt          *Runtime
	dialect     dialect.Dialect
	core        *actors.Core
	starts      *starts
	warnings    []session.Warning
	events      *handler            // nil without Options.OnEvent
	trace       *session.Trace      // with all functions set; nil: tracing is off
	authExpires func(reason string) // nil without Options.OnAuthExpired

	isolated *session.Isolated // where the agent's configuration is; nil without Options.Isolation
	made     string            // its private directory, unless an earlier session has made it
	homeless bool              // that directory ends with the session, which cannot be resumed
	stored   stored            // what Options.SessionStore needs

	root   string                 // the agent's configuration directory; "": it is not on this machine
	rootOf transcript.Vendor      // whose
	kept   atomic.Pointer[string] // the agent's id of the session that was recorded

	title   string           // for people
	about   AdmissionRequest // what the session is for
	local   bool             // its agent is a process of this machine that the runtime started
	meter   meter
	program agent.Program          // in this process, or nil
	gates   atomic.Pointer[gateOf] // who has decided about calls of tools; nil before the first decision
	marks   atomic.Pointer[[]Mark] // deaths and crashes, oldest first; emitting is held to write it
	lived   atomic.Int64           // when the present incarnation of its actor began, in Unix nanoseconds
	opened  time.Time
	entered atomic.Int64          // when the present state began, in Unix nanoseconds; 0: at opened
	crash   atomic.Pointer[crash] // of the session's actor, or nil
	place   *ticket               // in the admission; guarded by the lock of the runtime
	wait    wait                  // for that place

	emitting sync.Mutex // orders events: nothing follows Ended
	ended    bool
}

func (rt *Runtime) newSession(ctx context.Context, spec Spec) (*Session, error) {
	if spec.Dialect == nil {
		return nil, errors.New("open: Spec.Dialect is required: say how the agent speaks")
	}
	if spec.ID == "" {
		spec.ID = kernel.NewID(rt.sys.Rand())
	}
	if strings.ContainsAny(spec.ID, "/#") {
		return nil, fmt.Errorf("open: session id %q must not contain / or #", spec.ID)
	}
	s := &Session{id: spec.ID, rt: rt, dialect: spec.Dialect, authExpires: spec.Options.OnAuthExpired, opened: rt.sys.Clock().Now()}
	s.title, s.about = spec.Options.Title, requestOf(ctx)
	_, processes := rt.spawner.(*transport.ProcessSpawner)
	s.local = processes && spec.Program == nil && spec.NewProgram == nil && spec.Options.Spawner == nil
	if spec.Options.OnEvent != nil {
		s.events = &handler{exec: rt.sys.Executor(), handle: spec.Options.OnEvent, failed: s.observerFailed}
	}
	cfg, err := s.config(ctx, &spec)
	if err != nil {
		s.unfollow(err)
		s.unlease()
		return nil, err
	}
	s.core = actors.NewCore(cfg)
	if err := s.core.TakeChildren(); err != nil {
		s.unfollow(err)
		s.unlease()
		s.forsake()
		return nil, err
	}
	if err := rt.register(s); err != nil {
		s.unfollow(err)
		s.unlease()
		s.core.LeaveChildren()
		s.forsake()
		return nil, err
	}
	for _, w := range s.warnings {
		s.emit(&session.WarningIssued{Problem: w.String()})
	}
	if s.isolated != nil {
		s.emit(s.isolated)
	}
	return s, nil
}

// emit hands an event to everybody who reads the session's events. A callback may return
// after its session has ended. Its event then goes to the log alone, since Ended is the
// last one that readers get.
func (s *Session) emit(e session.Event) {
	if _, ended := e.(*session.Ended); ended && s.stored.mirror != nil {
		s.stored.mirror.End()
		if s.stored.leases != nil { // should the mirror have had no time for it
			s.rt.sys.Executor().Go(s.stored.leases.leave)
		}
	}
	if !s.record(e) {
		return
	}
	switch e := e.(type) {
	case *session.Ended:
		s.rt.remove(s, s.epitaph(e.Reason))
		if s.rt.keeper != nil {
			s.rt.keeper.sweepSoon()
		}
		if s.homeless {
			s.forsake()
		}
	case *session.AuthExpired:
		s.authExpired(e.Reason)
	}
}

// record reports false if the session has ended.
func (s *Session) record(e session.Event) bool {
	r := session.EventRecord{Session: s.id, At: s.rt.sys.Clock().Now(), Event: e}
	// The actor that ends the session reports its states, so they come before the end
	// by themselves. Callbacks cause two for each request, without a lock.
	if state, ok := e.(*session.StateChanged); ok {
		s.entered.Store(r.At.UnixNano())
		s.starts.entered(state.To)
		if s.rt.keeper != nil && s.core != nil {
			s.keeps()
		}
	} else {
		s.emitting.Lock()
		defer s.emitting.Unlock()
		if s.ended {
			s.rt.bus.record(r)
			return false
		}
		_, s.ended = e.(*session.Ended)
		s.mark(&r)
	}
	s.publish(r)
	if s.events != nil {
		s.events.push(r)
	}
	return true
}

// publish hands an event to everybody but Options.OnEvent.
func (s *Session) publish(r session.EventRecord) (seq uint64) {
	if s.trace != nil {
		s.trace.Event(r)
	}
	seq = s.rt.bus.publish(r)
	if s.core != nil { // nil while it is made
		s.core.Observe(r)
	}
	return seq
}

func (s *Session) authExpired(reason string) {
	tell := s.authExpires
	if tell == nil {
		return
	}
	s.rt.sys.Executor().Go(func() {
		defer func() {
			if p := recover(); p != nil {
				err := &session.PanicError{Value: p, Message: "OnAuthExpired", Stack: debug.Stack()}
				s.emit(&session.CallbackFailed{Kind: "event", Name: "OnAuthExpired", Err: err})
			}
		}()
		tell(reason)
	})
}

// observerFailed reports a panic of Options.OnEvent to everybody else; after the end of
// the session to the log alone.
func (s *Session) observerFailed(err error) {
	r := session.EventRecord{
		Session: s.id, At: s.rt.sys.Clock().Now(),
		Event: &session.CallbackFailed{Kind: "event", Name: "OnEvent", Err: err},
	}
	s.emitting.Lock()
	defer s.emitting.Unlock()
	if s.ended {
		s.rt.bus.record(r)
	} else {
		s.publish(r)
	}
}

// actorFailed turns a crash into an event of the session it belongs to, whose
// name is the second part of the actor's: fleet/<id>#<n>/…. After the end of the session it is
// for the log alone.
func (rt *Runtime) actorFailed(c kernel.Crash) {
	e := &session.ActorFailed{Actor: c.Actor, Reason: c.Reason}
	_, rest, _ := strings.Cut(c.Actor, "/")
	id, _, _ := strings.Cut(rest, "#")
	rt.mu.Lock()
	s := rt.sessions[id]
	rt.mu.Unlock()
	r := session.EventRecord{Session: id, At: rt.sys.Clock().Now(), Event: e}
	switch {
	case s != nil:
		s.emit(e)
	case id != "": // Ended was its last event
		rt.bus.record(r)
	default:
		rt.bus.publish(r)
	}
}

// ID returns the session's id in its runtime.
func (s *Session) ID() string { return s.id }

// AgentSessionID returns the agent's id of the session, for Options.Resume; empty until
// the agent has reported it.
func (s *Session) AgentSessionID() string { return s.core.User.SessionID() }

// State returns the session's current state.
func (s *Session) State() session.State { return s.core.State() }

// Warnings returns the options that are valid but perhaps do not do what you intend.
func (s *Session) Warnings() []session.Warning { return s.warnings }

// Initialized returns the agent's answer to the initialize call.
func (s *Session) Initialized() json.RawMessage { return s.core.User.Initialized() }

// Capabilities returns the capabilities that the agent announced, such as goal_v1.
func (s *Session) Capabilities() []string { return s.core.User.Capabilities() }

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.core.User.Done() }

// Err returns why the session ended. It is nil while the session runs and after a
// normal end.
func (s *Session) Err() error { return s.core.User.Reason() }

// endedBy is Err of a session that has ended, [session.ErrClosed] for a normal end.
func (s *Session) endedBy() error {
	if reason := s.Err(); reason != nil {
		return reason
	}
	return session.ErrClosed
}

// Unread returns the number of messages of the agent that have not been read.
func (s *Session) Unread() int {
	messages, _ := s.core.User.Unread()
	return messages
}

// PID returns the agent's process id; 0 if the agent has no process.
func (s *Session) PID() int { return s.core.Link().Status().PID }

// Events yields the session's events, from the start of the loop to the end of the
// session or of ctx.
func (s *Session) Events(ctx context.Context) iter.Seq[session.EventRecord] {
	return s.rt.bus.read(ctx, s.id, nil, s.core.User.Terminated)
}

// Send queues a user message for the agent. It returns when the message is queued. If
// the queue is full, it waits until there is room.
func (s *Session) Send(ctx context.Context, m *protocol.UserMessage) (*Turn, error) {
	t, err := s.core.User.Send(ctx, m)
	if err != nil {
		return nil, kernel.Ended(ctx, err)
	}
	return &Turn{s: s, t: t}, nil
}

// Messages yields every message of the session that has not been read yet, until the
// session ends. If there is an error, it is yielded last.
func (s *Session) Messages(ctx context.Context) iter.Seq2[protocol.Message, error] {
	return func(yield func(protocol.Message, error) bool) {
		c, err := s.core.User.Consume()
		if err != nil {
			yield(nil, err)
			return
		}
		defer c.Release()
		for {
			e, err := c.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, kernel.Ended(ctx, err))
				return
			}
			if !yield(decode(&e), nil) {
				return
			}
		}
	}
}

// Call sends a control request and decodes the answer into resp, which may be nil. It
// waits for the answer at most limit; zero means Limits.Control, negative no limit. If
// the agent refuses the request, the error is a *[session.ControlError]; without an
// answer in time it is a *[session.TimeoutError].
func (s *Session) Call(ctx context.Context, req protocol.HostRequest, resp any, limit time.Duration) error {
	if need := s.dialect.Capability(req); need != "" && !slices.Contains(s.Capabilities(), need) {
		return &session.UnsupportedCapabilityError{Backend: s.dialect.Name(), Capability: need, Request: req.Subtype()}
	}
	body, err := s.dialect.Encode(req)
	if err != nil {
		return err
	}
	call, err := s.core.User.Call(req.Subtype(), body, limit)
	if err != nil {
		return err
	}
	answer, err := s.core.User.AwaitCall(ctx, call)
	if err != nil {
		return err
	}
	if resp == nil {
		return nil
	}
	return answer.Decode(resp)
}

// AwaitIdle waits until no turn and no background task runs, or until the session has
// ended.
func (s *Session) AwaitIdle(ctx context.Context) error { return s.core.User.AwaitIdle(ctx) }

// AwaitDone is like [Session.AwaitIdle], but waits for background tasks at most
// Limits.Background. It returns the tasks that still run then; a
// [session.WarningIssued] event names them, too.
func (s *Session) AwaitDone(ctx context.Context) ([]protocol.BackgroundTask, error) {
	left, err := s.core.User.AwaitDone(ctx)
	if len(left) > 0 {
		names := make([]string, len(left))
		for i, t := range left {
			names[i] = strings.TrimSpace(t.TaskID + " " + t.Description)
		}
		s.emit(&session.WarningIssued{Problem: "the run ends although background tasks live (Limits.Background): " + strings.Join(names, ", ")})
	}
	return left, err
}

// WritesLost returns a *[session.WritesLostError] if the agent has reported that it
// could not write a part of its transcript or settings, and nil otherwise. The error is
// complete when the session has ended.
func (s *Session) WritesLost() error { return s.core.User.WritesLost() }

// Killed reports whether the agent was killed because it had not ended in time. It is
// false if the agent was killed for another reason, such as a
// *[session.GatesOffError].
func (s *Session) Killed() bool { return s.core.Link().Status().Late }

func decode(e *user.Delivery) protocol.Message {
	m := protocol.DecodeMessage(e.Frame)
	if r, ok := m.(*protocol.ResultMessage); ok {
		r.BackgroundTasks, r.Recovered = e.Tasks, e.Recovered
	}
	return m
}

// Passivate ends the agent's process unless it is needed, and returns when it is gone.
// The session stays open, in [session.StatePassivated]: its id, its messages and its
// callbacks stay, and the next message or call starts a process that resumes it. If it is
// passivated already, Passivate returns nil.
//
// A process is needed while a turn, a call, a request of the agent or a background task
// is open, and while the reader of the agent's output waits for a consumer of the
// messages. Then, and where no other process could take its place, the error is a
// *[session.PassivateError], and nothing has changed. In a session that ends it is
// [session.ErrClosed]. If ctx ends first, the process may still go.
func (s *Session) Passivate(ctx context.Context) error { return s.core.Passivate(ctx) }

// Close ends the session in order: it interrupts a running turn, denies the requests
// that wait for a callback, gives the agent time to end (Options.Graces), and sweeps its
// process tree. It returns when no process is left. If ctx ends first, the agent is
// killed, and the error says how far the close had come. Close may be called any number
// of times. With the context of one of Options.Children it returns at once, because the
// session ends after its children.
func (s *Session) Close(ctx context.Context) error {
	s.rt.admission.giveUp(&s.wait)
	s.core.Close()
	if SessionOf(ctx) == s {
		return nil
	}
	err := s.rt.sys.Executor().Await(ctx, s.Done())
	if err != nil {
		s.core.Link().Expire()
		link := s.core.Link().Status()
		return fmt.Errorf("close session %s: still %v, transport %v (%v), agent killed: %w", s.id, s.State(), link.Phase, link.Stage, err)
	}
	return s.core.Link().Status().Leftover.Err
}
