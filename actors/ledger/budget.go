package ledger

import (
	"context"
	"sync"

	"github.com/agent-troupe/troupe/internal/kernel"
)

const (
	// LargeLine is the length above which a line draws on the budget.
	LargeLine = 1 << 20
	// DefaultBudget is the default of a runtime's byte budget.
	DefaultBudget = 512 << 20
)

// Budget bounds the memory that all sessions of a runtime together spend on
// large lines. It is safe for concurrent use; a nil budget has no limit.
type Budget struct {
	mu    sync.Mutex
	limit int64
	used  int64
	freed signal
}

// NewBudget returns a budget of limit bytes; zero or less means
// [DefaultBudget].
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		limit = DefaultBudget
	}
	return &Budget{limit: limit}
}

// Acquire takes n bytes, waiting until some are free. A request above the
// whole limit is granted when nothing else is used, so that it cannot wait for
// ever.
func (b *Budget) Acquire(ctx context.Context, ex kernel.Executor, n int64) error {
	if b == nil {
		return nil
	}
	for {
		b.mu.Lock()
		if b.used == 0 || b.used+n <= b.limit {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		wait := b.freed.wait()
		b.mu.Unlock()
		if err := ex.Await(ctx, wait); err != nil {
			return err
		}
	}
}

// Charge takes n bytes without waiting, for memory that is in use already. A
// negative n gives bytes back.
func (b *Budget) Charge(n int64) { b.Release(-n) }

// Release gives n bytes back.
func (b *Budget) Release(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.freed.fire()
}

// Used is the number of bytes taken.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
