package routertest

import (
	"context"
	"sync"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Config is that of a routing and of the user's side.
type Config struct {
	machine.Config
	Budget   *user.Budget
	UserLine func(*protocol.UserMessage) ([]byte, error)
	Emit     func(session.Event)
}

// Router is a router with the user's side, and what it says to the session. It is safe for
// concurrent use.
type Router struct {
	*user.Side
	At        kernel.Address[machine.Input]
	Callbacks router.Lazy

	exec      kernel.Executor
	session   kernel.Address[machine.LifeInput]
	transport kernel.Address[machine.ToTransport]

	mu   sync.Mutex
	told machine.Summary
}

// New spawns the router on sys. transport hears what is for the transport's actor.
func New(sys *kernel.System, cfg Config, transport func(machine.ToTransport)) (*Router, error) {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	r := &Router{exec: sys.Executor()}
	r.Side = user.New(user.Config{
		Limits: cfg.Limits, Clock: sys.Clock(), Rand: sys.Rand(), Exec: sys.Executor(), Budget: cfg.Budget, UserLine: cfg.UserLine,
		Emit: cfg.Emit, Router: func(in machine.Input, _ bool) { r.At.Tell(nil, in) },
	})
	limits := r.Limits()
	cfg.Config.Limits = &limits
	box := router.NewBox(router.Config{
		Clock: sys.Clock(), User: r.Side, Budget: cfg.Budget, Emit: cfg.Emit,
		Self: &r.At, Session: &r.session, Transport: &r.transport, Callbacks: &r.Callbacks,
		Named: func(string) {}, Mirror: func([]byte) {},
	}, cfg.Config)
	if err := kernel.SpawnRoot[machine.LifeInput](sys, "session", &r.session, Behavior[machine.LifeInput](func(_ *kernel.Context[machine.LifeInput], m machine.LifeInput) {
		r.hear(m)
	})); err != nil {
		return nil, err
	}
	if err := kernel.SpawnRoot[machine.ToTransport](sys, "to transport", &r.transport, Behavior[machine.ToTransport](func(_ *kernel.Context[machine.ToTransport], m machine.ToTransport) {
		if all, ok := m.(heard); ok {
			all.Resolve(struct{}{})
			return
		}
		transport(m)
	})); err != nil {
		return nil, err
	}
	return r, kernel.SpawnRoot(sys, "router", &r.At, router.New(box))
}

func (r *Router) hear(m machine.LifeInput) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := m.(machine.Changed); ok {
		r.told = *m.Summary
	}
}

// Put reads frames of the agent.
func (r *Router) Put(frames ...protocol.Frame) { r.At.Tell(nil, machine.FramesRead{Frames: frames}) }

// Told is the summary that the session was told last.
func (r *Router) Told() machine.Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// Waits is what the session waits for. What the router has told the transport until then was
// heard.
func (r *Router) Waits() []machine.Waiting {
	reply, all := kernel.NewPromise[router.Looked](), heard{kernel.NewPromise[struct{}]()}
	r.At.Tell(nil, router.Look{Reply: reply})
	looked, _ := reply.Wait(context.Background(), r.exec) // nothing, if the router is gone
	r.transport.Tell(nil, all)
	_, _ = all.Wait(context.Background(), r.exec)
	return looked.Waits
}

// heard tells whether all that was said to the transport was heard.
type heard struct{ *kernel.Promise[struct{}] }

// ToTransport implements [machine.ToTransport].
func (heard) ToTransport() {}

// Begin answers the initialize call of a session that has just been connected.
func (r *Router) Begin() {
	for _, w := range r.Waits() {
		if w.What != "control request initialize" {
			continue
		}
		line := `{"type":"control_response","response":{"subtype":"success","response":{},"request_id":"` + w.ID + `"}}`
		if f, err := protocol.ParseFrame([]byte(line)); err == nil {
			r.Put(f)
		}
	}
}

// Behavior is an actor that is a function.
type Behavior[M any] func(*kernel.Context[M], M)

// Start implements [kernel.Behavior].
func (Behavior[M]) Start(*kernel.Context[M]) error { return nil }

// Stop implements [kernel.Behavior].
func (Behavior[M]) Stop(*kernel.Context[M]) {}

// Handle implements [kernel.Behavior].
func (b Behavior[M]) Handle(c *kernel.Context[M], m M) error {
	b(c, m)
	return nil
}
