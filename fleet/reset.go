package fleet

import (
	"regexp"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// untilReset is how long a limit still holds; 0: unknown. The event of the agent counts
// before the text of its result.
func untilReset(now time.Time, event *protocol.RateLimitMessage, m *sdk.ResultMessage) time.Duration {
	if event != nil && event.Info.Status == "rejected" && event.Info.ResetsAt > 0 {
		return max(time.Unix(int64(event.Info.ResetsAt), 0).Sub(now), 0)
	}
	if m.APIErrorStatus != 429 && m.APIError != "usage_limit_reached" {
		return 0
	}
	return resetIn(now, m.Text())
}

var (
	// resetStamp is the end of the text of Claude Code before 2.0: limit reached|1749924000
	// (reported in anthropics/claude-code#2087, not observed).
	resetStamp = regexp.MustCompile(`limit reached\|(\d{10})\b`)
	// resetClock is that of later ones: resets 12:50am (America/Los_Angeles), with the day if
	// that is more than a day away, and the year if it is another one. The form is that of
	// the code of 2.1.329; an agent that says it was not observed, as it needs a subscription.
	resetClock = regexp.MustCompile(`\bresets?(?: at)? ((?:[A-Z][a-z]{2} \d{1,2}, (?:\d{4}, )?)?\d{1,2}(?::\d{2})?[ap]m) \(([A-Za-z0-9_+/-]+)\)`)
)

// justReset is how long a time that is over counts as the one that was meant. The account is
// then asked again soon.
const justReset = 10 * time.Minute

// resetIn reads in a text how long a limit still holds; 0: it does not say, or in a form that
// is not known. A time without a zone is not known: it is that of the agent's machine.
func resetIn(now time.Time, text string) time.Duration {
	if m := resetStamp.FindStringSubmatch(text); m != nil {
		at, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
		return soon(time.Unix(at, 0).Sub(now))
	}
	m := resetClock.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	zone, err := time.LoadLocation(m[2])
	if err != nil {
		return 0
	}
	today := now.In(zone)
	for _, day := range []string{"", "Jan 2, ", "Jan 2, 2006, "} {
		for _, clock := range []string{"3pm", "3:04pm"} {
			t, err := time.Parse(day+clock, m[1])
			if err != nil {
				continue
			}
			year, month, date := t.Date()
			switch day {
			case "":
				year, month, date = today.Date()
			case "Jan 2, ":
				year = today.Year()
			}
			at := time.Date(year, month, date, t.Hour(), t.Minute(), 0, 0, zone)
			if day == "" && now.Sub(at) > justReset {
				at = at.AddDate(0, 0, 1)
			}
			return soon(at.Sub(now))
		}
	}
	return 0
}

// soon is the wait for a reset: a minute if the time is just over, 0 if it is long over.
func soon(wait time.Duration) time.Duration {
	if wait <= -justReset {
		return 0
	}
	return max(wait, time.Minute)
}
