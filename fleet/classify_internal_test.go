package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
