package user

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
)

// Call is a control request of the host, for whoever waits for its answer.
type Call struct {
	ID      string
	Subtype string

	limit  time.Duration
	setBy  string
	answer *kernel.Promise[*protocol.ControlResponse]
}

// Done is closed when the call is answered or over.
func (c *Call) Done() <-chan struct{} { return c.answer.Done() }

// Answer is the response; call it after Done. A refusal is a
// *[session.ControlError].
func (c *Call) Answer() (*protocol.ControlResponse, error) { return c.answer.Value() }

// CallOption changes how a call is made.
type CallOption func(*Call)

// Within sets the call's limit; setBy names the option it comes from. A
// negative limit means none.
func Within(d time.Duration, setBy string) CallOption {
	return func(c *Call) { c.limit, c.setBy = d, setBy }
}

// Wanted reports whether a turn or a call is open.
func (l *Ledger) Wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.turns)+len(l.calls) > 0
}

// Calls is the number of calls that wait for their answer.
func (l *Ledger) Calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// OpenCall makes a control request under an id of its own. It is written when the
// agent is ready.
func (l *Ledger) OpenCall(subtype string, request json.RawMessage, opts ...CallOption) (*Call, error) {
	c := &Call{
		Subtype: subtype, limit: l.Limits().Control, setBy: "Limits.Control",
		answer: kernel.NewPromise[*protocol.ControlResponse](),
	}
	for _, o := range opts {
		o(c)
	}
	if err := l.enterCall(c); err != nil {
		return nil, err
	}
	l.cfg.Router(machine.Called{ID: c.ID, Subtype: subtype, Body: request, Limit: max(c.limit, 0), SetBy: c.setBy}, true)
	return c, nil
}

// enterCall gives a call its id and its place among those that are open.
func (l *Ledger) enterCall(c *Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal || l.sum.Closing {
		return l.closedError()
	}
	for c.ID == "" || l.calls[c.ID] != nil {
		c.ID = kernel.NewID(l.cfg.Rand)
	}
	if l.calls == nil {
		l.calls = make(map[string]*Call)
	}
	l.calls[c.ID] = c
	return nil
}

func (l *Ledger) callOver(e *machine.CallOver) {
	c := l.calls[e.ID]
	if c == nil {
		return
	}
	if delete(l.calls, e.ID); len(l.calls) == 0 {
		l.calls = nil
	}
	if e.Err != nil {
		c.answer.Fail(e.Err)
	} else {
		c.answer.Resolve(e.Response)
	}
}

// Abandon ends a call that its caller no longer waits for.
func (l *Ledger) Abandon(c *Call, why error) {
	l.cfg.Router(machine.CallDropped{ID: c.ID, Why: why}, true)
}

// AwaitCall waits for the answer. When ctx ends first the agent is told that
// it is no longer wanted.
func (l *Ledger) AwaitCall(ctx context.Context, c *Call) (*protocol.ControlResponse, error) {
	resp, err := c.answer.Wait(ctx, l.cfg.Exec)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		l.Abandon(c, err)
	}
	return resp, err
}
