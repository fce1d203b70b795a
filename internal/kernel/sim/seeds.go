package sim

import (
	"os"
	"runtime/debug"
	"strconv"
	"testing"
)

// EnvSeeds names the environment variable that asks for many seeds.
const EnvSeeds = "TROUPE_SEEDS"

// Seeds is how many a simulation plays: few; a quarter of them with -short, a
// sixteenth under the race detector, and at least one. TROUPE_SEEDS asks for one
// for each cost of its number, and never for less than few.
func Seeds(t testing.TB, few, cost uint64) uint64 {
	t.Helper()
	if v := os.Getenv(EnvSeeds); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", EnvSeeds, err)
		}
		return max(few, n/cost)
	}
	switch {
	case Raced():
		return max(1, few/16)
	case testing.Short():
		return max(1, few/4)
	}
	return few
}

// Skips reports whether a test that plays a run once for each of its positions leaves
// out position n: with -short it plays an eighth of them, under the race detector a
// sixteenth, another part for each seed, and else all.
func Skips(seed uint64, n int) bool {
	of := uint64(1)
	switch {
	case os.Getenv(EnvSeeds) != "":
	case Raced():
		of = 16
	case testing.Short():
		of = 8
	}
	return (seed+uint64(n))%of != 0
}

// Raced reports whether this binary has the race detector, which takes no more
// than 8,128 goroutines at once.
func Raced() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}
