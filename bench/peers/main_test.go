package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	var got []int
	require.NoError(t, numbers("1,8,64", &got))
	assert.Equal(t, []int{1, 8, 64}, got)
	for _, bad := range []string{"", "0", "1,,2", "x"} {
		require.Error(t, numbers(bad, &got), "%q", bad)
	}
}
