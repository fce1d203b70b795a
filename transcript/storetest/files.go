package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

// files is for stores that implement session.StoreFiles.
func files(t *testing.T, s session.Store) {
	in, ok := s.(session.StoreFiles)
	if !ok {
		t.Skip("the store has no files")
	}
	_, err := in.File(t.Context(), whole())
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		supported(t, err)
		require.ErrorIs(t, err, fs.ErrNotExist, "there is no such transcript")
	}
	want := entries(0, 20)
	add(t, s, whole(), want[:7]...)
	add(t, s, whole(), want[7:]...)
	f, err := in.File(t.Context(), whole())
	require.NoError(t, err)
	all, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	n := 0
	for line := range bytes.Lines(all) {
		if !json.Valid(line) {
			continue
		}
		require.Less(t, n, len(want), "more entries than were appended")
		require.JSONEq(t, string(want[n]), string(line), "entry %d", n)
		n++
	}
	require.Equal(t, len(want), n, "the number of entries")
}
