package sdk

import (
	"context"
	"sync"

	"github.com/agent-troupe/troupe/runtime"
)

// clientKey is where the contexts of Options.Children have their client.
type clientKey struct{}

// ClientOf returns a client of the session of the child that ctx belongs to: the context of
// one of the functions of a [session.Behavior], or one derived from it. It is nil for any
// other context. The client is connected, also before [Client.Connect] has returned: what
// needs the agent waits until that is ready. It works for sessions of [Query] and [Run], too.
//
// With such a context [Client.Close] returns at once, because the session ends after its
// children.
func ClientOf(ctx context.Context) *Client {
	client, _ := ctx.Value(clientKey{}).(func(*runtime.Session) *Client)
	s := runtime.SessionOf(ctx)
	if client == nil || s == nil {
		return nil
	}
	return client(s)
}

// clientOf adds the client of a session with those options to the contexts of its children.
func clientOf(o *Options, l link, home *runtime.Runtime) func(context.Context) context.Context {
	c := NewClient(o)
	c.opts = nil
	var once sync.Once
	client := func(s *runtime.Session) *Client {
		once.Do(func() {
			l.session = s
			c.dialing = &dial{home: home, link: l}
		})
		return c
	}
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, clientKey{}, client) }
}
