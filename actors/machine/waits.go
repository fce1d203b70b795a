package machine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Waiting is something that the session waits for.
type Waiting struct {
	session.Wait
	Seq uint64 // of a request of the agent; 0: it is another thing
}

// Waits lists what the session waits for: the consumer, requests, calls, background tasks, turns,
// each oldest first; then progress. The callback actors have the details of requests.
func (m *Routing) Waits(now time.Time) []Waiting {
	var all []Waiting
	add := func(what, id string, since time.Time, limit time.Duration, seq uint64) {
		all = append(all, Waiting{session.Wait{What: what, ID: id, Age: now.Sub(since), Limit: limit, Since: since}, seq})
	}
	if m.Flow.Stalled {
		add("consumer", "", m.Flow.StalledAt, m.cfg.Limits.Consumer, 0)
	}
	for _, r := range m.requests {
		if r.Ran {
			add(r.Kind.String()+" request", r.id(), r.Opened, 0, r.Seq)
		}
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		add("control request "+c.Subtype, c.ID, c.Opened, c.Limit, 0)
	}
	tasks := slices.Clone(m.Facts.Tasks)
	slices.SortStableFunc(tasks, func(a, b Task) int { return cmp.Compare(a.Seen.UnixNano(), b.Seen.UnixNano()) })
	for i := range tasks {
		if t := &tasks[i]; !m.Over {
			add(strings.TrimSpace("background task "+t.Description), t.TaskID, t.Seen, 0, 0)
		}
	}
	for i := range m.Turns {
		t := &m.Turns[i]
		add("turn "+t.State.String(), t.ID, t.Opened, 0, 0)
	}
	if r := &m.Retries; !r.Since.IsZero() {
		add("retries of the model's API", "", r.Since, m.cfg.Retry, 0)
	}
	if m.Stall.Alone {
		add("progress of the turn", "", m.Stall.At, m.cfg.Stall, 0)
	}
	return all
}

// Inventory is what is under way in a session.
type Inventory struct {
	Running string   // the id of the turn that the agent works on; "": none
	OwnTurn bool     // it works on a turn that it started itself
	Queued  []string // the other open turns, in order
	Tasks   []protocol.BackgroundTask
}

// Inventory lists what is under way.
func (m *Routing) Inventory() Inventory {
	all := Inventory{OwnTurn: m.Facts.OwnTurn, Tasks: m.LiveTasks()}
	running := m.oldestWritten()
	for i := range m.Turns {
		if t := &m.Turns[i]; t == running && !all.OwnTurn {
			all.Running = t.ID
		} else {
			all.Queued = append(all.Queued, t.ID)
		}
	}
	return all
}
