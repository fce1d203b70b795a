package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/sdk"
)

// A wait of hours that the agent asks for is a window that is spent, whatever the agent calls
// it: the job parks. A short one is waited out by the task.
func TestALongWaitIsASpentWindow(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{maxRetryAfter + time.Minute: StopUsageLimit, 5 * time.Hour: StopUsageLimit, maxRetryAfter: "", time.Minute: ""} {
		o := verdictOf(&sdk.ResultError{Result: &sdk.ResultMessage{Subtype: "success", IsError: true, APIError: "rate_limit"}, RetryAfter: wait})
		assert.Equal(t, want, o.stops, wait)
		assert.Equal(t, wait, o.after)
	}
}

// An attempt that ends because its lease is lost says nothing about its task.
func TestALostLeaseIsNoVerdict(t *testing.T) {
	t.Parallel()
	o := verdictOf(fmt.Errorf("the note: %w", queue.ErrLeaseLost))
	assert.Equal(t, Interrupted, o.status)
	assert.True(t, o.lost)
}
