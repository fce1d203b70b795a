package mcp

import (
	"context"
	"encoding/json"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// What a bridge offers a server travels in the context of Handle: a way to
// notify the agent, a way to wait, and the call's place in the order of
// arrival. A server that is called without a bridge does without.

type contextKey int

const (
	notifierKey contextKey = iota
	executorKey
	placeKey
	aliveKey
)

// ContextWithNotifier returns a context whose server can send notifications,
// such as notifications/progress, to the agent. notify may be called from any
// goroutine; it queues the message and does not wait for the agent.
func ContextWithNotifier(ctx context.Context, notify func(method string, params json.RawMessage) error) context.Context {
	return context.WithValue(ctx, notifierKey, notify)
}

// NotifierFromContext returns the way to the agent, if there is one.
func NotifierFromContext(ctx context.Context) (func(method string, params json.RawMessage) error, bool) {
	notify, _ := ctx.Value(notifierKey).(func(method string, params json.RawMessage) error)
	return notify, notify != nil
}

// Alive is a sign of life of the call of ctx: its deadline starts anew. Telling
// the agent of progress is one, too.
func Alive(ctx context.Context) {
	if progressed, ok := ctx.Value(aliveKey).(func()); ok {
		progressed()
	}
}

// ContextWithExecutor returns a context whose server waits by the executor's
// rules.
func ContextWithExecutor(ctx context.Context, ex session.Executor) context.Context {
	return context.WithValue(ctx, executorKey, ex)
}

// Await waits until done is closed or ctx ends, and returns nil or the cause of
// ctx; when both hold, done wins. It waits by the executor that ctx carries,
// else as a goroutine does.
func Await(ctx context.Context, done <-chan struct{}) error {
	if ex, ok := ctx.Value(executorKey).(session.Executor); ok {
		return ex.Await(ctx, done)
	}
	return kernel.GoExecutor{}.Await(ctx, done)
}

// Orderer is a [session.MCPHandler] whose calls wait for each other in the order in which
// the agent made them. Handle alone cannot know it: each call is a task of its
// own, and tasks start in any order.
type Orderer interface {
	// Enter takes the place of a tools/call of this tool. It does not block,
	// and is called for one call of a session at a time, in their order. A nil
	// place means that the call waits for no other.
	Enter(tool string) Place
}

// Place is a call's place in an order.
type Place interface {
	// Leave gives the place up. Every place must be left, also when Handle is
	// never called; leaving again does nothing.
	Leave()
}

// ContextWithPlace returns the context of the call that has this place.
func ContextWithPlace(ctx context.Context, p Place) context.Context {
	return context.WithValue(ctx, placeKey, p)
}

// PlaceFromContext returns the call's place; nil when nobody took one.
func PlaceFromContext(ctx context.Context) Place {
	p, _ := ctx.Value(placeKey).(Place)
	return p
}
