package machine_test

import (
	"testing"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/stretchr/testify/assert"
)

func TestTailsAreBounded(t *testing.T) {
	t.Parallel()
	assert.Empty(t, machine.Tail(" \n"))
	assert.Equal(t, "a\nb", machine.Tail("\na\nb\n"))
	long := machine.Tail(string(make([]byte, 5000)) + "end")
	assert.Len(t, long, 2048+len("…"))
	assert.Contains(t, long, "end")
}
