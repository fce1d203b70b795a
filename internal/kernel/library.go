package kernel

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	cmap "github.com/orcaman/concurrent-map"
)

// registryMaps is how many maps a registry of actors has. The library makes 1,024 of
// 32 shards each: 3 MB, in which every actor is the first of its shard.
const registryMaps = 8

// pattern is a system of the library's that runs nothing and is only copied: to make
// one takes longer than a short simulation.
var pattern = sync.OnceValue(func() *actor.ActorSystem { return makeActorSystem(slog.New(slog.DiscardHandler)) }) //nolint:gochecknoglobals // never changes

func makeActorSystem(logger *slog.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
}

// newActorSystem returns a system of the library's for a [System]. A nil logger
// discards.
func newActorSystem(logger *slog.Logger) *actor.ActorSystem {
	var sys *actor.ActorSystem
	if logger != nil {
		sys = makeActorSystem(logger)
		pids := sys.ProcessRegistry.LocalPIDs
		pids.LocalPIDs = slices.Clone(pids.LocalPIDs[:registryMaps])
	} else {
		copied := *pattern()
		sys = &copied
		sys.ProcessRegistry = &actor.ProcessRegistryValue{
			ActorSystem: sys, Address: pattern().ProcessRegistry.Address, LocalPIDs: &actor.SliceMap{},
		}
		for range registryMaps {
			sys.ProcessRegistry.LocalPIDs.LocalPIDs = append(sys.ProcessRegistry.LocalPIDs.LocalPIDs, cmap.New())
		}
		sys.Root = actor.NewRootContext(sys, actor.EmptyMessageHeader)
		sys.Guardians = actor.NewGuardians(sys)
		sys.EventStream = eventstream.NewEventStream()
		sys.DeadLetter = actor.NewDeadLetter(sys)
	}
	// The stock event stream throttles dead letters with a goroutine and a
	// wall-clock ticker, and logs message contents. Nobody listens to this one:
	// messages do not go through the library.
	sys.EventStream = eventstream.NewEventStream()
	return sys
}
