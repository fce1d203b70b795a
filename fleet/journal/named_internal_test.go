package journal

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A journal that was written anew has a file whose name is not the one that it was opened with.
func TestErrorsNameTheFileThatIsThere(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"/job/journal.new":   "write /job/journal.jsonl: no space left on device",
		"journal.new":        "write journal.jsonl: no space left on device",
		"/job/journal.jsonl": "write /job/journal.jsonl: no space left on device",
	} {
		err := named(&fs.PathError{Op: "write", Path: from, Err: syscall.ENOSPC})
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, syscall.ENOSPC)
	}
	other := errors.New("other")
	assert.Equal(t, other, named(other))
}
