//go:build conformance

package conformance_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// An answer of the scripted model costs 0.00014 USD by the agent's own prices.
func TestBudgetExhausted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.MaxBudgetUSD = sdk.Some(0.0002)
	o.AllowedTools = []string{"Bash"}
	result, err := sdk.Run(r.ctx, "for ever [[scn:loop]]", o)
	var failed *sdk.ResultError
	require.ErrorAs(t, err, &failed)
	assert.Same(t, result, failed.Result)
	assert.Equal(t, "error_max_budget_usd", result.Subtype)
	assert.Equal(t, "budget_exhausted", result.TerminalReason)
	assert.NotEmpty(t, result.Errors)
	assert.Greater(t, result.TotalCostUSD, 0.0002)
	assert.Len(t, r.model.Requests(), 2, "the second answer was one too many")
	assert.False(t, sdk.Retryable(err))
	r.nothingRuns()
}

// The agent tries as often as it is told, and then says of itself that it is the
// model's fault.
func TestRetriesExhausted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failure modelapi.Fault
		kind    string // of the retry
	}{
		"500": {modelapi.Fault{Status: 500, Type: "api_error"}, "server_error"},
		"529": {modelapi.Fault{Status: 529, Type: "overloaded_error"}, "overloaded"},
		"429": {modelapi.Fault{Status: 429, Type: "rate_limit_error", RetryAfter: time.Second}, "rate_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tc.failure.Times = 1 << 20
			r.model.Script("down", modelapi.Always(modelapi.Reply{Fault: &tc.failure}))
			o := r.options()
			o.Env["CLAUDE_CODE_MAX_RETRIES"] = "1"
			var retries []*protocol.APIRetryMessage
			c := r.connect(o)
			all, result := r.ask(c, "try [[scn:down]]")
			retries = only[*protocol.APIRetryMessage](all)
			require.Len(t, retries, 1)
			assert.Equal(t, tc.kind, retries[0].Error)
			assert.Equal(t, tc.failure.Status, retries[0].ErrorStatus)
			assert.Equal(t, 1, retries[0].MaxRetries)
			assert.Equal(t, "success", result.Subtype)
			assert.Equal(t, "api_error", result.TerminalReason)
			assert.Equal(t, tc.failure.Status, result.APIErrorStatus)
			assert.Len(t, r.model.Requests(), 2)
			r.close(c)

			o.Env["CLAUDE_CODE_MAX_RETRIES"] = "0"
			_, err := sdk.Run(r.ctx, "try [[scn:down]]", o)
			var failed *sdk.ResultError
			require.ErrorAs(t, err, &failed)
			assert.True(t, sdk.Retryable(err), "%v", err)
			_, said := sdk.RetryAfter(err)
			assert.False(t, said, "the agent does not pass the endpoint's retry-after on")
		})
	}
}

// toldOnce checks that the callback was called once; it has a goroutine that nothing waits for.
func (r *rig) toldOnce(callbacks *atomic.Int32) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return callbacks.Load() > 0 }, turnLimit, time.Millisecond)
	assert.EqualValues(r.t, 1, callbacks.Load())
}

// expiries counts what the host is told of the login.
func (r *rig) expiries(o *sdk.Options) (callbacks *atomic.Int32, events func() int) {
	callbacks = &atomic.Int32{}
	o.OnAuthExpired = func(reason string) {
		callbacks.Add(1)
		assert.NotEmpty(r.t, reason)
	}
	return callbacks, func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := 0
		for _, e := range r.events {
			if _, ok := e.Event.(*session.AuthExpired); ok {
				n++
			}
		}
		return n
	}
}

func TestLoginThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sdk.Options){
		"the endpoint refuses the key": func(o *sdk.Options) { o.Env["CLAUDE_CODE_MAX_RETRIES"] = "0" },
		"there is none":                func(o *sdk.Options) { delete(o.Env, "ANTHROPIC_API_KEY") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			change(o)
			callbacks, events := r.expiries(o)
			result, err := sdk.Run(r.ctx, "who am I? [[scn:err401]]", o)
			var auth *sdk.AuthError
			require.ErrorAs(t, err, &auth)
			assert.Equal(t, "claude", auth.Backend)
			var failed *sdk.ResultError
			require.ErrorAs(t, err, &failed, "it says what the agent said")
			assert.Same(t, result, failed.Result)
			assert.True(t, result.Failed())
			assert.False(t, sdk.Retryable(err))
			assert.NotContains(t, err.Error(), "sk-test-offline")
			r.over("")
			assert.Equal(t, 1, events())
			r.toldOnce(callbacks)
			r.nothingRuns()
		})
	}
}

// It is told once, however many turns fail for it, and the session lives on.
func TestExpiredLoginIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("expired", modelapi.Always(modelapi.Reply{
		Fault: &modelapi.Fault{Status: 401, Type: "authentication_error", Times: 2},
	}))
	o := r.options()
	o.Env["CLAUDE_CODE_MAX_RETRIES"] = "0"
	callbacks, events := r.expiries(o)
	c := r.connect(o)
	for range 2 {
		_, result := r.ask(c, "try [[scn:expired]]")
		assert.True(t, result.Failed())
		assert.Equal(t, 401, result.APIErrorStatus)
	}
	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed())
	r.close(c)
	assert.Equal(t, 1, events())
	r.toldOnce(callbacks)
}

// TestTransientFailures is what a retry loop has to know of a failure of the
// model's API after the agent's own retries.
func TestTransientFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		retryable bool
		kind      string // ResultMessage.APIError
		status    int
	}{
		"reset":   {true, "connection_failed", 0},
		"hang":    {true, "", 0},
		"html":    {true, "", 0},
		"empty":   {true, "", 0},
		"garbage": {true, "", 0},
		"err400":  {false, "", 400},
		"err403":  {false, "", 403},
		"err413":  {false, "", 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			o.Env["CLAUDE_CODE_MAX_RETRIES"] = "1"
			if name == "hang" { // the others answer, however late
				o.Env["API_TIMEOUT_MS"] = "2000"
			}
			result, err := sdk.Run(r.ctx, "try [[scn:"+name+"]]", o)
			var failed *sdk.ResultError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, tc.retryable, sdk.Retryable(err), "%s", result.Raw())
			assert.Equal(t, tc.status, result.APIErrorStatus)
			if tc.retryable {
				assert.Equal(t, tc.kind, result.APIError)
				assert.Equal(t, "api_error", result.TerminalReason)
			}
		})
	}
}
