package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

func TestResetInAText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 4, 7, 30, 0, 0, time.UTC) // 12:30 at night in Los Angeles, 9:30 in Berlin
	for text, want := range map[string]time.Duration{
		"Claude AI usage limit reached|1783154400":                                             time.Date(2026, 7, 4, 8, 40, 0, 0, time.UTC).Sub(now),
		"Claude AI usage limit reached|1749924000":                                             0, // last year
		"You've hit your session limit · resets 12:50am (America/Los_Angeles)":                 20 * time.Minute,
		"You've hit your session limit · resets 12:25am (America/Los_Angeles)":                 time.Minute, // five minutes ago
		"You've hit your limit · resets 10am (Europe/Berlin)":                                  30 * time.Minute,
		"You've hit your limit · resets 9am (Europe/Berlin)":                                   23*time.Hour + 30*time.Minute,
		"Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).":                10*time.Hour + 30*time.Minute,
		"You've hit your limit · resets 12pm (UTC)":                                            4*time.Hour + 30*time.Minute,
		"You've hit your weekly limit · resets Jul 6, 9:30am (Europe/Berlin)":                  48 * time.Hour,
		"You've hit your weekly limit · resets Jan 1, 2027, 8am (UTC)":                         time.Date(2027, 1, 1, 8, 0, 0, 0, time.UTC).Sub(now),
		"You've hit your limit · resets Jul 1, 9am (UTC)":                                      0,
		"5-hour limit reached ∙ resets 3pm":                                                    0, // in which zone?
		"You've hit your limit · resets 3pm (Mars/Base)":                                       0,
		"You've hit your limit · resets 3 (UTC)":                                               0,
		"You've hit your limit · resets 13pm (UTC)":                                            0,
		"You've hit your limit · resets 24:00 (UTC)":                                           0,
		"You've hit your limit · resets 3:60pm (UTC)":                                          0,
		"You've hit your limit · resets Xyz 6, 9am (UTC)":                                      0,
		"You've hit your limit · resets Feb 30, 9am (UTC)":                                     0,
		"This request would exceed your account's rate limit. Please try again later. (reset)": 0,
		"": 0,
	} {
		assert.Equal(t, want, resetIn(now, text), text)
	}
}

// The event counts before the text, and a text of something else says nothing.
func TestResetOfAResult(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 4, 7, 30, 0, 0, time.UTC)
	text := "You've hit your limit · resets 8am (UTC)"
	event := &protocol.RateLimitMessage{}
	event.Info.Status, event.Info.ResetsAt = "rejected", float64(now.Add(time.Hour).Unix())
	allowed := &protocol.RateLimitMessage{}
	allowed.Info.Status, allowed.Info.ResetsAt = "allowed_warning", float64(now.Add(time.Hour).Unix())
	limited := &sdk.ResultMessage{Result: text, APIErrorStatus: 429}
	assert.Equal(t, time.Hour, untilReset(now, event, limited))
	assert.Equal(t, 30*time.Minute, untilReset(now, allowed, limited))
	assert.Equal(t, 30*time.Minute, untilReset(now, nil, &sdk.ResultMessage{Result: text, APIError: "usage_limit_reached"}))
	assert.Zero(t, untilReset(now, nil, &sdk.ResultMessage{Result: text, APIErrorStatus: 500}))
}
