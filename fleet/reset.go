package fleet

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// untilReset is how long a limit still holds; 0: nobody has said. The event of the agent
// counts before the text of its result.
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
	// (anthropics/claude-code#2087).
	resetStamp = regexp.MustCompile(`limit reached\|(\d{10})\b`)
	// resetClock is that of later ones: resets 12:50am (America/Los_Angeles), reset at 1pm
	// (Etc/GMT+5) (anthropics/claude-code#74079, #2087), with a day where the window is longer
	// than one. None was observed here.
	resetClock = regexp.MustCompile(`\bresets?(?: at)? (?:([A-Z][a-z]{2}) (\d{1,2})(?:,| at)? (?:at )?)?(\d{1,2})(?::(\d{2}))? ?([ap]m)? \(([A-Za-z0-9_+/-]+)\)`)
)

// justReset is how long a time of day that is over counts as that of today. The account is
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
	if m == nil || m[4] == "" && m[5] == "" {
		return 0
	}
	zone, err := time.LoadLocation(m[6])
	if err != nil {
		return 0
	}
	hour, _ := strconv.Atoi(m[3])
	minute, _ := strconv.Atoi(m[4]) // "" is the whole hour
	if m[5] != "" {
		if hour < 1 || hour > 12 {
			return 0
		}
		if hour %= 12; m[5] == "pm" {
			hour += 12
		}
	}
	if hour > 23 || minute > 59 {
		return 0
	}
	today := now.In(zone)
	at := time.Date(today.Year(), today.Month(), today.Day(), hour, minute, 0, 0, zone)
	if m[1] != "" {
		month := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", m[1])
		day, _ := strconv.Atoi(m[2])
		if month < 0 || month%3 != 0 {
			return 0
		}
		at = time.Date(today.Year(), time.Month(month/3+1), day, hour, minute, 0, 0, zone)
		if now.Sub(at) > 30*24*time.Hour { // of next year
			at = at.AddDate(1, 0, 0)
		}
	} else if now.Sub(at) > justReset {
		at = at.AddDate(0, 0, 1)
	}
	return soon(at.Sub(now))
}

// soon is a wait that is not over before it begins.
func soon(wait time.Duration) time.Duration {
	if wait <= -justReset {
		return 0
	}
	return max(wait, time.Minute)
}
