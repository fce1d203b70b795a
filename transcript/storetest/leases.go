package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

// tests of a store that implements session.LeaseStore.
func leaserTests() []leaserTest {
	return []leaserTest{
		{"a lease has one holder", oneHolder},
		{"a lease that has run out goes to the next", runsOut},
		{"a lease that has run out is its holder's until somebody else has one", staysOut},
		{"the lease of a dead holder goes to the next", deadHolder},
		{"a lease that was given back goes to the next", givenBack},
		{"a lease that is over cannot be used", over},
		{"leases of two sessions are apart", apart},
		{"tokens rise after the session was deleted", outlives},
		{"one of many gets the lease", oneOfMany},
		{"nothing is appended after the lease is over", fenced},
		{"the context of a lease ends", leaseContext},
	}
}

type leaserTest struct {
	name string
	run  func(*testing.T, session.LeaseStore)
}

// leases skips a store without leases.
func (c leaserTest) leases(t *testing.T, s session.Store) {
	l, ok := s.(session.LeaseStore)
	if !ok {
		t.Skip("the store is no session.LeaseStore")
	}
	probe, err := l.AcquireLease(t.Context(), request("probe", "probe", time.Hour))
	supported(t, err)
	require.NoError(t, l.ReleaseLease(t.Context(), probe))
	c.run(t, l)
}

func request(id, host string, ttl time.Duration) session.LeaseRequest {
	return session.LeaseRequest{Session: id, Holder: session.LeaseHolder{Host: host, PID: 17, Since: time.Unix(1800000000, 0).UTC(), Boot: "b"}, TTL: ttl}
}

func acquired(t *testing.T, s session.LeaseStore, id, host string, ttl time.Duration) session.Lease {
	t.Helper()
	l, err := s.AcquireLease(t.Context(), request(id, host, ttl))
	require.NoError(t, err)
	require.Equal(t, id, l.Session)
	return l
}

// taken requires that the error is one of a lease that the host has.
func taken(t *testing.T, err error, host string) {
	t.Helper()
	held, ok := errors.AsType[*session.LeaseError](err)
	require.True(t, ok, "want a *session.LeaseError: %v", err)
	require.NoError(t, held.Err, "somebody has it")
	want := request("", host, 0).Holder
	require.True(t, want.Since.Equal(held.Holder.Since), "since %v", held.Holder.Since)
	held.Holder.Since = want.Since
	require.Equal(t, want, held.Holder)
}

func isOver(t *testing.T, err error) {
	t.Helper()
	_, ok := errors.AsType[*session.LeaseError](err)
	require.True(t, ok, "want a *session.LeaseError: %v", err)
}

func under(t *testing.T, l session.Lease) context.Context {
	t.Helper()
	return session.WithLease(t.Context(), l)
}

func oneHolder(t *testing.T, s session.LeaseStore) {
	l := acquired(t, s, id, "a", time.Hour)
	_, err := s.AcquireLease(t.Context(), request(id, "b", time.Hour))
	taken(t, err, "a")
	_, err = s.AcquireLease(t.Context(), request(id, "a", time.Hour))
	taken(t, err, "a")
	require.NoError(t, s.RenewLease(t.Context(), l, time.Hour))
	require.NoError(t, s.Append(under(t, l), whole(), entries(0, 2)))
	sub := session.StoreKey{Project: project, Session: id, Subpath: "subagents/agent-a"}
	require.NoError(t, s.Append(under(t, l), sub, entries(2, 3)), "the lease is of all transcripts of the session")
	add(t, s, whole(), entry(3)) // who appends without a lease is not checked
	holds(t, s, whole(), append(entries(0, 2), entry(3)))
	holds(t, s, sub, entries(2, 3))
}

// next waits until another host gets the lease.
func next(t *testing.T, s session.LeaseStore, host string) (l session.Lease) {
	t.Helper()
	require.Eventually(t, func() (ok bool) {
		var err error
		l, err = s.AcquireLease(t.Context(), request(id, host, time.Hour))
		return err == nil
	}, 10*time.Second, time.Millisecond)
	return l
}

func runsOut(t *testing.T, s session.LeaseStore) {
	first := acquired(t, s, id, "a", time.Millisecond)
	second := next(t, s, "b")
	assert.Greater(t, second.Token, first.Token)
	taken(t, s.RenewLease(t.Context(), first, time.Hour), "b")
	require.NoError(t, s.RenewLease(t.Context(), second, time.Millisecond))
	assert.Greater(t, next(t, s, "c").Token, second.Token, "a renewal sets the time anew")
}

func staysOut(t *testing.T, s session.LeaseStore) {
	l := acquired(t, s, id, "a", time.Nanosecond)
	require.NoError(t, s.Append(under(t, l), whole(), entries(0, 1)))
	require.NoError(t, s.RenewLease(t.Context(), l, time.Hour))
	_, err := s.AcquireLease(t.Context(), request(id, "b", time.Hour))
	taken(t, err, "a")
	holds(t, s, whole(), entries(0, 1))
}

