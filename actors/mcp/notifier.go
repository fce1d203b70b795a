package mcp

import (
	"context"
	"encoding/json"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// The context of Handle has the functions of the bridge for a server: to notify the
// agent, to wait, and the call's place in the order of arrival. A server that is called
// without a bridge lacks them.

type contextKey int

const (
	notifierKey contextKey = iota
	executorKey
	placeKey
	aliveKey
)

// offering is the context of a call with all of that in one value: each key of its own
// would be two allocations, for every call.
type offering struct {
	context.Context
	call *call
}

// offers is the context of the call's task.
func (c *call) offers(ctx context.Context) context.Context {
	c.scope = offering{ctx, c}
	return &c.scope
}

// Value implements [context.Context].
func (o *offering) Value(key any) any {
	switch key {
	case notifierKey:
		return o.call.notify
	case executorKey:
		return o.call.b.cfg.Exec
	case aliveKey:
		return o.call.progressed
	case placeKey:
		return o.call.place
	}
	return o.Context.Value(key)
}

// ContextWithNotifier returns a context whose server can send notifications,
// such as notifications/progress, to the agent. notify may be called from any
// goroutine; it queues the message and does not wait for the agent.
func ContextWithNotifier(ctx context.Context, notify func(method string, params json.RawMessage) error) context.Context {
	return context.WithValue(ctx, notifierKey, notify)
}

// NotifierFromContext returns the notify function of the context, if it has one.
func NotifierFromContext(ctx context.Context) (func(method string, params json.RawMessage) error, bool) {
	notify, _ := ctx.Value(notifierKey).(func(method string, params json.RawMessage) error)
	return notify, notify != nil
}

// Alive restarts the time limit of the call whose context is ctx. A progress notification
// restarts it, too.
func Alive(ctx context.Context) {
	if progressed, ok := ctx.Value(aliveKey).(func()); ok {
		progressed()
	}
}

// ContextWithExecutor returns a context in which [Await] waits with the executor ex.
func ContextWithExecutor(ctx context.Context, ex session.Executor) context.Context {
	return context.WithValue(ctx, executorKey, ex)
}

// Await waits until done is closed or ctx ends. It returns nil if done is closed,
// otherwise the cause of ctx. If ctx has an executor, Await waits with it.
func Await(ctx context.Context, done <-chan struct{}) error {
	if ex, ok := ctx.Value(executorKey).(session.Executor); ok {
		return ex.Await(ctx, done)
	}
	return kernel.GoExecutor{}.Await(ctx, done)
}

// Orderer is a [session.MCPHandler] whose calls wait for each other in the order in which
// the agent made them. Handle alone cannot know the order: each call is a separate task,
// and tasks start in any order.
type Orderer interface {
	// Enter returns the place of a tools/call of this tool in the order. It does not
	// block. It is called for one call of a session at a time, in their order. nil means
	// that the call does not wait for other calls.
	Enter(tool string) Place
}

// Place is a call's place in an order.
type Place interface {
	// Leave releases the place. Every place must be released, even if Handle is never
	// called. A second Leave does nothing.
	Leave()
}

// ContextWithPlace returns a context with the place of a call.
func ContextWithPlace(ctx context.Context, p Place) context.Context {
	return context.WithValue(ctx, placeKey, p)
}

// PlaceFromContext returns the call's place; nil if the call has no place.
func PlaceFromContext(ctx context.Context) Place {
	p, _ := ctx.Value(placeKey).(Place)
	return p
}
