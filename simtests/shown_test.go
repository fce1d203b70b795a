package simtests_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// onlooker looks at the runtime from outside while sessions go on.
type onlooker struct {
	*simtests.World
	since map[string]time.Time // when waits began, by session and wait
	state map[string]string    // of sessions, as the stream of events says
	ended map[string]bool
}

// looks takes a snapshot now and then, for an hour: a session without a reader waits
// without an end, and the world ends when nothing happens any more.
func (o *onlooker) looks(ctx context.Context) {
	for o.Elapsed() < time.Hour && idle(ctx, o.World, 1+o.Rand().IntN(20)) == nil {
		t := o.Runtime().Tree(ctx)
		for i := range t.Sessions {
			o.session(&t.Sessions[i])
		}
		assert.GreaterOrEqual(o, t.LargeLines, int64(0))
	}
}

// session holds what is shown of a session against what was shown of it before.
func (o *onlooker) session(t *runtime.SessionTree) {
	assert.False(o, t.Opened.After(t.StateSince) || t.StateSince.After(t.At), "shown: opened %v, %s since %v, at %v", t.Opened, t.State, t.StateSince, t.At)
	assert.Zero(o, t.PID)
	assert.Equal(o, t.Unread == 0, t.UnreadBytes == 0, "shown: %d messages of %d bytes are unread", t.Unread, t.UnreadBytes)
	for _, w := range t.Waits {
		assert.True(o, w.What != "" && w.Age >= 0 && w.Limit >= 0, "shown: %+v", w)
		if w.ID == "" {
			continue
		}
		key, since := t.ID+" "+w.What+" "+w.ID, t.At.Add(-w.Age)
		if before, again := o.since[key]; again {
			assert.Equal(o, before, since, "shown: %s waits since another time", key)
		}
		o.since[key] = since
	}
	names := map[string]bool{}
	for _, a := range t.Actors {
		assert.False(o, names[a.Name], "shown: two actors are called %s", a.Name)
		names[a.Name] = true
		later := !strings.HasSuffix(a.Name, "#1") // the one before may have failed while it stopped
		assert.True(o, a.State != "" && a.Depth >= 0 && (a.LastFailure == "" || a.Restarts > 0 || later), "shown: %+v", a)
	}
}

// reads follows the events of all sessions.
func (o *onlooker) reads(ctx context.Context) {
	for r := range o.Runtime().Events(ctx) {
		if r.Session == "" {
			continue
		}
		assert.False(o, o.ended[r.Session], "one-terminal: %T came after the end", r.Event)
		switch e := r.Event.(type) {
		case *session.StateChanged:
			if from := o.state[r.Session]; from != "" {
				assert.Equal(o, from, e.From, "state-order")
			}
			o.state[r.Session] = e.To
		case *session.Ended:
			o.ended[r.Session] = true
			assert.Equal(o, e.Reason != nil, o.state[r.Session] == session.StateFailed.String(), "told: %s for the reason %v", o.state[r.Session], e.Reason)
		}
	}
}

// TestWhatIsShown: whatever goes wrong, snapshots and the stream of events agree with each
// other and with those before.
func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(60), Cost: 4, Runtime: room}, func(w *simtests.World) {
		w.Faults(everyFault()...)
		o := &onlooker{World: w, since: map[string]time.Time{}, state: map[string]string{}, ended: map[string]bool{}}
		ctx, leave := context.WithCancel(w.Context())
		w.Go(func() { o.looks(ctx) })
		w.Go(func() { o.reads(ctx) })
		w.Go(func() { converse(w) })
		w.Run()
		leave()
		w.Run()
		w.Sometimes("a session ended", len(o.ended) > 0)
	})
}
