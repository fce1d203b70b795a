package kernel_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// A logger gets what the actor library reports; without one nothing is shared between
// systems but a pattern that never runs.
func TestLibraryLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := sim.New(1)
	defer s.Close()
	config := s.Config()
	config.Logger = slog.New(slog.NewTextHandler(&out, nil))
	sys := kernel.NewSystem(config)
	assert.Contains(t, out.String(), "actor system started")
	assert.Equal(t, s, sys.Clock())
	root(t, sys, &node{})
	a, b := kernel.NewSystem(s.Config()), kernel.NewSystem(s.Config())
	root(t, a, &node{})
	root(t, b, &node{}) // of the same name
	assert.NoError(t, s.Run(1000))
}
