package model

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABodyInParts(t *testing.T) {
	t.Parallel()
	for _, parts := range [][]string{nil, {""}, {"a"}, {"", "ab", "", "", "cde", ""}, {"one", "two", "three"}} {
		body := func() *joined {
			j := &joined{}
			for _, p := range parts {
				j.parts = append(j.parts, []byte(p))
			}
			return j
		}
		want := ""
		for _, p := range parts {
			want += p
		}
		require.NoError(t, iotest.TestReader(body(), []byte(want)), "%q", parts)
		for n := range len(want) { // what was not read is written
			j := body()
			head := make([]byte, n)
			_, err := io.ReadFull(j, head)
			require.NoError(t, err)
			var rest bytes.Buffer
			written, err := j.WriteTo(&rest)
			require.NoError(t, err)
			assert.Equal(t, want, string(head)+rest.String())
			assert.EqualValues(t, rest.Len(), written)
		}
	}
}

// A writer that fails is not written to again, and what it took is counted.
func TestABodyWhoseWriterFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	j := &joined{parts: [][]byte{[]byte("abc"), []byte("def")}}
	n, err := j.WriteTo(&limited{left: 4, err: broken})
	require.ErrorIs(t, err, broken)
	assert.EqualValues(t, 4, n)
	rest, err := io.ReadAll(j)
	require.NoError(t, err)
	assert.Equal(t, "ef", string(rest))
}

type limited struct {
	left int
	err  error
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(l.left, len(b))
	if l.left -= n; n < len(b) {
		return n, l.err
	}
	return n, nil
}
