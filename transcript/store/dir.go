package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// Dir is a store in a directory, with the layout of the agents' own: PROJECT/SESSION.jsonl
// and PROJECT/SESSION/SUBPATH.jsonl. Files have mode 0600, directories 0700. Each append is
// synced to the disk before it returns. A last line that a crash has torn is ended before
// the next append, and not loaded.
//
// It is safe for concurrent use. Programs on several machines may share the directory; its
// leases see to it that one of them at a time runs a session.
type Dir struct {
	// Now returns the time for leases. nil: the time of the machine.
	Now func() time.Time
	// Files is what changes files. nil: the machine.
	Files session.Files

	root string

	mu   sync.Mutex
	open map[session.StoreKey]*log // of keys that were appended to
}

var _ session.StoreFiles = (*Dir)(nil)

// log is what is known of a file that was appended to.
type log struct {
	mu   sync.Mutex
	size int64               // up to where seen holds; -1: nothing is known
	seen map[string]struct{} // the names of its entries

	named bool // the file's own name is durable
}

// maxLogs is of how many files the names of entries are kept. Others are read again when they are
// appended to.
const maxLogs = 256

// NewDir returns a store in the directory root, which is made with the first append.
func NewDir(root string) *Dir { return &Dir{root: root, open: make(map[session.StoreKey]*log)} }

func (d *Dir) file(key session.StoreKey) string {
	name := key.Session
	if key.Subpath != "" {
		name = filepath.Join(name, filepath.FromSlash(key.Subpath))
	}
	return filepath.Join(d.root, key.Project, name+".jsonl")
}

// log returns what is known of a file.
func (d *Dir) log(key session.StoreKey) *log {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.open[key]
	if l == nil {
		if len(d.open) >= maxLogs {
			clear(d.open) // a file in use has another reference
		}
		l = &log{size: -1}
		d.open[key] = l
	}
	return l
}

// Append implements [session.Store].
func (d *Dir) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	names, err := namesOf(entries)
	if err != nil {
		return err
	}
	lease, ok := session.LeaseOf(ctx)
	if !ok {
		return d.append(ctx, key, entries, names)
	}
	return d.locked(ctx, lease.Session, func(_ string, g *Grant) error {
		if err := g.Check(lease, key); err != nil {
			return err
		}
		return d.append(ctx, key, entries, names)
	})
}

func (d *Dir) append(ctx context.Context, key session.StoreKey, entries []json.RawMessage, names []string) error {
	name := d.file(key)
	if err := d.files().Mkdir(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("session store: %w", err)
	}
	l := d.log(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.append(ctx, d.files(), name, entries, names); err != nil {
		l.size = -1
		return fmt.Errorf("session store: append to %s: %w", name, err)
	}
	return nil
}

func (d *Dir) files() session.Files { return durable.Files(d.Files) }

func (l *log) append(ctx context.Context, files session.Files, name string, entries []json.RawMessage, names []string) error {
	out, err := files.Append(name)
	if err != nil {
		return err
	}
	return errors.Join(l.write(ctx, files, out, name, entries, names), out.Close())
}

func (l *log) write(ctx context.Context, files session.Files, to session.FileWriter, name string, entries []json.RawMessage, names []string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if n := info.Size(); n == 0 || n < l.size { // it was deleted meanwhile, and this is another file of that name
		l.named = false
	}
	if info.Size() != l.size { // it is new, or another program has written
		l.seen = make(map[string]struct{})
		for entry, err := range lines(ctx, f) {
			if err != nil {
				return err
			}
			if name, _ := EntryName(entry); name != "" {
				l.seen[name] = struct{}{}
			}
		}
	}
	var out bytes.Buffer
	if n := info.Size(); n > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, n-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			out.WriteByte('\n')
		}
	}
	for i, e := range entries {
		if _, twice := l.seen[names[i]]; twice {
			continue
		}
		if err := json.Compact(&out, e); err != nil { // one line
			return err
		}
		out.WriteByte('\n')
		if names[i] != "" {
			l.seen[names[i]] = struct{}{}
		}
	}
	if _, err := to.Write(out.Bytes()); err != nil {
		return err
	}
	l.size = info.Size() + int64(out.Len())
	if err := to.Sync(); err != nil || l.named {
		return err
	}
	if err := files.SyncDir(filepath.Dir(name)); err != nil {
		return err
	}
	l.named = true
	return nil
}

// lines yields the lines of a file that are JSON objects.
func lines(ctx context.Context, r io.Reader) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		d := transcript.NewDecoder(bufio.NewReaderSize(r, 64<<10))
		d.MaxLine = math.MaxInt // an entry has the size that the agent gives it
		for {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			l, err := d.Next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			case l.Damage != "":
				continue // torn by a crash; what was in it was appended again
			}
			if !yield(bytes.Clone(l.Raw), nil) {
				return
			}
		}
	}
}

// File implements [session.StoreFiles].
func (d *Dir) File(ctx context.Context, key session.StoreKey) (*os.File, error) {
	if err := check(ctx, key); err != nil {
		return nil, err
	}
	f, err := os.Open(d.file(key))
	if err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	return f, nil
}

// Load implements [session.Store].
func (d *Dir) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		f, err := d.File(ctx, key)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(nil, err)
			}
			return
		}
		defer func() { _ = f.Close() }() // it was only read
		for e, err := range lines(ctx, f) {
			if err != nil {
				err = fmt.Errorf("session store: %s: %w", f.Name(), err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Sessions implements [session.Store].
func (d *Dir) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	if err := check(ctx, session.StoreKey{Project: project, Session: "x"}); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(d.root, project))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session store: %w", err)
	}
	var out []session.StoredSession
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
				continue
			}
			return nil, fmt.Errorf("session store: %w", err)
		}
		out = append(out, session.StoredSession{ID: id, Modified: info.ModTime()})
	}
	return out, ctx.Err()
}

// Subpaths implements [session.Store].
func (d *Dir) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	if err := check(ctx, session.StoreKey{Project: project, Session: id}); err != nil {
		return nil, err
	}
	root := filepath.Join(d.root, project, id)
	var out []string
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if sub, ok := strings.CutSuffix(name, ".jsonl"); ok && e.Type().IsRegular() {
			if sub, err = filepath.Rel(root, sub); err == nil {
				out = append(out, filepath.ToSlash(sub))
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	slices.Sort(out)
	return out, nil
}

// Delete implements [session.Store].
func (d *Dir) Delete(ctx context.Context, key session.StoreKey) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	err := durable.Remove(d.files(), d.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if key.Subpath == "" {
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.root, key.Project, key.Session)))
	}
	if err != nil {
		return fmt.Errorf("session store: %w", err)
	}
	return nil
}
