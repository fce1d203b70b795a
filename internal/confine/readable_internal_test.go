package confine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTooManyFilesToLookAt(t *testing.T) {
	t.Parallel()
	_, err := readable(func(string) (here, below bool) { return false, true }, nil, 50)
	require.ErrorIs(t, err, ErrTooMany)
	tree, err := readable(func(path string) (here, below bool) { return false, path == "/" }, nil, 5000)
	require.NoError(t, err)
	require.Equal(t, []string{"/"}, tree.Dirs, "nothing was hidden")
	require.Empty(t, tree.Files)
}
