package runtime

import (
	"errors"
	"hash/fnv"
	"math"
	"net/url"
	"sync/atomic"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/session"
)

// providerKey identifies the provider of a session's models, as far as the environment
// of its agent shows it. An agent in memory has no provider.
func providerKey(spec *Spec, env []string) breakerKey {
	names := spec.Dialect.Traits().ProviderEnv
	if spec.Program != nil && spec.Options.Spawner == nil || len(names) == 0 {
		return breakerKey{}
	}
	key := breakerKey{kind: session.BreakerProvider, name: spec.Dialect.Name()}
	all := fnv.New64a() // the credentials themselves are not kept
	for i, name := range names {
		value := lookupEnv(env, name)
		_, _ = all.Write([]byte(value + "\x00")) // it never fails
		if address, err := url.Parse(value); i == 0 && err == nil && address.Hostname() != "" {
			key.name += " at " + address.Hostname()
		}
	}
	key.of = all.Sum64()
	return key
}

// Judge implements [actors.Starts].
func (s *starts) Judge(result machine.Judged) {
	b := s.of
	if s.provider == (breakerKey{}) || result.Failure == "" && !b.suspect.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if result.Failure != "" {
		b.suspect.Store(true)
	}
	b.step(s.provider, breaker.Done{Failure: short(result.Failure), Succeeded: "a turn of session " + s.session.id + " has a result"})
	if result.Failure == "" {
		b.suspect.Store(b.suspected())
	}
}

// suspected reports whether a breaker of a provider knows of a failure.
func (b *breakers) suspected() bool {
	for key, g := range b.all {
		if key.kind == session.BreakerProvider && (g.Failures > 0 || g.Phase != session.BreakerClosed) {
			return true
		}
	}
	return false
}

// serverCall is a call of an in-process MCP server, which never waits.
type serverCall struct{ err error }

func (c *serverCall) granted(uint64)                        {}
func (c *serverCall) held(breakerKey, string)               {}
func (c *serverCall) refused(err *session.BreakerOpenError) { c.err = err }

// server is the breaker of an in-process MCP server, as the calls of one session pass it.
type server struct {
	of   *breakers
	key  breakerKey
	last atomic.Pointer[guard] // the breaker of the last call that took the lock; nil: none
}

// Server implements [actors.Starts].
func (s *starts) Server(of session.MCPHandler) mcp.Guard {
	return &server{of: s.of, key: breakerKey{session.BreakerMCPServer, of.Name(), identity(of, s.id)}}
}

// unasked is the id of the calls that a calm breaker was not asked about. No attempt has it.
const unasked = math.MaxUint64

// Enter implements [mcp.Guard]. While nothing has failed it takes no lock: neither it nor a
// success would change what the breaker knows.
func (s *server) Enter() (uint64, error) {
	if last := s.last.Load(); last != nil && last.calm.Load() {
		return unasked, nil
	}
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	var call serverCall
	id := b.ask(s.key, breaker.Ask{}, &call)
	s.last.Store(b.guard(s.key))
	return id, call.err
}

// Leave implements [mcp.Guard].
func (s *server) Leave(id uint64, failure string, answered bool) {
	if failure == "" && s.last.Load().calm.Load() {
		return
	}
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if failure == "" && !answered {
		b.drop(s.key, id)
		return
	}
	b.step(s.key, breaker.Done{ID: id, Failure: short(failure), Succeeded: "a tool has answered"})
}

// failureLine is what has failed, in one line and without what the agent wrote.
func failureLine(err error) string {
	if exit, ok := errors.AsType[*session.ExitError](err); ok {
		return short("the agent ended during " + exit.During + ": " + exit.Status.String())
	}
	return short(err.Error())
}
