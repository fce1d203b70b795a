package user

import (
	"context"
	"sync"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// DefaultBudget is the default of a runtime's byte budget.
const DefaultBudget = 512 << 20

// Budget bounds the memory that all sessions of a runtime together spend on
// large lines. It is safe for concurrent use; a nil budget has no limit.
type Budget struct {
	mu    sync.Mutex
	limit int64
	used  int64
	// over is the one holder that may exceed the limit, so that some line always
	// completes; debt{} from then on until the line is consumed.
	over  any
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

// Acquire takes n bytes for a line that grows, waiting until some are free.
// holder names the line's reader. One holder at a time is granted what it wants
// beyond the limit, until it calls Done: holders wait with what they have in
// their hands, and would otherwise wait for each other.
func (b *Budget) Acquire(ctx context.Context, ex kernel.Executor, holder any, n int64) error {
	if b == nil {
		return nil
	}
	for {
		b.mu.Lock()
		fits := b.used+n <= b.limit
		if fits || b.over == nil || b.over == holder {
			if !fits {
				b.over = holder
			}
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

// Done says that the holder's line is complete, or given up.
func (b *Budget) Done(holder any) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over == holder {
		b.over = debt{}
		b.checkDebt()
		b.freed.fire()
	}
}

// debt marks a complete line that overdrew the budget and is not consumed: until it is
// paid no other line may overdraw.
type debt struct{}

// checkDebt ends the debt once the bytes in use are within the limit. mu is held.
func (b *Budget) checkDebt() {
	if b.over == (debt{}) && b.used <= b.limit {
		b.over = nil
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
	b.checkDebt()
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

// Limit is the most that may be in use, but for the one line that always completes.
func (b *Budget) Limit() int64 { return b.limit }
