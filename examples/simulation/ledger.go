package simulation

import (
	"context"
	"fmt"
	"sync"

	"github.com/agent-troupe/troupe/sdk"
)

// Bank transfers the money of an order. It takes a while.
type Bank func(ctx context.Context, order int) error

// Payer pays an order at most once.
type Payer interface {
	Pay(ctx context.Context, order int) error
}

// RacyLedger pays orders, and has a bug: between the check and the note that the order is
// paid another session may do the same check. The race detector of Go does not see this
// race, because every access holds the lock.
type RacyLedger struct {
	Bank Bank

	mu   sync.Mutex
	paid map[int]bool
}

// Pay implements [Payer], but for the bug.
func (l *RacyLedger) Pay(ctx context.Context, order int) error {
	if l.isPaid(order) {
		return nil
	}
	if err := l.Bank(ctx, order); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paid == nil {
		l.paid = make(map[int]bool)
	}
	l.paid[order] = true
	return nil
}

func (l *RacyLedger) isPaid(order int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paid[order]
}

// Ledger is RacyLedger without the bug: an order is claimed before the bank is called.
type Ledger struct {
	Bank Bank

	mu      sync.Mutex
	claimed map[int]bool
}

// Pay implements [Payer]. Whether a transfer that failed took place is the bank's to say,
// so the order stays claimed.
func (l *Ledger) Pay(ctx context.Context, order int) error {
	if !l.claim(order) {
		return nil
	}
	return l.Bank(ctx, order)
}

func (l *Ledger) claim(order int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.claimed[order] {
		return false
	}
	if l.claimed == nil {
		l.claimed = make(map[int]bool)
	}
	l.claimed[order] = true
	return true
}

// Shop is the MCP server whose tool pays an order.
func Shop(p Payer) (*sdk.MCPServer, error) {
	type in struct {
		Order int `json:"order"`
	}
	return sdk.NewMCPServer("shop", "1", sdk.NewTool("pay", "pays an order back", func(ctx context.Context, in in) (*sdk.ToolResult, error) {
		if err := p.Pay(ctx, in.Order); err != nil {
			return nil, fmt.Errorf("pay order %d: %w", in.Order, err)
		}
		return sdk.Text("paid"), nil
	}))
}
