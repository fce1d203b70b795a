package kernel

import (
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	cmap "github.com/orcaman/concurrent-map"
)

// pattern is a system of the library's that runs nothing and is only copied: to make
// one takes longer than a short simulation.
var pattern = sync.OnceValue(func() *actor.ActorSystem { return makeActorSystem(slog.New(slog.DiscardHandler)) }) //nolint:gochecknoglobals // never changes

func makeActorSystem(logger *slog.Logger) *actor.ActorSystem {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	// The library makes 1,024 maps of 32 shards each: 3 MB for what needs one.
	sys.ProcessRegistry.LocalPIDs = &actor.SliceMap{LocalPIDs: []cmap.ConcurrentMap{cmap.New()}}
	return sys
}

// unregister takes a new actor out of the library's registry, a map that never gives
// memory back. Actors are not looked up by name: its parent and its children have its
// PID, which finds the process once and keeps it. An actor without a parent stays
// registered, so that its name is given once.
func unregister(c actor.Context) {
	if c.Parent() == nil {
		return
	}
	c.Send(c.Self(), nil) // finds the process; the mailbox takes no messages this way
	c.ActorSystem().ProcessRegistry.LocalPIDs.GetBucket(c.Self().Id).Remove(c.Self().Id)
}

// newActorSystem returns a system of the library's for a [System]. A nil logger
// discards.
func newActorSystem(logger *slog.Logger) *actor.ActorSystem {
	var sys *actor.ActorSystem
	if logger != nil {
		sys = makeActorSystem(logger)
	} else {
		copied := *pattern()
		sys = &copied
		sys.ProcessRegistry = &actor.ProcessRegistryValue{
			ActorSystem: sys, Address: pattern().ProcessRegistry.Address,
			LocalPIDs: &actor.SliceMap{LocalPIDs: []cmap.ConcurrentMap{cmap.New()}},
		}
		sys.Root = actor.NewRootContext(sys, actor.EmptyMessageHeader)
		sys.Guardians = actor.NewGuardians(sys)
		sys.EventStream = eventstream.NewEventStream()
		sys.DeadLetter = actor.NewDeadLetter(sys)
	}
	// The stock event stream throttles dead letters with a goroutine and a wall-clock
	// ticker, and logs message contents. This one has no listener: messages do not go
	// through the library.
	sys.EventStream = eventstream.NewEventStream()
	return sys
}
