package fleet

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An agent that still runs may put a link in the place of its workspace: nothing is read or removed behind it.
func TestALinkInPlaceOfAWorkspace(t *testing.T) {
	t.Parallel()
	outside, at := t.TempDir(), filepath.Join(t.TempDir(), "work")
	require.NoError(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	require.NoError(t, os.Symlink(outside, at))
	tree := movedTree{movedSpace: movedSpace{Kind: movedFiles}, dir: at}
	_, err := tree.pack(context.Background(), nil, "")
	require.ErrorContains(t, err, "is a link, or was replaced")
	require.ErrorContains(t, tree.begin(context.Background(), &movedSpace{Kind: movedFiles}, ""), "is a link, or was replaced")
	assert.FileExists(t, filepath.Join(outside, "kept"))
	require.NoError(t, os.Remove(at))
	require.NoError(t, os.Mkdir(at, 0o700))
	require.NoError(t, tree.begin(context.Background(), &movedSpace{Kind: movedFiles}, ""))
	require.NoError(t, tree.end(nil))
	require.NoError(t, tree.close())
}
