package actors

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/inquiry"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/actors/modelpolicy"
	"github.com/agent-troupe/troupe/actors/permission"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// callbacks supervises, one_for_one, the actors that call the user back. Each is
// started when the first request for it waits: most sessions need few of them.
type callbacks struct {
	core *Core
	driver[message.ToCallbacks]
	failure error
}

var callbackKinds = [...]struct { //nolint:gochecknoglobals // only read
	name string
	kind session.Kind
}{
	{"hooks", session.KindHook}, {"permission", session.KindPermission}, {"mcp", session.KindMCP}, {"modelpolicy", session.KindModelPolicy}, {"inquiry", session.KindInquiry},
}

func newCallbacks(k *Core) (*callbacks, error) {
	b := &callbacks{core: k}
	spec := supervisor.Spec{
		Name: k.cfg.ID + "/callbacks", Strategy: supervisor.OneForOne,
		Intensity: k.cfg.ActorIntensity, Backoff: k.cfg.ActorBackoff,
	}
	sup, err := supervisor.New(spec, k.cfg.System.Rand(), observe(k.cfg.Emit))
	if err != nil {
		return nil, err
	}
	b.driver = driver[message.ToCallbacks]{
		sup: sup, spawn: b.spawnChild,
		timer: func(t message.Timer) message.ToCallbacks { return message.CallbacksTimer(t) },
		ended: func(c *kernel.Context[message.ToCallbacks], reason error) { b.failure = reason },
	}
	return b, nil
}

// Start implements [kernel.Behavior].
func (b *callbacks) Start(c *kernel.Context[message.ToCallbacks]) error {
	b.driver.start(c)
	return b.look(c)
}

// look starts the actors that requests wait for.
func (b *callbacks) look(c *kernel.Context[message.ToCallbacks]) error {
	for _, k := range callbackKinds {
		if b.core.Ledger.Waiting(k.kind) {
			if err := b.want(c, k.name); err != nil {
				return err
			}
		}
	}
	return b.failure
}

// uncalled reports whether requests wait for an actor that calls back.
func (k *Core) uncalled() bool {
	for _, kind := range callbackKinds {
		if k.Ledger.Waiting(kind.kind) {
			return true
		}
	}
	return false
}

// Handle implements [kernel.Behavior].
func (b *callbacks) Handle(c *kernel.Context[message.ToCallbacks], m message.ToCallbacks) error {
	switch m := m.(type) {
	case message.RequestsReady:
		return b.look(c)
	case message.CallbacksTimer:
		b.fire(c, message.Timer(m))
	case message.Describe:
		m.Reply.Resolve(b.describe("callbacks/"))
	default:
		return fmt.Errorf("callbacks: unexpected message %T", m)
	}
	return b.failure
}

// ChildDown implements [kernel.ChildObserver].
func (b *callbacks) ChildDown(c *kernel.Context[message.ToCallbacks], d kernel.Down) error {
	b.down(c, d, func(child string) {
		for _, k := range callbackKinds {
			if k.name == child {
				b.core.Ledger.FailTaken(k.kind, "the host could not decide")
				b.core.changed()
			}
		}
	})
	return b.failure
}

// Stop implements [kernel.Behavior].
func (b *callbacks) Stop(*kernel.Context[message.ToCallbacks]) {}

func (b *callbacks) spawnChild(c *kernel.Context[message.ToCallbacks], child, name string, _ int) (kernel.Located, error) {
	var kind session.Kind
	for _, k := range callbackKinds {
		if k.name == child {
			kind = k.kind
		}
	}
	return spawnAt[message.ToCallbacks, message.ToCallback](c, name, b.core.newCallback(kind), &b.core.callback[kind])
}

func (k *Core) newCallback(kind session.Kind) *dispatch.Actor {
	switch kind {
	case session.KindHook:
		return hooks.New(k.Ledger, k.cfg.Dialect, k.cfg.Hooks, k.gated)
	case session.KindPermission:
		return permission.New(k.Ledger, k.cfg.Dialect, k.cfg.CanUseTool, k.cfg.PermissionTimeout, k.gated)
	case session.KindMCP:
		return mcp.New(k.Ledger, k.Bridge, k.gated)
	case session.KindInquiry:
		return inquiry.New(k.Ledger, k.cfg.Dialect, k.cfg.Inquiries, k.gated)
	default:
		return modelpolicy.New(k.Ledger, k.cfg.Dialect, k.cfg.ResolveModel, k.cfg.ResolveModelLimit, k.gated)
	}
}
