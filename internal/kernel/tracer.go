package kernel

import "github.com/asynkron/protoactor-go/actor"

// Tracer follows each message from its sender to the actor that handles it. It is for
// tests; production systems have no tracer. An id names a message, is comparable, and
// stays the same when a second incarnation handles the message again.
type Tracer interface {
	// Tell is called by the sender, before the address has the message.
	Tell(id any)
	// Enter is called before an actor runs, and leave when it has run. The path is
	// that of [Crash].
	Enter(path string, o Occasion) (leave func())
	// Handle is called between the two if the actor is about to handle a message.
	Handle(id any)
}

// Occasion is why an actor runs.
type Occasion string

// The occasions.
const (
	OnMessage   Occasion = "message"
	OnStart     Occasion = "start"
	OnStopping  Occasion = "stopping"
	OnStopped   Occasion = "stopped"
	OnChildDown Occasion = "child down"
)

func occasion(m any) Occasion {
	switch m.(type) {
	case *actor.Started:
		return OnStart
	case *actor.Stopping:
		return OnStopping
	case *actor.Stopped:
		return OnStopped
	case *actor.Terminated:
		return OnChildDown
	}
	return OnMessage
}

// trace reports a message that is being sent. Before the address has its first
// incarnation only the sender's worker knows the system; a message from a sender
// without a worker is then not reported.
func (b *inbox) trace(w *Worker, n *node) {
	var t Tracer
	if l := b.life.Load(); l != nil {
		t = l.sys.cfg.Tracer
	} else if w != nil {
		t = w.sys.cfg.Tracer
	}
	if t == nil {
		return
	}
	if _, ok := n.m.(wake); !ok {
		t.Tell(n)
	}
}
