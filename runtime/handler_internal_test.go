package runtime

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/session"
)

func TestAHandlerThatFallsBehindIsToldHowFar(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	var got []session.EventRecord
	h := &handler{exec: s, handle: func(r session.EventRecord) { got = append(got, r) }, failed: func(error) {}}
	for range eventQueue + 5 {
		h.push(session.EventRecord{Session: "s", Event: &session.StderrLine{Line: "x"}})
	}
	require.NoError(t, s.Run(100))
	require.Len(t, got, eventQueue+1)
	assert.Equal(t, &session.EventsLost{Count: 5}, got[0].Event)
	assert.Equal(t, "s", got[0].Session)
	h.push(session.EventRecord{Event: &session.StderrLine{}})
	require.NoError(t, s.Run(100))
	assert.Equal(t, &session.StderrLine{}, got[len(got)-1].Event, "it is told once")
}

// TestEventsWithoutALogger captures what a runtime without a logger writes to the
// default one: a callback that panics is not silent.
func TestEventsWithoutALogger(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	var out bytes.Buffer
	b := &bus{exec: s}
	b.logTo(func() *slog.Logger { return slog.New(slog.NewTextHandler(&out, nil)) }, slog.LevelWarn)
	b.publish(session.EventRecord{Session: "s", Event: &session.StderrLine{Line: "chatter"}})
	b.publish(session.EventRecord{Session: "s", Event: &session.CallbackFailed{Kind: "permission", Name: "Bash", Err: errors.New("assignment to entry in nil map")}})
	require.NoError(t, s.Run(100))
	assert.Contains(t, out.String(), "assignment to entry in nil map")
	assert.Contains(t, out.String(), "session=s")
	assert.Contains(t, out.String(), "level=WARN")
	assert.NotContains(t, out.String(), "chatter")
}

func TestARuntimeHasALoggerUnlessItIsGivenOne(t *testing.T) {
	t.Parallel()
	rt, err := New(Config{})
	require.NoError(t, err)
	require.NotNil(t, rt.bus.log)
	assert.Equal(t, slog.LevelWarn, rt.bus.from)
	var out bytes.Buffer
	rt, err = New(Config{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	assert.Less(t, rt.bus.from, slog.LevelDebug, "the logger has a level of its own")
}

// Ended is the last event of a session: a crash of its actor after that is in the log alone.
func TestAnActorThatCrashesAfterTheEnd(t *testing.T) {
	t.Parallel()
	rt, err := New(Config{})
	require.NoError(t, err)
	s := rt.bus.subscribe("", nil)
	for _, actor := range []string{"fleet/gone#1/router#2", "fleet"} {
		rt.actorFailed(kernel.Crash{Actor: actor, Reason: errors.New("odd")})
	}
	require.Len(t, s.queue, 1)
	assert.Equal(t, "fleet", s.queue[0].Event.(*session.ActorFailed).Actor)
}
