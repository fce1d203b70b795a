package simtests

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Alone: it changes the environment.
func TestKnobs(t *testing.T) {
	for name, c := range map[string]struct {
		seed, seeds string
		first       uint64
		want        int
	}{
		"a seed":            {seed: "7", first: 7, want: 1},
		"seeds":             {seeds: "40", first: 3, want: 40},
		"seeds from a seed": {seed: "7", seeds: "40", first: 7, want: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TROUPE_SIM_SEED", c.seed)
			t.Setenv("TROUPE_SEEDS", c.seeds)
			got, err := Config{Seeds: 9, First: 3}.withFlags()
			require.NoError(t, err)
			require.Equal(t, c.first, got.First)
			require.Equal(t, c.want, got.Seeds)
		})
	}
	t.Setenv("TROUPE_SIM_SEED", "-1")
	_, err := Config{}.withFlags()
	require.ErrorContains(t, err, "-sim.seed=-1")
}
