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
