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

// Call is a control request of the host, for the caller that waits for its answer.
type Call struct {
	ID      string
	Subtype string

	answer *kernel.Promise[*protocol.ControlResponse]
}

// Done is closed when the call is answered or over.
func (c *Call) Done() <-chan struct{} { return c.answer.Done() }

// Answer is the response; call it after Done. A refusal is a
// *[session.ControlError].
func (c *Call) Answer() (*protocol.ControlResponse, error) { return c.answer.Value() }

// Wanted reports whether a turn or a call is open.
func (u *Side) Wanted() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.turns)+len(u.calls) > 0
}

// Calls is the number of calls that wait for their answer.
func (u *Side) Calls() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.calls)
}

// Call makes a control request under a new id. It is written when the agent is ready. The
// answer is waited for at most limit: 0 means Limits.Control, negative no limit.
func (u *Side) Call(subtype string, request json.RawMessage, limit time.Duration) (*Call, error) {
	setBy := "the caller"
	if limit == 0 {
		limit, setBy = u.Limits().Control, "Limits.Control"
	}
	c := &Call{Subtype: subtype, answer: kernel.NewPromise[*protocol.ControlResponse]()}
	if err := u.enterCall(c); err != nil {
		return nil, err
	}
	u.cfg.Router(machine.Called{ID: c.ID, Subtype: subtype, Body: request, Limit: max(limit, 0), SetBy: setBy}, true)
	return c, nil
}

// enterCall gives a call its id and its place among those that are open.
func (u *Side) enterCall(c *Call) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.terminal || u.sum.Closing {
		return u.closedError()
	}
	for c.ID == "" || u.calls[c.ID] != nil {
		c.ID = kernel.NewID(u.cfg.Rand)
	}
	if u.calls == nil {
		u.calls = make(map[string]*Call)
	}
	u.calls[c.ID] = c
	return nil
}

func (u *Side) callOver(e *machine.CallOver) {
	c := u.calls[e.ID]
	if c == nil {
		return
	}
	if delete(u.calls, e.ID); len(u.calls) == 0 {
		u.calls = nil
	}
	if e.Err != nil {
		c.answer.Fail(e.Err)
	} else {
		c.answer.Resolve(e.Response)
	}
}

// Abandon ends a call that its caller no longer waits for.
func (u *Side) Abandon(c *Call, why error) {
	u.cfg.Router(machine.CallDropped{ID: c.ID, Why: why}, true)
}

// AwaitCall waits for the answer. When ctx ends first it cancels the call at the agent.
func (u *Side) AwaitCall(ctx context.Context, c *Call) (*protocol.ControlResponse, error) {
	resp, err := c.answer.Wait(ctx, u.cfg.Exec)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		u.Abandon(c, err)
	}
	return resp, err
}
