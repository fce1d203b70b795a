package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A session keeps each message, so a message has little room behind it, and an append to one part of a
// request does not write into another.
func TestMessagesHaveNoRoom(t *testing.T) {
	t.Parallel()
	m := &Message{Role: User, Blocks: []Block{{Kind: Text, Text: strings.Repeat("a line\n", 1000)}}}
	for name, codec := range map[string]Codec{"Messages": messages{}, "chat completions": chat{}} {
		b := codec.Message(m)
		assert.LessOrEqual(t, cap(b), len(b)+len(b)/4, name) // the allocator's classes
	}
	b := make([]byte, 100, 1000)
	assert.Less(t, cap(exact(b)), 200)
	b = make([]byte, 100, 110)
	assert.Same(t, &b[0], &exact(b)[0])
	assert.Equal(t, 100, cap(exact(b)))
}
