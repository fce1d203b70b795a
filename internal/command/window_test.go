package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTopWindowBeyondThisMachine needs a token.
func TestTopWindowBeyondThisMachine(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"--ui=0.0.0.0:0":         "by which name",
		"--ui=[::]:0":            "by which name",
		"--ui=:0":                "by which name",
		"--ui=10.1.2.3:0":        envWindowToken,
		"--ui=example.invalid:0": envWindowToken,
		"--ui=8080":              "HOST:PORT",
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run("top", args), args)
		assert.Contains(t, w.err.String(), says, args)
	}
}
