package main

import (
	"context"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// conversation is a session of the service.
type conversation struct {
	id     string
	began  time.Time
	client *sdk.Client
	feed   *feed
	over   chan struct{}
}

// converse opens a session, which lives until it is deleted or fails. ctx is of the start.
func (s *service) converse(ctx context.Context, id string) (*conversation, error) {
	c := &conversation{id: id, began: time.Now(), feed: newFeed(), over: make(chan struct{})}
	opts := *s.opts
	opts.OnEvent = func(e sdk.EventRecord) {
		switch e := e.Event.(type) {
		case *session.StateChanged:
			c.feed.publish("state", e.To)
		case *session.Recovering, *session.Recovered, *session.TurnStalled, *session.StartHeld:
			c.feed.publish("note", e.String())
		}
	}
	opts.CanUseTool = func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return s.waiting.ask(ctx, id, r, func(w *approval) { c.feed.publish("approval", w) })
	}
	c.client = sdk.NewClient(&opts)
	if err := c.client.Connect(ctx); err != nil {
		return nil, errors.Join(err, c.client.Close(context.WithoutCancel(ctx)))
	}
	go c.read() //nolint:gosec // it outlives the request that opens the session
	return c, nil
}

// read hands on what the agent says. It always reads, so that the session never waits for
// the people who watch it.
func (c *conversation) read() {
	defer close(c.over)
	defer c.feed.end()
	for m, err := range c.client.Messages(context.Background()) {
		if err != nil {
			c.feed.publish("failed", err.Error())
			return
		}
		c.feed.publish("message", m.Raw())
	}
}

// end closes the session; its processes are gone then.
func (c *conversation) end(ctx context.Context) error {
	err := c.client.Close(ctx)
	select {
	case <-c.over:
	case <-ctx.Done():
	}
	return err
}
