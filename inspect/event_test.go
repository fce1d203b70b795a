package inspect_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// TestEventOf has the facts of each kind of event as fields.
func TestEventOf(t *testing.T) {
	t.Parallel()
	at, boom := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), errors.New("boom")
	decided := func(e supervisor.Event) session.Event { return &session.Supervision{Decision: e} }
	for name, c := range map[string]struct {
		event session.Event
		want  inspect.Event
	}{
		"state":     {&session.StateChanged{From: "ready", To: "running", Reason: "why"}, inspect.Event{Type: "StateChanged", Level: "DEBUG", Cause: "why"}},
		"crash":     {&session.ActorFailed{Actor: "fleet/s#1/router#1", Reason: boom}, inspect.Event{Type: "ActorFailed", Level: "ERROR", Actor: "fleet/s#1/router#1", Cause: "boom"}},
		"failed":    {decided(&supervisor.ChildFailed{Child: "router", Incarnation: 1, Reason: boom}), inspect.Event{Type: "Supervision", Level: "WARN", Actor: "router#1", Cause: "boom"}},
		"scheduled": {decided(&supervisor.RestartScheduled{Child: "router", Reason: boom, Delay: 1500 * time.Millisecond}), inspect.Event{Type: "Supervision", Level: "WARN", Actor: "router", Cause: "boom", DelayMS: 1500}},
		"stays":     {decided(&supervisor.NotRestarted{Child: "a", Incarnation: 2, Why: "it is temporary", Reason: boom}), inspect.Event{Type: "Supervision", Level: "WARN", Actor: "a#2", Cause: "it is temporary: boom"}},
		"too often": {decided(&supervisor.IntensityExceeded{Child: "a", Failures: 4, Limit: supervisor.Intensity{Max: 3, Window: time.Minute}}), inspect.Event{Type: "Supervision", Level: "WARN", Actor: "a", Cause: "4 failures, 3 allowed in 1m0s"}},
		"death":     {&session.Recovering{Death: session.Death{Err: boom}, Backoff: time.Second}, inspect.Event{Type: "Recovering", Level: "WARN", Cause: "boom", DelayMS: 1000}},
		"breaker":   {&session.BreakerOpened{Reason: "exit 1", CoolDown: time.Minute}, inspect.Event{Type: "BreakerOpened", Level: "WARN", Cause: "exit 1", DelayMS: 60_000}},
		"steered":   {&session.Steered{By: "mira", Action: "interrupt"}, inspect.Event{Type: "Steered", Level: "INFO", By: "mira"}},
		"failure":   {&session.Ended{Reason: boom}, inspect.Event{Type: "Ended", Level: "ERROR", Cause: "boom"}},
		"closed":    {&session.Ended{}, inspect.Event{Type: "Ended", Level: "DEBUG"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := inspect.EventOf(session.EventRecord{Session: "s", At: at, Event: c.event, Seq: 7})
			assert.Equal(t, c.event.String(), got.Text)
			got.Text = ""
			c.want.Session, c.want.At, c.want.Seq = "s", at, 7
			assert.Equal(t, c.want, got)
		})
	}
}