func deadHolder(t *testing.T, s session.LeaseStore) {
	first := acquired(t, s, id, "a", time.Hour)
	r := request(id, "b", time.Hour)
	r.Dead = func(h session.LeaseHolder) bool { return h.Host == "other" }
	_, err := s.AcquireLease(t.Context(), r)
	taken(t, err, "a")
	r.Dead = func(h session.LeaseHolder) bool { return h.Host == "a" && h.PID == 17 && h.Boot == "b" }
	second, err := s.AcquireLease(t.Context(), r)
	require.NoError(t, err)
	assert.Greater(t, second.Token, first.Token)
	taken(t, s.Append(under(t, first), whole(), entries(0, 1)), "b")
}

func givenBack(t *testing.T, s session.LeaseStore) {
	first := acquired(t, s, id, "a", time.Hour)
	require.NoError(t, s.ReleaseLease(t.Context(), first))
	isOver(t, s.RenewLease(t.Context(), first, time.Hour))
	isOver(t, s.Append(under(t, first), whole(), entries(0, 1)))
	second := acquired(t, s, id, "b", time.Hour)
	assert.Greater(t, second.Token, first.Token)
	require.NoError(t, s.ReleaseLease(t.Context(), first), "it is over")
	require.NoError(t, s.RenewLease(t.Context(), second, time.Hour), "who gives back an old lease does not end the new one")
	require.NoError(t, s.ReleaseLease(t.Context(), second))
	require.NoError(t, s.ReleaseLease(t.Context(), second))
	assert.Empty(t, load(t, s, whole()))
}

func over(t *testing.T, s session.LeaseStore) {
	isOver(t, s.RenewLease(t.Context(), session.Lease{Session: id, Token: 1}, time.Hour))
	isOver(t, s.Append(under(t, session.Lease{Session: id, Token: 1}), whole(), entries(0, 1)))
	isOver(t, s.Append(under(t, session.Lease{Session: id}), whole(), entries(0, 1)))
	first := acquired(t, s, id, "a", time.Nanosecond)
	second := next(t, s, "b")
	taken(t, s.Append(under(t, first), whole(), entries(0, 1)), "b")
	require.NoError(t, s.Append(under(t, second), whole(), entries(1, 2)))
	taken(t, s.Append(under(t, first), whole(), entries(2, 3)), "b")
	holds(t, s, whole(), entries(1, 2))
}

func apart(t *testing.T, s session.LeaseStore) {
	l := acquired(t, s, id, "a", time.Hour)
	o := acquired(t, s, other, "b", time.Hour)
	isOver(t, s.Append(under(t, o), whole(), entries(0, 1)))
	require.NoError(t, s.ReleaseLease(t.Context(), o))
	require.NoError(t, s.RenewLease(t.Context(), l, time.Hour))
	assert.Empty(t, load(t, s, whole()))
}

func outlives(t *testing.T, s session.LeaseStore) {
	first := acquired(t, s, id, "a", time.Hour)
	require.NoError(t, s.Append(under(t, first), whole(), entries(0, 1)))
	require.NoError(t, s.ReleaseLease(t.Context(), first))
	supported(t, s.Delete(t.Context(), whole()))
	second := acquired(t, s, id, "b", time.Hour)
	assert.Greater(t, second.Token, first.Token)
	isOver(t, s.Append(under(t, first), whole(), entries(0, 1)))
	assert.Empty(t, load(t, s, whole()))
}

func oneOfMany(t *testing.T, s session.LeaseStore) {
	var mu sync.Mutex
	var got []session.Lease
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() { //troupe:seam a test of a store, which no simulation runs
			l, err := s.AcquireLease(t.Context(), request(id, fmt.Sprint(n), time.Hour))
			if _, busy := errors.AsType[*session.LeaseError](err); busy {
				return
			}
			if assert.NoError(t, err) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, l)
			}
		})
	}
	all.Wait()
	require.Len(t, got, 1)
	require.NoError(t, s.RenewLease(t.Context(), got[0], time.Hour))
}

// fenced has one host append as fast as it can while another one takes the session over.
func fenced(t *testing.T, s session.LeaseStore) {
	for round := range 10 {
		first := acquired(t, s, id, "a", time.Nanosecond)
		done := make(chan int)
		go func() { //troupe:seam a test of a store, which no simulation runs
			n := 0
			for ; n < 1000; n++ {
				e := json.RawMessage(fmt.Sprintf(`{"round":%d,"n":%d}`, round, n))
				if s.Append(under(t, first), whole(), []json.RawMessage{e}) != nil {
					break
				}
			}
			done <- n
		}()
		second := next(t, s, "b")
		had := len(load(t, s, whole()))
		if n := <-done; n == 1000 {
			isOver(t, s.Append(under(t, first), whole(), entries(0, 1)))
		}
		require.Len(t, load(t, s, whole()), had, "an append came after the lease was over")
		require.NoError(t, s.ReleaseLease(t.Context(), second))
	}
}

func leaseContext(t *testing.T, s session.LeaseStore) {
	l := acquired(t, s, id, "a", time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.AcquireLease(ctx, request(other, "a", time.Hour))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.RenewLease(ctx, l, time.Hour), context.Canceled)
	require.ErrorIs(t, s.Append(session.WithLease(ctx, l), whole(), entries(0, 1)), context.Canceled)
	_ = s.ReleaseLease(ctx, l) // in either way
}
