package fleet

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
)

// strikes counts the moments at which the actor could be killed.
type strikes struct {
	n    atomic.Int64
	at   int64
	when kernel.Moment
}

// The actor of a job is killed at each message, before it, after it, and after each effect. Each
// task has one result all the same.
func TestTheActorIsKilled(t *testing.T) {
	t.Parallel()
	step := int64(1)
	if sim.Raced() {
		step = 5
	}
	for i, when := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage, kernel.AfterEffect} {
		hits := 0
		for at := int64(1 + i); at < 60; at += step {
			s := &strikes{at: at, when: when}
			hit := false
			cfg := kernel.Config{Chaos: func(name string, m any, when kernel.Moment) bool {
				if !strings.HasPrefix(name, "job#") || when != s.when {
					return false
				}
				if s.n.Add(1) == s.at {
					hit = true
					return true
				}
				return false
			}}
			rt, err := runtime.New(runtime.Config{Clock: cfg.AsClock()})
			require.NoError(t, err)
			c := newCrashes(t)
			c.job.Options.Runtime = rt
			n := 0
			for r, err := range Run(t.Context(), c.job) {
				require.NoError(t, err, "%v %d", when, at)
				require.True(t, r.OK())
				n++
			}
			require.Equal(t, 5, n)
			require.NoError(t, rt.Shutdown(context.WithoutCancel(t.Context())))
			if hit {
				hits++
			}
		}
		require.NotZero(t, hits, when)
	}
}
