package estimate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/estimate"
)

func ran(usd float64, wall time.Duration) fleet.TaskResult {
	return fleet.TaskResult{Status: fleet.Accepted, Attempts: make([]fleet.Attempt, 1), Usage: fleet.Usage{USD: usd, Wall: fleet.Duration(wall)}}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	e := estimate.New(100, []fleet.TaskResult{ran(1, time.Minute), ran(3, 3*time.Minute), {Status: fleet.Skipped}})
	assert.Equal(t, 2, e.Samples, "what never ran is no sample")
	assert.Equal(t, 2, e.Accepted)
	assert.InDelta(t, 198, e.USD.Total, 1e-9, "97 tasks of $2 and the $4 of the samples; the skipped task costs nothing")
	// mean 2, deviation sqrt(2), 97 others: 6.314 * sqrt(2 * 97 * (1 + 97/2))
	half := 6.314 * math.Sqrt(2*97*(1+97/2.0))
	assert.InDelta(t, 198+half, e.USD.High, 1e-6)
	assert.InDelta(t, 4, e.USD.Low, 1e-9, "not below what is spent already")
	assert.Equal(t, []float64{1, 3}, []float64{e.USD.Least, e.USD.Most})
	likely, _, _ := e.Elapsed(4)
	assert.InDelta(t, 198*60/4.0, likely.Seconds(), 1e-3)
	likely, _, _ = e.Elapsed(1000)
	assert.Equal(t, 3*time.Minute, likely, "never shorter than the longest task")

	one := estimate.New(10, []fleet.TaskResult{ran(2, time.Second)})
	assert.Equal(t, estimate.Projection{Total: 20, Low: 20, High: 20, Least: 2, Most: 2}, one.USD)
	all := estimate.New(2, []fleet.TaskResult{ran(1, 0), ran(5, 0)})
	assert.Equal(t, estimate.Projection{Total: 6, Low: 6, High: 6, Least: 1, Most: 5}, all.USD, "all of them are known")
	assert.Equal(t, estimate.Estimate{Tasks: 10}, estimate.New(10, nil))
}

// The interval has the total in about nine of ten cases, also with few samples.
func TestEstimateInterval(t *testing.T) {
	t.Parallel()
	for _, samples := range []int{3, 10, 40} {
		t.Run(fmt.Sprint(samples), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(1, uint64(samples)))
			const size = 200
			rounds, near := 4000, 0.02
			if testing.Short() {
				rounds, near = 800, 0.04
			}
			inside := 0
			for range rounds {
				all := make([]fleet.TaskResult, size)
				total := 0.0
				for i := range all {
					usd := 5 + rnd.NormFloat64()
					total += usd
					all[i] = ran(usd, 0)
				}
				if p := estimate.New(size, all[:samples]).USD; p.Low <= total && total <= p.High {
					inside++
				}
			}
			assert.InDelta(t, 0.9, float64(inside)/float64(rounds), near)
		})
	}
}
