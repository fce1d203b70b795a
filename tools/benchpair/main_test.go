package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIntervalIsThatOfTheSignTest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ n, low, high int }{
		{1, 1, 1}, {5, 1, 5}, {6, 1, 6}, {9, 2, 8}, {15, 4, 12}, {31, 10, 22}, // tables of the sign test
	} {
		v := make([]float64, tt.n)
		for i := range v {
			v[i] = float64(tt.n - i)
		}
		low, high := interval(v)
		assert.Equal(t, []float64{float64(tt.low), float64(tt.high)}, []float64{low, high}, "of %d", tt.n)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 2.0, median([]float64{9, 1, 2}))
	assert.Equal(t, 3.0, median([]float64{9, 1, 2, 4}))
}

func TestRunFailsWithoutABenchmark(t *testing.T) {
	t.Parallel()
	_, err := side{program: "/bin/echo", dir: t.TempDir()}.run("^BenchmarkNone$", 1)
	assert.ErrorContains(t, err, "no benchmark ran")
}
