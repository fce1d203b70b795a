package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

// ErrOnReader says that a callback holds up the reader of the agent's output.
var ErrOnReader = errors.New("a callback ran on the reader: a message behind it was not delivered until it had returned")

// Probe finds out whether a callback may take its time: the agent asks a hook
// and writes an event behind the question, and the hook waits until the event
// has been delivered.
func Probe(ctx context.Context, j Job) (err error) {
	j.Mode, j.N = measure.Probe, 1
	r := &run{Job: j}
	delivered := make(chan struct{})
	c := sdk.NewClient(r.Options(func(ctx context.Context) error {
		select {
		case <-delivered:
			return nil
		case <-time.After(5 * time.Second):
			return ErrOnReader
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}))
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	if err := c.Connect(ctx); err != nil {
		return err
	}
	began := time.Now()
	turn, err := c.Send(ctx, sdk.UserText(measure.Prompt(j.Mode, j.N)))
	if err != nil {
		return err
	}
	seen := false
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return err
		}
		if _, ok := m.(*sdk.PartialAssistantMessage); ok && !seen {
			seen = true
			close(delivered)
		}
	}
	switch {
	case !seen:
		return fmt.Errorf("the agent wrote no event behind its question, in %v", time.Since(began))
	case time.Since(began) > 4*time.Second:
		return ErrOnReader
	}
	return nil
}
