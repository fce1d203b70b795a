package troupeotel

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Attributes that the conventions do not have.
const (
	keySession         = attribute.Key("troupe.session.id")
	keyBackend         = attribute.Key("troupe.backend")
	keyRestarts        = attribute.Key("troupe.restart.count")
	keyState           = attribute.Key("troupe.state")
	keyTurn            = attribute.Key("troupe.turn.id")
	keyTurnOutcome     = attribute.Key("troupe.turn.outcome")
	keyTurnRecovered   = attribute.Key("troupe.turn.recovered")
	keyTurnCost        = attribute.Key("troupe.turn.cost_usd")
	keyTurnSteps       = attribute.Key("troupe.turn.steps")
	keyTurnDenials     = attribute.Key("troupe.turn.denials")
	keyCallbackKind    = attribute.Key("troupe.callback.kind")
	keyCallbackName    = attribute.Key("troupe.callback.name")
	keyCallbackOutcome = attribute.Key("troupe.callback.outcome")
	keyAttempt         = attribute.Key("troupe.restart.attempt")
	keyPolicy          = attribute.Key("troupe.restart.policy")
	keyBackoff         = attribute.Key("troupe.restart.backoff_ms")
	keyMessages        = attribute.Key("troupe.restart.messages")
	keySent            = attribute.Key("troupe.restart.sent")
	keyKind            = attribute.Key("troupe.breaker.kind")
	keyName            = attribute.Key("troupe.breaker.name")
	keyCount           = attribute.Key("troupe.count")
)

// other stands for what is not told.
const other = "_OTHER"

// label returns a name that the agent has given, or other if it may be more than a name.
func label(s string) string {
	if s == "" || len(s) > 128 {
		return other
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.:/@[]", r):
		default:
			return other
		}
	}
	return s
}

// id returns an id for an attribute, or "" if it may be more than an id.
func id(s string) string {
	if l := label(s); l != other {
		return l
	}
	return ""
}

// bounded limits how many values an attribute of metrics has. The rest is other.
type bounded struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// maxValues is how many values one attribute of metrics has at most.
const maxValues = 128

// value returns a name that an agent has given.
func (b *bounded) value(s string) string { return b.own(label(s)) }

// own returns a name that the agent cannot choose.
func (b *bounded) own(s string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.seen[s]; ok {
		return s
	}
	if len(b.seen) >= maxValues {
		return other
	}
	if b.seen == nil {
		b.seen = make(map[string]struct{})
	}
	b.seen[s] = struct{}{}
	return s
}

// errorType classifies an error without its text.
func errorType(err error) string {
	switch {
	case is[*session.PanicError](err):
		return "panic"
	case is[*session.TimeoutError](err), is[*session.ModelPolicyTimeoutError](err), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case is[*session.AuthError](err):
		return "auth"
	case is[*session.ConfigError](err):
		return "config"
	case is[*session.StartError](err):
		return "start"
	case is[*session.LeaseError](err):
		return "lease"
	case is[*session.GatesOffError](err):
		return "gates_off"
	case is[*session.RetryLimitError](err):
		return "retry_limit"
	case is[*session.BreakerOpenError](err):
		return "breaker_open"
	case is[*session.RecoveryError](err):
		return "recovery"
	case is[*session.ExitError](err):
		return "agent_exit"
	case is[*session.ControlError](err):
		return "control"
	case is[*supervisor.Failure](err):
		return "supervisor"
	case is[*session.LeftoverError](err):
		return "leftover"
	case errors.Is(err, session.ErrNotRun):
		return "not_run"
	case errors.Is(err, session.ErrResultSkipped):
		return "result_skipped"
	case errors.Is(err, session.ErrNoCanUseTool):
		return "no_callback"
	case errors.Is(err, session.ErrClosed), errors.Is(err, session.ErrShutdown):
		return "closed"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return other
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// resultType classifies a result that is a failure.
func resultType(r *protocol.ResultMessage) string {
	for _, name := range []string{r.APIErrorType, r.APIError} {
		if name != "" {
			return label(name)
		}
	}
	if r.Subtype != protocol.ResultSuccess {
		return label(r.Subtype)
	}
	if r.TerminalReason != "" {
		return label(r.TerminalReason)
	}
	return other
}
