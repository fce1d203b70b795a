package troupenats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

func transcripts(t *testing.T, nc *nats.Conn, name string) *Transcripts {
	t.Helper()
	s, err := OpenTranscripts(t.Context(), nc, TranscriptsConfig{Name: name})
	require.NoError(t, err)
	return s
}

var aSession = session.StoreKey{Project: "-work", Session: "5e550000-0000-4000-8000-000000000001"}

func lines(from, to int) (all []json.RawMessage) {
	for i := from; i < to; i++ {
		all = append(all, json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)))
	}
	return all
}

func loaded(t *testing.T, s *Transcripts) (all []json.RawMessage) {
	t.Helper()
	for e, err := range s.Load(t.Context(), aSession) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func leased(t *testing.T, s *Transcripts, host string, ttl time.Duration) session.Lease {
	t.Helper()
	l, err := s.AcquireLease(t.Context(), session.LeaseRequest{Session: aSession.Session, Holder: session.LeaseHolder{Host: host, PID: 1}, TTL: ttl})
	require.NoError(t, err)
	return l
}

// Two hosts have a session, one after another. The first one appends and renews at the same time,
// and the first answers to it are lost; when it has lost the lease it appends nothing.
func TestASessionGoesToAnotherHost(t *testing.T) {
	t.Parallel()
	connect, name := single(t), job()
	a, b := transcripts(t, connect(t, newNetwork()), name), transcripts(t, connect(t, newNetwork()), name)
	a.js = &deaf{JetStream: a.js, heard: map[string]bool{}}
	l := leased(t, a, "a", time.Hour)
	under := session.WithLease(t.Context(), l)
	const n = 40
	var both sync.WaitGroup
	both.Go(func() {
		for i := range n {
			assert.NoError(t, a.Append(under, aSession, lines(i, i+1)))
		}
	})
	both.Go(func() {
		for range n {
			assert.NoError(t, a.RenewLease(t.Context(), l, time.Hour))
		}
	})
	both.Wait()
	assert.Equal(t, lines(0, n), loaded(t, b), "in their order, each once")
	_, err := b.AcquireLease(t.Context(), session.LeaseRequest{Session: l.Session, TTL: time.Hour})
	held, ok := errors.AsType[*session.LeaseError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, "a", held.Holder.Host)

	require.NoError(t, a.RenewLease(t.Context(), l, time.Nanosecond))
	next := leased(t, b, "b", time.Hour)
	assert.Greater(t, next.Token, l.Token)
	require.NoError(t, b.Append(session.WithLease(t.Context(), next), aSession, lines(n, n+1)))
	for _, err := range []error{a.Append(under, aSession, lines(n+1, n+2)), a.RenewLease(t.Context(), l, time.Hour)} {
		held, ok := errors.AsType[*session.LeaseError](err)
		require.True(t, ok, "%v", err)
		assert.True(t, held.Lost)
		assert.Equal(t, "b", held.Holder.Host)
	}
	require.NoError(t, a.ReleaseLease(t.Context(), l), "it is over")
	require.NoError(t, b.RenewLease(t.Context(), next, time.Hour), "it is not")
	assert.Equal(t, lines(0, n+1), loaded(t, a))
	info, err := a.stream.Info(t.Context(), jetstream.WithSubjectFilter(a.lease(l.Session)))
	require.NoError(t, err)
	assert.EqualValues(t, 1, info.State.Subjects[a.lease(l.Session)], "old messages of the lease are removed")
}

// The clock of the program decides nothing: a lease ends by the server's.
func TestALeaseEndsByTheServersClock(t *testing.T) {
	t.Parallel()
	connect, name := single(t), job()
	a, b := transcripts(t, connect(t, newNetwork()), name), transcripts(t, connect(t, newNetwork()), name)
	began := time.Now() // before the server's answer, which may be late
	l := leased(t, a, "a", 300*time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := b.AcquireLease(t.Context(), session.LeaseRequest{Session: l.Session, TTL: time.Hour})
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	assert.Greater(t, time.Since(began), 200*time.Millisecond)
}

// A stream that was deleted is found again by its name, and new tokens are above the old ones.
func TestTheStreamOfSessionsIsMadeAnew(t *testing.T) {
	t.Parallel()
	nc, name := single(t)(t, newNetwork()), job()
	s := transcripts(t, nc, name)
	s.cfg.silence = 100 * time.Millisecond
	l := leased(t, s, "a", time.Hour)
	require.NoError(t, s.js.DeleteStream(t.Context(), s.name))
	within, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	require.ErrorIs(t, s.Append(session.WithLease(within, l), aSession, lines(0, 1)), ErrGone)
	for _, err := range s.Load(within, aSession) {
		require.ErrorIs(t, err, ErrGone)
	}
	anew := transcripts(t, nc, name)
	_, over := errors.AsType[*session.LeaseError](anew.Append(session.WithLease(within, l), aSession, lines(0, 1)))
	require.True(t, over)
	assert.Greater(t, leased(t, anew, "b", time.Hour).Token, l.Token)
}

// Stores that would lose entries are refused.
func TestTranscriptsThatAreRefused(t *testing.T) {
	t.Parallel()
	nc := single(t)(t, newNetwork())
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		want   error
	}{
		"nothing":           {func(*jetstream.StreamConfig) {}, nil},
		"delete markers":    {func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL, c.AllowMsgTTL = time.Hour, true }, ErrSettings},
		"few messages":      {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, ErrSettings},
		"an age":            {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, ErrSettings},
		"no rollup":         {func(c *jetstream.StreamConfig) { c.AllowRollup = false }, ErrSettings},
		"replicas answer":   {func(c *jetstream.StreamConfig) { c.AllowDirect = true }, ErrSettings},
		"the next protocol": {func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{protocolKey: "2"} }, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := job()
			cfg := jetstream.StreamConfig{Name: "TROUPE_S_" + j, Subjects: []string{"troupe.s." + j + ".>"}, AllowRollup: true}
			c.change(&cfg)
			_, err := js.CreateStream(t.Context(), cfg)
			require.NoError(t, err)
			_, err = OpenTranscripts(t.Context(), nc, TranscriptsConfig{Name: j})
			require.ErrorIs(t, err, c.want)
		})
	}
	_, err = OpenTranscripts(t.Context(), nc, TranscriptsConfig{Name: "a.b"})
	require.ErrorIs(t, err, ErrConfig)
}

// A large entry comes in parts, and those that a writer has left behind are not an entry.
func TestPartsOfAnEntry(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`{"text":"` + strings.Repeat("x", 100) + `"}`)
	packed, err := pack(append(append(lines(0, 2), large), lines(2, 4)...), 40)
	require.NoError(t, err)
	require.Len(t, packed, 5)
	u := unpacker{writes: map[string]struct{}{}, parts: map[string][][]byte{}}
	var text strings.Builder
	for _, m := range []*nats.Msg{packed[0], packed[1], packed[1], packed[3], packed[4], packed[2], packed[0]} {
		_, _ = text.Write(u.lines(m.Header, m.Data))
	}
	assert.Equal(t, "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"+string(large)+"\n", text.String())
	torn, err := pack([]json.RawMessage{large}, 40)
	require.NoError(t, err)
	for _, m := range torn[1:] {
		assert.Empty(t, u.lines(m.Header, m.Data))
	}
	for _, wrong := range []string{"", "[]", "{", "1"} {
		_, err := pack([]json.RawMessage{json.RawMessage(wrong)}, 40)
		require.Error(t, err, wrong)
	}
}
