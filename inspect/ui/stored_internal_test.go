package ui

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestBackwards reads lines of every length from any place on.
func TestBackwards(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	var starts []int64
	var lines []string
	for i := range 300 {
		line := fmt.Sprint(i, " ", strings.Repeat("x", i*i%7919))
		if i == 150 {
			line = strings.Repeat("y", 3*chunk)
		}
		starts, lines = append(starts, int64(file.Len())), append(lines, line)
		fmt.Fprintln(&file, line)
	}
	for _, n := range []int{300, 299, 151, 150, 149, 1, 0} {
		at := int64(file.Len())
		if n < 300 {
			at = starts[n]
		}
		b := backwards{f: bytes.NewReader(file.Bytes()), at: at}
		var got []string
		for {
			line, ok := b.next()
			if !ok {
				break
			}
			got = append(got, string(line))
			assert.Equal(t, starts[n-len(got)], b.at)
		}
		slices.Reverse(got)
		assert.Equal(t, lines[:n], append([]string{}, got...), n)
	}
	long := backwards{f: strings.NewReader(strings.Repeat("z", 3*maxRead)), at: 3 * maxRead}
	_, ok := long.next()
	assert.False(t, ok, "a line that is too long ends it")
}

// TestBackwardsIsBounded: one answer reads no more than maxRead and a chunk of a file of ordinary lines, and the next one
// continues where it has ended.
func TestBackwardsIsBounded(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	n := 0
	for ; file.Len() < 2*maxRead+maxRead/2; n++ {
		fmt.Fprintf(&file, "%d %s\n", n, strings.Repeat("x", 40000+n%977))
	}
	at, answers := int64(file.Len()), 0
	for full := true; full; answers++ {
		b := backwards{f: bytes.NewReader(file.Bytes()), at: at}
		for {
			line, ok := b.next()
			if !ok {
				break
			}
			n--
			assert.True(t, bytes.HasPrefix(line, fmt.Append(nil, n, " ")), n)
		}
		assert.LessOrEqual(t, b.read, int64(maxRead+chunk))
		assert.Less(t, b.at, at)
		at, full = b.at, b.full
	}
	assert.Equal(t, []any{0, 3, int64(0)}, []any{n, answers, at})
}
