package simtests_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// inAnyWeather are all faults of the cloud.
func inAnyWeather() []simtests.Fault {
	return []simtests.Fault{
		simtests.RequestLost(0.1), simtests.RequestRefused(0.1), simtests.RequestSlow(0.1, 20*time.Second),
		simtests.RequestFails(0.1, 429), simtests.RequestFails(0.05, 503), simtests.StreamBreaks(0.3), simtests.StreamEnds(0.2),
		simtests.StreamSilent(0.2), simtests.StreamDrips(0.2, 30*time.Millisecond), simtests.EventsTwice(0.3), simtests.EventsSwapped(0.2),
		simtests.EventsAgain(0.2),
	}
}

// askCloud sends messages to a session in the cloud. Each ends; none arrives twice; no event
// comes twice; a result belongs to its message. stops: the host may be shut down
// and actors may die meanwhile.
func askCloud(w *simtests.World, o *sdk.Options, messages int, stops bool) {
	s := &cloudtest.Server{}
	c, err := w.DialCloud(o, s)
	if err != nil {
		w.Sometimes("the session does not start", true)
		return
	}
	var ids []string
	reader := make(chan struct{})
	w.Go(func() {
		defer close(reader)
		for m, err := range c.Messages(w.Context()) {
			if err != nil {
				return // the turns have it, too
			}
			if e, ok := m.(*protocol.CloudAgentEventMessage); ok {
				ids = append(ids, e.ID)
			}
		}
	})
	for i := range messages {
		text := fmt.Sprintf("message %d", i)
		turn, err := c.Send(w.Context(), sdk.UserText(text))
		if err != nil {
			break
		}
		r, err := turn.Result(w.Context())
		switch {
		case err != nil:
			assert.True(w, stops || errors.As(err, new(*session.CloudError)), "%v", err)
			w.Sometimes("the session ends", true)
		case r.Failed():
			w.Sometimes("a message fails", true)
		case r.Result == "" && stops: // the host was shut down, which interrupts the turn
		default:
			w.Sometimes("a message succeeds", true)
			assert.Contains(w, r.Result, "answer to "+text+" in")
			assert.Equal(w, 1, strings.Count(r.Result, "answer"))
		}
	}
	_ = c.Close(w.Context()) // a session that has failed says so
	w.Sleep(time.Second)     // the stream's task ends after the session
	assert.Zero(w, s.Streams(), "streams that are open")
	<-reader
	slices.Sort(ids)
	assert.Equal(w, slices.Compact(slices.Clone(ids)), ids, "an event came twice")
	arrived := slices.Sorted(slices.Values(s.Messages()))
	assert.Equal(w, slices.Compact(slices.Clone(arrived)), arrived, "a message arrived twice")
	_, started := w.Agents()
	assert.Zero(w, started, "there are no processes")
}

// TestCloudInACalmWorld: without faults every message has its answer.
func TestCloudInACalmWorld(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: 50, Twice: 1}, func(w *simtests.World) {
		s := &cloudtest.Server{}
		c := w.OpenCloud(nil, s)
		for i := range 3 {
			turn, err := c.Send(w.Context(), sdk.UserText("hi"))
			require.NoError(w, err)
			r, err := turn.Result(w.Context())
			require.NoError(w, err)
			require.Equal(w, fmt.Sprintf("answer to hi in turn_%d", i+1), r.Result)
		}
		require.NoError(w, c.Close(w.Context()))
	})
}

// TestCloudInAnyWeather: the whole session, in the seed's order, with all faults of HTTP.
func TestCloudInAnyWeather(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: fewer(300)}, func(w *simtests.World) {
		w.Faults(inAnyWeather()...)
		askCloud(w, &sdk.Options{MaxRestarts: 3}, 3, false)
	})
}

// TestCloudWhenActorsDie: with Troupe's own actors dying, the clock jumping and the host going.
func TestCloudWhenActorsDie(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: fewer(200)}, func(w *simtests.World) {
		w.Faults(append(inAnyWeather(), simtests.KillActor(0.01), simtests.KillInside(0.01), simtests.ClockJump(0.005, time.Minute), simtests.HostShutdown(0.002))...)
		askCloud(w, &sdk.Options{MaxRestarts: 3, PassivateAfter: time.Minute}, 3, true)
	})
}

// TestCloudThatIsInterrupted: interrupts and closes at any time end what runs.
func TestCloudThatIsInterrupted(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: fewer(200)}, func(w *simtests.World) {
		w.Faults(inAnyWeather()...)
		s := &cloudtest.Server{}
		c, err := w.DialCloud(&sdk.Options{MaxRestarts: 2, Discard: true}, s)
		if err != nil {
			return
		}
		turn, err := c.Send(w.Context(), sdk.UserText("one"))
		if err != nil {
			return
		}
		w.Sleep(time.Duration(w.Rand().IntN(3000)) * time.Millisecond)
		if w.Rand().IntN(2) == 0 {
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			_, err := c.Interrupt(ctx)
			w.Sometimes("the interrupt fails", err != nil)
			cancel()
		}
		_ = c.Close(w.Context()) // a session that has failed says so
		w.Sleep(time.Second)
		_, err = turn.Result(w.Context())
		w.Sometimes("the turn ends well", err == nil)
		w.Sometimes("the turn is lost", err != nil)
		assert.Zero(w, s.Streams())
	})
}

// TestCloudOnBothLevels plays the scenario on production's dispatcher, too.
func TestCloudOnBothLevels(t *testing.T) {
	for _, level := range []simtests.Level{simtests.Simulated, simtests.Concurrent} {
		t.Run(level.String(), func(t *testing.T) {
			simtests.Explore(t, simtests.Config{Seeds: 20, Level: level}, func(w *simtests.World) {
				w.Faults(inAnyWeather()...)
				askCloud(w, &sdk.Options{MaxRestarts: 3}, 2, false)
			})
		})
	}
}
