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

// quick is how many hooks that return at once are between the two of [Probe].
const quick = 200

// held is how long the whole may take: a hook that holds up the reader waits for twice as long.
const held = 20 * time.Second

// Probe finds out whether a callback may take its time: the agent asks a hook
// and writes an event behind the question, and the hook waits until the event
// has been delivered. It does so twice: before and after many hooks that return
// at once.
func Probe(ctx context.Context, j Job) (err error) {
	j.Mode, j.N = measure.Probe, quick
	r := &run{Job: j}
	delivered := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	calls := 0 // the agent asks one after the other
	c := sdk.NewClient(r.Options(func(ctx context.Context) error {
		calls++
		var event <-chan struct{}
		switch calls {
		case 1:
			event = delivered[0]
		case quick + 2:
			event = delivered[1]
		default:
			return nil
		}
		select {
		case <-event:
			return nil
		case <-time.After(2 * held):
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
	seen := 0
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return err
		}
		if _, ok := m.(*sdk.PartialAssistantMessage); ok && seen < len(delivered) {
			close(delivered[seen])
			seen++
		}
	}
	switch {
	case seen < len(delivered):
		return fmt.Errorf("the agent wrote %d events behind its questions, in %v", seen, time.Since(began))
	case time.Since(began) > held:
		return ErrOnReader
	}
	return nil
}
