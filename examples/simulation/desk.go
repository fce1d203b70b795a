package simulation

import (
	"context"
	"fmt"
	"sync"

	"github.com/agent-troupe/troupe/sdk"
)

// Status is how far a refund has come.
type Status string

// The states of a refund.
const (
	InProgress Status = "in progress"
	Done       Status = "done"
	Failed     Status = "failed" // a person has to look at it
)

// board is the refunds of a desk. It is safe for concurrent use.
type board struct {
	mu     sync.Mutex
	orders map[int]Status
}

func (b *board) set(order int, s Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.orders == nil {
		b.orders = make(map[int]Status)
	}
	b.orders[order] = s
}

// Status is the state of an order's refund; empty if none was requested.
func (b *board) Status(order int) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.orders[order]
}

// ForgetfulDesk has an agent refund orders, and has a bug: when the turn has no result, for
// example because the agent died, the order stays in progress.
type ForgetfulDesk struct{ board }

// Refund asks the agent for a refund and waits for it.
func (d *ForgetfulDesk) Refund(ctx context.Context, c *sdk.Client, order int) error {
	d.set(order, InProgress)
	result, err := ask(ctx, c, order)
	if err != nil {
		return err
	}
	d.set(order, outcome(result))
	return nil
}

// Desk is ForgetfulDesk without the bug.
type Desk struct{ board }

// Refund asks the agent for a refund and waits for it. In every case the order has an
// outcome afterwards.
func (d *Desk) Refund(ctx context.Context, c *sdk.Client, order int) error {
	d.set(order, InProgress)
	result, err := ask(ctx, c, order)
	if err != nil {
		d.set(order, Failed)
		return err
	}
	d.set(order, outcome(result))
	return nil
}

func ask(ctx context.Context, c *sdk.Client, order int) (*sdk.ResultMessage, error) {
	turn, err := c.Send(ctx, sdk.UserText(fmt.Sprintf("refund order %d", order)))
	if err != nil {
		return nil, err
	}
	return turn.Result(ctx)
}

func outcome(r *sdk.ResultMessage) Status {
	if r.Failed() {
		return Failed
	}
	return Done
}
