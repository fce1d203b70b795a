package kernel_test

import (
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// TestAClockBringsTheSeams: a simulation's clock brings all seams, any other itself.
func TestAClockBringsTheSeams(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	assert.Equal(t, s.Config(), kernel.SeamsOf(s.Config().AsClock()))

	mock := clock.NewMock()
	mock.Set(time.Unix(7, 0))
	seams := kernel.SeamsOf(mock)
	assert.True(t, mock.Now().Equal(seams.Clock.Now()))
	assert.Nil(t, seams.Dispatcher)
	assert.Nil(t, seams.Executor)
}
