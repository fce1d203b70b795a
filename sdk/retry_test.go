package sdk_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// overloaded is a turn whose model is overloaded, for half a dollar.
func overloaded() scripted.Turn {
	yes := true
	return turn(&scripted.Result{IsError: &yes, APIErrorStatus: 529, Cost: 0.5})
}

func TestRetryUntilItSucceeds(t *testing.T) {
	t.Parallel()
	w := virtual(t, 1)
	began := w.rt.Clock().Now()
	tries := []*sdk.Options{w.options(overloaded()), w.options(overloaded()), w.options(turn(scripted.Text("at last")))}
	var told sdk.Attempts
	policy := sdk.RetryPolicy{
		Runtime: w.rt, Backoff: supervisor.Backoff{Initial: time.Hour, Max: time.Hour},
		OnFailure: func(a sdk.Attempt) { told = append(told, a) },
	}
	n := 0
	r, failed, err := sdk.Retry(w.Context(), policy, func(ctx context.Context) (*sdk.ResultMessage, error) {
		n++
		return sdk.Run(ctx, "hi", tries[n-1])
	})
	require.NoError(t, err)
	assert.Equal(t, "at last", r.Result)
	assert.Equal(t, told, failed)
	require.Len(t, failed, 2)
	var waits time.Duration
	for i, a := range failed {
		assert.Equal(t, i+1, a.Number)
		require.ErrorAs(t, a.Err, new(*sdk.ResultError))
		assert.InDelta(t, 0.5, a.CostUSD(), 1e-9)
		assert.Positive(t, a.Wait)
		waits += a.Wait
	}
	assert.InDelta(t, 1.0, failed.CostUSD(), 1e-9, "what the result does not say")
	assert.GreaterOrEqual(t, w.rt.Clock().Now().Sub(began), waits, "the runtime's clock")
	assert.LessOrEqual(t, waits, 2*time.Hour)
}

func TestRetryGivesUp(t *testing.T) {
	t.Parallel()
	again := &sdk.ExitError{During: "a turn"}
	limited := func(d time.Duration) error {
		return &sdk.ResultError{Result: &sdk.ResultMessage{APIErrorStatus: 429}, RetryAfter: d}
	}
	for name, c := range map[string]struct {
		policy sdk.RetryPolicy
		fails  error
		calls  int
		least  time.Duration // of all waits together
	}{
		"all attempts":              {sdk.RetryPolicy{}, again, 4, 0},
		"so many as it says":        {sdk.RetryPolicy{Attempts: 2}, again, 2, 0},
		"one":                       {sdk.RetryPolicy{Attempts: 1}, again, 1, 0},
		"not retryable":             {sdk.RetryPolicy{}, &sdk.AuthError{Err: again}, 1, 0},
		"unknown":                   {sdk.RetryPolicy{}, errors.New("odd"), 1, 0},
		"as long as the agent asks": {sdk.RetryPolicy{Attempts: 3}, limited(4 * time.Minute), 3, 8 * time.Minute},
		"the agent asks too much":   {sdk.RetryPolicy{}, limited(6 * time.Minute), 1, 0},
		"and is given it":           {sdk.RetryPolicy{Attempts: 2, MaxWait: time.Hour}, limited(time.Hour), 2, time.Hour},
		"no backoff":                {sdk.RetryPolicy{Backoff: supervisor.Backoff{Initial: supervisor.NoBackoff}}, again, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := virtual(t, 1)
			began := w.rt.Clock().Now()
			c.policy.Runtime = w.rt
			calls := 0
			v, failed, err := sdk.Retry(w.Context(), c.policy, func(context.Context) (int, error) {
				calls++
				return calls, c.fails
			})
			require.ErrorIs(t, err, c.fails)
			assert.Equal(t, c.calls, calls)
			assert.Equal(t, calls, v, "what the last call returned")
			require.Len(t, failed, calls)
			assert.Zero(t, failed[calls-1].Wait)
			assert.GreaterOrEqual(t, w.rt.Clock().Now().Sub(began), c.least)
			if c.calls > 1 {
				require.ErrorContains(t, err, "attempts: ")
			}
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := virtual(t, 1)
	again := &sdk.ExitError{During: "a turn"}
	ctx, cancel := context.WithCancelCause(w.Context())
	enough := errors.New("enough")
	policy := sdk.RetryPolicy{Runtime: w.rt, OnFailure: func(a sdk.Attempt) {
		if a.Number == 2 {
			cancel(enough)
		}
	}}
	_, failed, err := sdk.Retry(ctx, policy, func(context.Context) (int, error) { return 0, again })
	for _, want := range []error{context.Canceled, enough, again} {
		require.ErrorIs(t, err, want)
	}
	assert.Len(t, failed, 2)
	assert.False(t, sdk.Retryable(err))
}

func TestRetryIsSeeded(t *testing.T) {
	t.Parallel()
	waits := func(seed uint64) (all []time.Duration) {
		w := virtual(t, seed)
		_, failed, _ := sdk.Retry(w.Context(), sdk.RetryPolicy{Runtime: w.rt}, func(context.Context) (int, error) {
			return 0, &sdk.ExitError{During: "a turn"}
		})
		for _, a := range failed {
			all = append(all, a.Wait)
		}
		return all
	}
	first := waits(3)
	assert.Equal(t, first, waits(3))
	assert.NotEqual(t, first, waits(4))
}

type noRuntime struct{ session.Runtime }

func TestRetryWantsARuntimeOfOurs(t *testing.T) {
	t.Parallel()
	_, _, err := sdk.Retry(t.Context(), sdk.RetryPolicy{Runtime: noRuntime{}}, func(context.Context) (int, error) { return 0, nil })
	require.ErrorAs(t, err, new(*sdk.ConfigError))
}
