package storetest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// filed is a directory whose files are opened with a mistake.
type filed struct {
	*store.Dir
	file func(d *store.Dir, key session.StoreKey) (*os.File, error)
}

// File implements [session.StoreFiles].
func (f *filed) File(_ context.Context, key session.StoreKey) (*os.File, error) {
	return f.file(f.Dir, key)
}

// fileMistakes are stores of files that storetest.Run must refuse.
var fileMistakes = map[string]func(t *testing.T) *filed{
	"makes a file for an unknown key": func(t *testing.T) *filed {
		dir := t.TempDir()
		return &filed{store.NewDir(dir), func(d *store.Dir, key session.StoreKey) (*os.File, error) {
			if f, err := d.File(context.Background(), key); err == nil {
				return f, nil
			}
			return os.Create(filepath.Join(dir, "new"))
		}}
	},
	"opens the file at its end": func(t *testing.T) *filed {
		return &filed{store.NewDir(t.TempDir()), func(d *store.Dir, key session.StoreKey) (*os.File, error) {
			f, err := d.File(context.Background(), key)
			if err == nil {
				_, err = f.Seek(0, 2)
			}
			return f, err
		}}
	},
	"opens a copy that is old": func(t *testing.T) *filed {
		dir := t.TempDir()
		return &filed{store.NewDir(dir), func(d *store.Dir, key session.StoreKey) (*os.File, error) {
			f, err := d.File(context.Background(), key)
			if err != nil {
				return nil, err
			}
			b := make([]byte, 300)
			_, _ = f.Read(b)
			_ = f.Close()
			name := filepath.Join(dir, "copy")
			if err := os.WriteFile(name, b, 0o600); err != nil {
				return nil, err
			}
			return os.Open(name)
		}}
	},
}
