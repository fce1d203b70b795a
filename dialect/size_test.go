package dialect_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/dialect"
)

// TestSizeOfInput: each session keeps an Input. With the allocator's header of 8 bytes it takes
// 2,048 bytes; one byte more would take 2,304. Fields of type bool stand together for that.
func TestSizeOfInput(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, unsafe.Sizeof(dialect.Input{}), uintptr(2040))
}
