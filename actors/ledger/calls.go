package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// refusal turns an error answer into an error.
func refusal(request string, r *protocol.ControlResponse) error {
	return &session.ControlError{Request: request, Message: r.Error, Code: r.ErrorCode, Retryable: r.Retryable, Details: r.Details}
}

// Call is a control request of the host.
type Call struct {
	ID      string
	Subtype string
	Opened  time.Time
	Limit   time.Duration // zero: none
	SetBy   string        // the option that set Limit
	// Setup marks the calls without which the session cannot be used.
	Setup bool

	seq     uint64
	written bool
	first   bool // goes out before the agent is initialized: the session's own
	request json.RawMessage
	answer  *kernel.Promise[*protocol.ControlResponse]
}

// Own reports whether the session itself made the call, with [First].
func (c *Call) Own() bool { return c.first }

// Done is closed when the call is answered or over.
func (c *Call) Done() <-chan struct{} { return c.answer.Done() }

// Answer is the response; call it after Done. A refusal is a *[ControlError].
func (c *Call) Answer() (*protocol.ControlResponse, error) { return c.answer.Value() }

type calls struct {
	open map[string]*Call // nil when there are none
}

func (c *calls) close(call *Call) {
	if delete(c.open, call.ID); len(c.open) == 0 {
		c.open = nil
	}
}

func (c *calls) waiting() int { return len(c.open) }

// interrupting reports whether an interrupt waits for its answer.
func (c *calls) interrupting() bool {
	for _, call := range c.open {
		if call.Subtype == "interrupt" {
			return true
		}
	}
	return false
}

// inOrder lists the open calls as they were made: map order must not reach
// the wire.
func (c *calls) inOrder() []*Call {
	all := make([]*Call, 0, len(c.open))
	for _, call := range c.open {
		all = append(all, call)
	}
	slices.SortFunc(all, func(a, b *Call) int { return int(int64(a.seq) - int64(b.seq)) })
	return all
}

func (c *calls) failAll(err error) {
	for _, call := range c.inOrder() {
		c.close(call)
		call.answer.Fail(err)
	}
}

// CallOption changes how a call is made.
type CallOption func(*Call)

// First sends the call before the agent is initialized, and also while the
// session is closing.
func First() CallOption { return func(c *Call) { c.first = true } }

// Setup marks a call that makes the agent ready: it goes out at once, and the
// session fails with it.
func Setup() CallOption { return func(c *Call) { c.first, c.Setup = true, true } }

// Within sets the call's limit; setBy names the option it comes from. A
// negative limit means none.
func Within(d time.Duration, setBy string) CallOption {
	return func(c *Call) { c.Limit, c.SetBy = d, setBy }
}

// Calls is the number of calls that wait for their answer.
func (l *Ledger) Calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls.waiting()
}

// OpenCall registers a control request under an id of its own. The router
// writes it when the agent is ready.
func (l *Ledger) OpenCall(subtype string, request json.RawMessage, opts ...CallOption) (*Call, error) {
	c := &Call{
		ID: "", Subtype: subtype, request: request,
		Limit: l.cfg.Limits.Control, SetBy: "Limits.Control",
		answer: kernel.NewPromise[*protocol.ControlResponse](),
	}
	for _, o := range opts {
		o(c)
	}
	if c.Limit < 0 {
		c.Limit = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal || (l.closing && !c.first) {
		return nil, l.closedError()
	}
	for c.ID == "" || l.calls.open[c.ID] != nil {
		c.ID = kernel.NewID(l.cfg.Rand)
	}
	l.order++
	c.seq = l.order
	c.Opened = l.cfg.Clock.Now()
	if l.calls.open == nil {
		l.calls.open = make(map[string]*Call)
	}
	l.calls.open[c.ID] = c
	switch subtype {
	case "initialize":
		l.facts.initSent = true
	case "interrupt":
		l.proof.interrupt()
	}
	l.reader.fire() // the answer may lie behind what nobody reads
	return c, nil
}

// SettingUp reports whether a call is open without which the session cannot be
// used.
func (l *Ledger) SettingUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls.open {
		if c.Setup {
			return true
		}
	}
	return false
}

// Settle handles the control_response at the head of the inbox and returns the
// call it answers, or nil when nobody waits for it.
func (l *Ledger) Settle(f protocol.Frame) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.popControl()
	c := l.callOf(f.ID)
	if c == nil {
		l.cfg.Emit(unexpected(f))
		return nil
	}
	l.calls.close(c)
	resp, err := protocol.DecodeControlResponse(f)
	if err != nil {
		c.answer.Fail(err)
		return c
	}
	for _, pending := range resp.PendingPermissionRequests {
		pending.Raw = bytes.Clone(pending.Raw) // not the whole answer
		l.open(pending, IdentityOf(&pending))
	}
	for _, pending := range resp.PendingUserDialogRequests {
		pending.Raw = bytes.Clone(pending.Raw) // not the whole answer
		l.open(pending, IdentityOf(&pending))
	}
	if resp.Failed() {
		c.answer.Fail(refusal(c.Subtype, resp))
		return c
	}
	if c.Subtype == "interrupt" {
		l.endCancelled(resp)
	}
	c.answer.Resolve(resp)
	return c
}

// callOf is the open call of that id, or nil. The host's ids are strings.
func (l *Ledger) callOf(id protocol.ID) *Call {
	c := l.calls.open[id.Text()]
	if c == nil || !id.Equal(protocol.TextID(c.ID)) {
		return nil
	}
	return c
}

// endCancelled ends the queued turns that an interrupt took with it: they will
// have no result.
func (l *Ledger) endCancelled(resp *protocol.ControlResponse) {
	var receipt protocol.InterruptResponse
	if resp.Decode(&receipt) != nil {
		return
	}
	if len(receipt.Unread) > 0 {
		l.cfg.Emit(session.WarningIssued{Problem: "the answer to interrupt holds what is no list of uuids: " + Short(strings.Join(receipt.Unread, ", "))})
	}
	for _, id := range receipt.Cancelled {
		if t := l.turns.byUUID(id); t != nil {
			l.endTurn(t, nil, session.ErrNotRun)
		}
	}
}

// NextDeadline is when the first of the open calls runs out, or the wait for what a
// result is of.
func (l *Ledger) NextDeadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var first time.Time
	if len(l.strays.kept) > 0 {
		first = l.strays.until
	}
	for _, c := range l.calls.open {
		if c.Limit > 0 {
			if at := c.Opened.Add(c.Limit); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first, !first.IsZero()
}

// ExpireCalls ends the calls whose limit has passed: the agent is told, the
// caller gets a [session.TimeoutError].
func (l *Ledger) ExpireCalls() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Clock.Now()
	for _, c := range l.calls.inOrder() {
		if c.Limit > 0 && !now.Before(c.Opened.Add(c.Limit)) {
			what := "control request " + c.Subtype
			if c.Subtype == "initialize" {
				what = "initialize"
			}
			l.dropCall(c, &session.TimeoutError{What: what, Limit: c.Limit, SetBy: c.SetBy})
		}
	}
}

// Abandon ends a call that its caller no longer waits for.
func (l *Ledger) Abandon(c *Call, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls.open[c.ID] == c {
		l.dropCall(c, why)
	}
}

func (l *Ledger) dropCall(c *Call, why error) {
	l.calls.close(c)
	if c.Setup {
		l.facts.initFailure = why
	}
	if c.written {
		_ = l.write(protocol.AppendControlCancel(nil, c.ID), FromHost) // a dead transport needs no cancel
	}
	c.answer.Fail(why)
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
