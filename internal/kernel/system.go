package kernel

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/agent-troupe/troupe/session"
)

// Config holds the seams of a [System]. The zero value is the production set.
type Config struct {
	Clock      Clock      // default: NewClock(nil), the wall clock
	Dispatcher Dispatcher // default: goroutines
	Executor   Executor   // default: goroutines
	Rand       Rand       // default: NewRand with a seed of the operating system
	// Spawner, when set, starts and sweeps processes in place of this machine, which a
	// simulation does not use. The kernel itself does not use it.
	Spawner session.Spawner
	// Chaos, when set, is asked before and after each message. Tests only.
	Chaos Chaos
	// Tracer, when set, follows every message. Tests only.
	Tracer Tracer
	// OnCrash is called for every actor that failed. It runs where the actor
	// ran, and must neither block nor panic. Optional.
	OnCrash func(Crash)
	// Logger receives what the actor library itself reports. Default: discard.
	Logger *slog.Logger
}

// Crash describes the failure of one actor.
type Crash struct {
	Actor  string // path, parents first: "fleet/s#1/router#2"
	Reason error
}

// ErrStopped says that an actor stopped before it answered.
var ErrStopped = errors.New("kernel: actor stopped")

// System runs actors. One process needs one; a simulation has one per run.
type System struct {
	cfg         Config
	sys         *actor.ActorSystem
	deadLetters atomic.Int64

	mu       sync.Mutex
	props    *actor.Props
	spawning incarnation // guarded by mu
}

// NewSystem returns a system without actors. It starts no goroutine.
func NewSystem(cfg Config) *System {
	if cfg.Clock == nil {
		cfg.Clock = NewClock(nil)
	}
	pool := &production{}
	if cfg.Dispatcher == nil {
		cfg.Dispatcher = pool
	}
	if cfg.Executor == nil {
		cfg.Executor = pool
	}
	if cfg.Rand == nil {
		cfg.Rand = NewRand(nil)
	}
	s := &System{cfg: cfg}
	s.props = s.newProps()
	s.sys = newActorSystem(cfg.Logger)
	return s
}

// Clock returns the system's clock.
func (s *System) Clock() Clock { return s.cfg.Clock }

// Executor returns the system's executor, which [SystemOf] knows.
func (s *System) Executor() Executor { return ofSystem{s.cfg.Executor, s} }

// ofSystem is an executor with its system.
type ofSystem struct {
	Executor
	sys *System
}

// SystemOf returns the system of an executor, or nil.
func SystemOf(e Executor) *System {
	of, _ := e.(ofSystem)
	return of.sys
}

// Rand returns the system's source of randomness.
func (s *System) Rand() Rand { return s.cfg.Rand }

// DeadLetters counts messages that no incarnation will handle: those of closed
// addresses.
func (s *System) DeadLetters() int64 { return s.deadLetters.Load() }

// SpawnRoot starts an actor that has no parent. The name must be unique among
// those that live.
func SpawnRoot[M any](s *System, name string, at *Address[M], b Behavior[M]) error {
	_, err := at.settle(newLife(s, name, true), b, func(p *actor.Props) (*actor.PID, error) { return s.sys.Root.SpawnNamed(p, name) })
	return err
}
