package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Events that cannot be written are an error, which is said once; a worse one stays.
func TestEventsThatAreLost(t *testing.T) {
	t.Parallel()
	for verifier, want := range map[string]int{"true": exitOutput, "false": exitResult} {
		w := newWorld()
		file := taskFile(t, "tasks.jsonl", "{\"prompt\":\"one\"}\n{\"prompt\":\"two\"}\n")
		assert.Equal(t, want, w.run("batch", file, "-a", "scripted", "-q", "--verify", verifier, "--events", "/dev/full"), w.err)
		assert.Equal(t, 1, strings.Count(w.err.String(), "--events: write /dev/full: no space left on device"), w.err)
		assert.Len(t, resultsIn(t, outOf(file)), 2)
	}
}
