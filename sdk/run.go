package sdk

import (
	"context"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Run runs a session for one prompt and returns its last result, when no turn and no
// background task runs any more. It waits at most Limits.Background for background
// tasks; ResultMessage.BackgroundTasks has those that still ran then.
//
// If the last result is a failure, Run returns it together with a *[ResultError], or
// with an *[AuthError] that wraps one. With any other error, the result is the last one
// before the error, or nil. opts may be nil. Options.OnMessage gets every message.
//
// If ctx ends, the agent is interrupted and stopped, and the error is an
// *[session.UnfinishedError] that says what Run waited for. Run returns at most
// Options.CloseTimeout after the end of ctx, usually within 0.1 s.
func Run(ctx context.Context, prompt string, opts *Options) (*ResultMessage, error) {
	o := copied(opts)
	o.Discard = false // the results are among the messages
	out := outcome{replaces: func(*ResultMessage) bool { return true }}
	c := NewClient(o)
	for m, err := range converse(ctx, "run", only(prompt), c) {
		if err != nil {
			_ = out.err(c)
			return out.last, err
		}
		out.note(m)
		if o.OnMessage != nil {
			o.OnMessage(m)
		}
	}
	return out.last, out.err(c)
}

func copied(o *Options) *Options {
	if o == nil {
		return &Options{}
	}
	c := *o
	return &c
}

// outcome is what a run comes to: the last result, or an earlier one that later
// ones do not replace.
type outcome struct {
	last     *ResultMessage
	limited  *protocol.RateLimitMessage
	refused  bool // the agent said that it is not logged in
	replaces func(last *ResultMessage) bool
}

func (o *outcome) note(m Message) {
	switch m := m.(type) {
	case *protocol.RateLimitMessage:
		o.limited = m
	case *AssistantMessage:
		// Without a login at all no status stands in the result (observed on
		// Claude Code 2.1.329).
		o.refused = o.refused || m.Error == "authentication_failed"
	}
	if r := resultOf(m); r != nil && (o.last == nil || o.replaces(o.last) || r.StructuredOutput != nil) {
		o.last = r
	}
}

func (o *outcome) err(c *Client) error {
	if o.last != nil {
		o.last.BackgroundTasks = c.unfinished()
	}
	switch {
	case o.last == nil:
		return session.ErrNotRun
	case !o.last.Failed():
		return nil
	}
	return c.resultError(&ResultError{Result: o.last, RetryAfter: untilReset(c.dialing.home.Clock(), o.limited)}, o.refused)
}

// resultError is failed, or an *[AuthError] around it. refused: the agent said that
// it is not logged in.
func (c *Client) resultError(failed *ResultError, refused bool) error {
	r := failed.Result
	if refused || r.APIErrorStatus == 401 || r.APIErrorType == "authentication_error" ||
		r.TerminalReason == "auth_required" || r.TerminalReason == "auth_payload_missing" { // Qoder's, observed on qodercli 1.1.52
		return &AuthError{Backend: c.dialing.dialect.Name(), Err: failed}
	}
	return failed
}

// untilReset is how long a limit that was reached still holds; 0 if none was.
func untilReset(c kernel.Clock, m *protocol.RateLimitMessage) time.Duration {
	if m == nil || m.Info.Status != "rejected" || m.Info.ResetsAt <= 0 {
		return 0
	}
	return max(time.Unix(int64(m.Info.ResetsAt), 0).Sub(c.Now()), 0)
}
