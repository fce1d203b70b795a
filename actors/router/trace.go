package router

import (
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// trace shows an effect to those who follow the session, before the user sees it.
func (b *Box) trace(e machine.Effect) {
	t := b.cfg.Trace
	if t == nil {
		return
	}
	now := b.cfg.Clock.Now()
	switch e := e.(type) {
	case machine.Deliver:
		for i := range e.Entries {
			entry := &e.Entries[i]
			t.Message(now, entry.Frame)
			for j := range entry.Ends {
				over(t, now, &entry.Ends[j])
			}
		}
	case machine.Dropped:
		t.Message(now, e.Frame)
	case machine.TurnOver:
		over(t, now, &e.Outcome)
	case machine.Moved:
		if e.State == machine.TurnWritten {
			t.Written(now, e.ID)
		}
	}
}

func over(t *session.Trace, now time.Time, o *machine.Outcome) {
	end := session.TracedTurn{UUID: o.ID, Result: o.Result, Err: o.Err}
	end.Recovered = o.Result != nil && o.Result.Recovered
	t.Over(now, end)
}
