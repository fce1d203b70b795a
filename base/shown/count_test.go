package shown_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/base/shown"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 tasks":          shown.Count(0, "task"),
		"1 task":           shown.Count(1, "task"),
		"2 tasks":          shown.Count(int64(2), "task"),
		"1 entry":          shown.Count(uint64(1), "entry"),
		"3 entries":        shown.Count(3, "entry"),
		"3 days":           shown.Count(3, "day"),
		"2 processes":      shown.Count(2, "process"),
		"2 branches":       shown.Count(2, "branch"),
		"2 calls of tools": shown.Count(2, "call of tools"),
		"1 call of tools":  shown.Count(1, "call of tools"),
		"have":             shown.Verb(0, "has", "have"),
		"has":              shown.Verb(1, "has", "have"),
	} {
		assert.Equal(t, want, got)
	}
}

// Costs keep two digits that mean something.
func TestAmount(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0.00", 12.345: "12.35", 1: "1.00", 0.5: "0.50", 0.123: "0.12", 0.0456: "0.046", 0.000123: "0.00012", 1e-12: "0.000000000"} {
		assert.Equal(t, want, shown.Amount(v))
	}
}
