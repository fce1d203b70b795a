package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/session"
)

// call is a request of the agent from its arrival on.
type call struct {
	b       *Bridge
	server  *member
	msg     *rpcMessage
	key     callKey
	token   callKey // empty id: the agent wants no progress
	tool    string  // empty for anything but tools/call
	name    string  // for reports
	ticket  *Ticket // nil: the server orders nothing
	request *callback.Request

	place Place    // owned by the call's task
	scope offering // the context of its task

	// id is the call's at the guard, valid while inside is set: it has begun, and the guard
	// was not told what became of it.
	id      uint64
	inside  atomic.Bool
	overdue atomic.Bool // its limit has passed
	over    atomic.Bool // it is answered or cancelled, though its tool may still run

	limit atomic.Pointer[limit] // nil: defaultLimit
	came  time.Time
	alive atomic.Pointer[time.Time] // the last progress, or nil
}

// limit is how long a call may be without a sign of life.
type limit struct {
	time  time.Duration
	setBy string // the option that set it
}

// defaultLimit is that of a call for which no option sets one.
func defaultLimit() limit { return limit{DefaultTimeout, ToolOption} }

func (c *call) currentLimit() limit {
	if l := c.limit.Load(); l != nil {
		return *l
	}
	return defaultLimit()
}

func (b *Bridge) arrive(server *member, name string, m *rpcMessage, r *callback.Request) *call {
	tool, progress := m.toolCall()
	c := &call{
		b: b, server: server, msg: m, key: callKey{name, spelled(m.ID)}, tool: tool,
		name: name + " " + m.Method, request: r, came: b.cfg.Clock.Now(),
	}
	if tool != "" {
		c.name = "mcp__" + name + "__" + tool
		if _, ok := server.MCPHandler.(Orderer); ok {
			c.ticket = server.order.Enter()
		}
	}
	if token := spelled(progress); token != "" && token != "null" {
		c.token = callKey{name, token}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
	return c
}

func (c *call) job() callback.Job {
	return callback.Job{
		Name: c.name, Limit: DefaultTimeout, SetBy: "the default",
		Begin: c.begin, Deadline: c.deadline, Expired: c.expired, Run: c.run, Done: c.done,
		Over: c.ended,
	}
}

// begin asks the server for what it has to say before the call, in the order
// of the agent's calls.
func (c *call) begin(ctx context.Context) error {
	if c.ticket != nil {
		defer c.ticket.Leave()
		if err := c.ticket.Wait(c.offers(ctx)); err != nil {
			return err
		}
		c.place = c.server.MCPHandler.(Orderer).Enter(c.tool)
		c.ticket.Leave() // the rest needs no order
	}
	l := limit{c.server.Timeout(c.tool), ToolOption}
	// The server's limit holds here, too: Claude Code gives up at its own without a
	// message (observed on 2.1.329), so that the tool would run to no purpose.
	if server := c.b.limits[c.key.server].Timeout; l.time == 0 && server > 0 {
		l = limit{server, ServerOption(c.key.server)}
	}
	if l.time != 0 && l != defaultLimit() {
		set := l // only this is on the heap
		c.limit.Store(&set)
	}
	return nil
}

// deadline counts from the last sign of life.
func (c *call) deadline() callback.Deadline {
	since := c.came
	if alive := c.alive.Load(); alive != nil {
		since = *alive
	}
	l := c.currentLimit()
	return callback.Deadline{Limit: l.time, Since: since, SetBy: l.setBy}
}

func (c *call) expired() error {
	c.overdue.Store(true)
	l := c.currentLimit()
	c.late(l) // a tool that does not heed its context may never return
	how := "did not finish within"
	if c.alive.Load() != nil {
		how = "made no progress for"
	}
	return &callback.PublicError{
		Reason: fmt.Sprintf("%s %s %v", c.name, how, l.time),
		Err: &session.TimeoutError{
			What: fmt.Sprintf("%v callback for %s", session.KindMCP, c.name), Limit: l.time, SetBy: l.setBy,
		},
	}
}

func (c *call) progressed() {
	now := c.b.cfg.Clock.Now()
	c.alive.Store(&now)
}

// notify sends a notification to the agent.
func (c *call) notify(method string, params json.RawMessage) error {
	return c.b.tell(c, method, params)
}

// ended notes that the agent waits for the call no longer. An Enter that hangs holds up no other
// call from here on.
func (c *call) ended() {
	c.over.Store(true)
	c.ticket.Leave()
}

// late says that the call has exceeded its limit.
func (c *call) late(l limit) { c.left("no answer within "+l.time.String(), false) }

func (c *call) run(ctx context.Context) (json.RawMessage, error) {
	ctx = c.offers(ctx)
	if refused := c.enter(); refused != nil {
		answer, err := wrap(failed(c.msg, refused.Error()))
		if err != nil {
			return nil, err
		}
		return answer, &callback.ReportedError{Err: refused}
	}
	result, err := c.safely(ctx)
	switch {
	case ctx.Err() != nil: // what it says now is nothing that was waited for
	case err != nil && !errors.As(err, new(*RPCError)):
		c.left(shortly(err), false)
	default:
		c.left("", true)
	}
	reply := rpcMessage{JSONRPC: "2.0", ID: c.msg.ID, Result: result}
	var rpc *RPCError
	var panicked *session.PanicError
	switch {
	case errors.As(err, &panicked):
		what := "the MCP server"
		if c.tool != "" {
			what = "the tool"
		}
		// The panic's value may hold secrets: it goes to the events alone.
		reply = failed(c.msg, what+" failed; the host's events say why")
	case errors.As(err, &rpc):
		reply.Result, reply.Error = nil, rpc
	case err != nil:
		reply = failed(c.msg, err.Error())
	case len(result) == 0:
		return wrapResult(c.msg.ID, json.RawMessage("{}")), nil
	case !jsonscan.Valid(result):
		// It could end the reply early and add members to it.
		return nil, fmt.Errorf("the result of %s is not one JSON value", c.name)
	default:
		return wrapResult(c.msg.ID, result), nil
	}
	answer, wrapErr := wrap(reply)
	if wrapErr != nil {
		return nil, wrapErr
	}
	if panicked != nil {
		return answer, &callback.ReportedError{Err: panicked} // the model has its result, the host its report
	}
	return answer, nil
}

// safely turns a panic of a tool into an error that the model can see.
func (c *call) safely(ctx context.Context) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &session.PanicError{Value: p, Message: c.msg.Method, Stack: debug.Stack()}
		}
	}()
	return c.server.Handle(ctx, c.msg.Method, c.msg.Params)
}

// done runs once, also for a call that never ran.
func (c *call) done() {
	c.b.forget(c)
	c.ticket.Leave()
	if c.place != nil {
		c.place.Leave()
	}
	if c.overdue.Load() {
		c.late(c.currentLimit()) // it began as its limit passed
	} else {
		c.left("", false)
	}
}

// enter asks whether the tool may be called.
func (c *call) enter() (err error) {
	if c.tool == "" || c.b.cfg.Guard == nil {
		return nil
	}
	if c.id, err = c.server.enter(c.b.cfg.Guard); err == nil {
		c.inside.Store(true)
	}
	return err
}

// left says, once, what became of the call.
func (c *call) left(failure string, answered bool) {
	if !c.inside.CompareAndSwap(true, false) {
		return
	}
	if failure != "" {
		failure = c.name + ": " + failure
	}
	(*c.server.guard.Load()).Leave(c.id, failure, answered)
}

// shortly is the text of an error. The value of a panic may hold secrets.
func shortly(err error) string {
	if errors.As(err, new(*session.PanicError)) {
		return "it panicked"
	}
	return err.Error()
}
