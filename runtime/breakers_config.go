package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/session"
)

// Breakers configures the circuit breakers that the sessions of a runtime share, and the limit on
// restarts. The zero value has the defaults. Sessions without Options.Runtime share those of the
// default runtime.
//
// Every start of an agent passes the breakers of its provider and of its program. The effect of an
// open breaker depends on the start. A process that takes the place of one that died
// (Options.MaxRestarts) waits, and its session with it. A new session fails with a
// *[session.BreakerOpenError], which is retryable, unless Hold is set. While it waits,
// [session.StartHeld] and [Runtime.Tree] show the reason.
type Breakers struct {
	// Agent is the breaker of an agent's program: one for each path, interpreter and
	// spawner. A start has failed when the process could not be started, or ended or did
	// not answer before it was initialized. Starts that the user closes, and failures of
	// one session alone (its directory, its login, an id to resume that does not exist,
	// an option that the agent refuses) do not count.
	Agent BreakerPolicy
	// Provider is the breaker of the model's API: one for each backend, address and
	// credentials, as far as the environment of the agent shows them. A result that says
	// that the API was overloaded, could not be reached or failed (429, 529, 5xx, …) is a
	// failure, after the retries of the agent; any result of a model is a success. An open
	// breaker lets no agent start but a probe, as that of Agent does. It does not delay
	// messages of running sessions: each of their results is a probe, too. Agents in memory
	// have no provider.
	Provider BreakerPolicy
	// MCPServer is the breaker of an in-process MCP server: one for each value in
	// Options.SDKMCPServers. A call of a tool that exceeds its limit, panics or fails without
	// a result is a failure; a result that is an error is not a failure. While the breaker is
	// open, calls fail at once with an error that the model reads. Servers that the agent
	// itself runs are its own business: Troupe sees neither their starts nor their calls.
	MCPServer BreakerPolicy
	// StartsPerSecond limits the starts of one program within any second: of processes that
	// take the place of one that died always, and of new sessions until Agent.Failures
	// starts in a row have succeeded, since the runtime began or since the last one that
	// failed. More starts wait. Default: 10; negative: no limit.
	StartsPerSecond int
	// Hold makes new sessions wait for an open breaker, until the context of Open ends.
	Hold bool
}

// BreakerPolicy says when a breaker opens and when it probes. Zero fields take their
// defaults.
type BreakerPolicy struct {
	// Failures is how many in a row open the breaker. Default: 5; negative: it never opens.
	Failures int
	// CoolDown is how long the breaker is open before the first probe, and MaxCoolDown the
	// longest. Each probe that fails doubles it. Between half of it and all of it is
	// waited, at random. Default: 1 s, up to 30 s, or CoolDown if that is longer.
	CoolDown, MaxCoolDown time.Duration
}

// defaultStartsPerSecond is the default of Breakers.StartsPerSecond.
const defaultStartsPerSecond = 10

const (
	defaultFailures    = 5
	defaultCoolDown    = time.Second
	defaultMaxCoolDown = 30 * time.Second
)

// validate returns a *[session.ConfigError] for each mistake.
func (b Breakers) validate() []error {
	return slices.Concat(
		b.Agent.validate("Breakers.Agent"), b.Provider.validate("Breakers.Provider"), b.MCPServer.validate("Breakers.MCPServer"),
	)
}

func (p BreakerPolicy) validate(option string) (problems []error) {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{".CoolDown", p.CoolDown}, {".MaxCoolDown", p.MaxCoolDown}} {
		if d.value < 0 {
			problems = append(problems, &session.ConfigError{
				Option: option + d.name, Problem: fmt.Sprintf("is %v", d.value), Fix: "use 0 for the default or a positive duration",
			})
		}
	}
	if p.MaxCoolDown > 0 && p.MaxCoolDown < p.CoolDown {
		problems = append(problems, &session.ConfigError{
			Option: option + ".MaxCoolDown", Problem: fmt.Sprintf("is %v, less than CoolDown, %v", p.MaxCoolDown, p.CoolDown), Fix: "raise it or lower CoolDown",
		})
	}
	return problems
}

// config is that of the breaker of something.
func (p BreakerPolicy) config(kind session.BreakerKind, name string) breaker.Config {
	c := breaker.Config{Kind: kind, Name: name, Failures: p.Failures, CoolDown: p.CoolDown, MaxCoolDown: p.MaxCoolDown}
	c.Failures = cmp.Or(c.Failures, defaultFailures)
	c.Failures = max(c.Failures, 0)
	c.CoolDown = cmp.Or(c.CoolDown, defaultCoolDown)
	c.MaxCoolDown = cmp.Or(c.MaxCoolDown, max(defaultMaxCoolDown, c.CoolDown))
	return c
}

// of is the configuration of a breaker.
func (b Breakers) of(key breakerKey) breaker.Config {
	switch key.kind {
	case session.BreakerProvider:
		c := b.Provider.config(key.kind, key.name)
		c.Hold = b.Hold
		return c
	case session.BreakerMCPServer:
		return b.MCPServer.config(key.kind, key.name)
	}
	c := b.Agent.config(key.kind, key.name)
	c.Rate, c.Hold = b.rate(), b.Hold
	return c
}

// rate is the limit of starts; zero: none.
func (b Breakers) rate() int {
	if b.StartsPerSecond == 0 {
		return defaultStartsPerSecond
	}
	return max(b.StartsPerSecond, 0)
}
