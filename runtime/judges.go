package runtime

import (
	"errors"
	"hash/fnv"
	"net/url"

	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/session"
)

// providerKey tells the provider of a session's models from those of others, as far as
// the environment of its agent shows it. An agent in memory has none.
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

// EnterServer implements [actors.Starts].
func (s *starts) EnterServer(server session.MCPHandler) (leave func(failure string, answered bool), err error) {
	b := s.of
	key := breakerKey{session.BreakerMCPServer, server.Name(), identity(server, s)}
	b.mu.Lock()
	defer b.mu.Unlock()
	var call serverCall
	id := b.ask(key, breaker.Ask{}, &call)
	if call.err != nil {
		return nil, call.err
	}
	return func(failure string, answered bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if failure == "" && !answered {
			b.drop(key, id)
			return
		}
		b.step(key, breaker.Done{ID: id, Failure: short(failure), Succeeded: "a tool has answered"})
	}, nil
}

// failureLine is what has failed, in one line and without what the agent wrote.
func failureLine(err error) string {
	if exit, ok := errors.AsType[*session.ExitError](err); ok {
		return short("the agent ended during " + exit.During + ": " + exit.Status.String())
	}
	return short(err.Error())
}
