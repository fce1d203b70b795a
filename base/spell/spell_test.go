package spell_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/base/spell"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"model", "model", 0}, {"", "abc", 3}, {"abc", "", 3}, {"lode", "ledo", 2}, {"rnu", "run", 1}, {"ab", "ba", 1}, {"abc", "bca", 2},
		{"max_turns", "maxTurns", 2}, {"kitten", "sitting", 3}, {"x", strings.Repeat("y", 65), 65},
	} {
		assert.Equal(t, c.want, spell.Distance(c.a, c.b), "%q %q", c.a, c.b)
		assert.Equal(t, c.want, spell.Distance(c.b, c.a), "%q %q", c.b, c.a)
	}
}
