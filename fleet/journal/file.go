package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/session"
)

// Names of the files in the job's directory.
const (
	Name     = "journal.jsonl"
	LockName = "journal.lock"
	NewName  = "journal.new" // while the journal is written anew
)

// Config configures a journal in a file.
type Config struct {
	// FS is the job's directory. Required.
	FS FS
	// Clock and Executor are those of the runtime. Required.
	Clock    session.Clock
	Executor session.Executor
	// Compact returns the records that are still needed, in order. It is called by
	// [Open] alone, and only for files above CompactAbove bytes. nil: never.
	Compact      func([]Record) []Record
	CompactAbove int64 // default: 0, which is 8 MiB
}

const defaultCompactAbove = 8 << 20

// Log is a [Journal] in a file.
type Log struct {
	cfg     Config
	lock    io.Closer
	header  Header
	records []Record

	mu      sync.Mutex
	file    File
	next    uint64
	pending []*call
	running bool          // the committer runs
	idle    chan struct{} // closed when the committer ends; nil without a waiter
	failed  error
	closed  bool
}

// call is one call of Append.
type call struct {
	records []Record
	done    chan struct{}
	err     error
}

// Create makes a journal. If there is one already, the error is [ErrExists]; the same
// directory in use by another process is [ErrLocked].
func Create(cfg Config, h Header) (*Log, error) {
	l, err := begin(cfg, h)
	if err != nil {
		return nil, err
	}
	if _, err := l.load(); !errors.Is(err, ErrMissing) {
		if err == nil {
			err = ErrExists
		}
		return nil, errors.Join(fmt.Errorf("journal: %w", err), l.lock.Close())
	}
	h.Format = format
	l.header = h
	if err := l.rewrite(nil); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: create: %w", err), l.lock.Close())
	}
	return l, nil
}

// Open opens the journal of a job to continue. holder says who opens it. A torn end of
// the file is cut. Without a journal the error is [ErrMissing], and a *[CorruptError] if
// it is damaged.
func Open(cfg Config, holder Header) (*Log, error) {
	l, err := begin(cfg, holder)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Log, error) {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), l.lock.Close())
	}
	c, err := l.load()
	if err != nil {
		return fail(err)
	}
	l.header, l.records = c.header, c.records
	if keep, ok := l.compacted(c); ok {
		if err := l.rewrite(keep); err != nil {
			return fail(err)
		}
		return l, nil
	}
	if l.file, err = cfg.FS.Append(Name, c.size); err != nil {
		return fail(err)
	}
	// The records that were read may never have been synced, and the part that was cut
	// must not come back.
	if err := l.file.Sync(); err != nil {
		return fail(errors.Join(err, l.file.Close()))
	}
	l.next = uint64(len(c.records)) + 1
	return l, nil
}

func begin(cfg Config, h Header) (*Log, error) {
	if cfg.CompactAbove <= 0 {
		cfg.CompactAbove = defaultCompactAbove
	}
	if err := cfg.FS.Mkdir("."); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	lock, err := cfg.FS.Lock(LockName, fmt.Sprintf("process %d on %s", h.PID, h.Host))
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &Log{cfg: cfg, lock: lock}, nil
}

// Read reads the journal of a job, also while another process writes it: what is being
// written is left out. It changes nothing and takes no lock. Without a journal the error
// is [ErrMissing], and a *[CorruptError] if it is damaged.
func Read(from FS) (Header, []Record, error) {
	c, err := load(from)
	if err != nil {
		return Header{}, nil, fmt.Errorf("journal: %w", err)
	}
	return c.header, c.records, nil
}

func (l *Log) load() (*content, error) { return load(l.cfg.FS) }

func load(from FS) (*content, error) {
	r, err := from.Read(Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return parse(Name, text)
}

func (l *Log) compacted(c *content) ([]Record, bool) {
	if l.cfg.Compact == nil || c.size < l.cfg.CompactAbove {
		return nil, false
	}
	keep := l.cfg.Compact(c.records)
	return keep, len(keep) < len(c.records)
}

// rewrite makes a file of the header and the records, and puts it in the place of the
// journal.
func (l *Log) rewrite(records []Record) error {
	data, err := json.Marshal(l.header)
	if err != nil {
		return err
	}
	text, err := appendLine(nil, &line{Synced: -1, At: l.cfg.Clock.Now().UTC(), Kind: headerKind, Data: data})
	if err != nil {
		return err
	}
	l.records = slices.Clone(records)
	for i := range l.records {
		l.records[i].Seq = uint64(i) + 1
		if text, err = appendLine(text, lineOf(&l.records[i], 0)); err != nil {
			return err
		}
	}
	f, err := l.cfg.FS.Create(NewName)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = l.cfg.FS.Rename(NewName, Name)
	}
	if err == nil {
		err = l.cfg.FS.SyncDir(".")
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.next = f, uint64(len(records))+1
	return nil
}

// named is an error of the open file with its present name: one that was written anew was
// renamed since it was opened.
func named(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && filepath.Base(at.Path) == NewName {
		renamed := *at
		renamed.Path = filepath.Join(filepath.Dir(at.Path), Name)
		return &renamed
	}
	return err
}

func lineOf(r *Record, synced int64) *line {
	return &line{Seq: r.Seq, Synced: synced, At: r.At, Kind: r.Kind, Task: r.Task, Attempt: r.Attempt, Data: r.Data}
}

// Header implements [Journal].
func (l *Log) Header() Header { return l.header }

// Records implements [Journal].
func (l *Log) Records() []Record { return l.records }

// Append implements [Journal].
func (l *Log) Append(ctx context.Context, records ...Record) error {
	c := &call{records: records, done: make(chan struct{})}
	l.mu.Lock()
	switch {
	case l.failed != nil:
		defer l.mu.Unlock()
		return l.failed
	case l.closed:
		defer l.mu.Unlock()
		return ErrClosed
	}
	l.pending = append(l.pending, c)
	if !l.running {
		l.running = true
		l.cfg.Executor.Go(l.commit)
	}
	l.mu.Unlock()
	if err := l.cfg.Executor.Await(ctx, c.done); err != nil {
		return err
	}
	return c.err
}

// commit writes what is pending until nothing is: one write and one sync for all the
// calls that came meanwhile.
func (l *Log) commit() {
	for {
		l.mu.Lock()
		batch := l.pending
		l.pending = nil
		if len(batch) == 0 {
			l.running = false
			if l.idle != nil {
				close(l.idle)
				l.idle = nil
			}
			l.mu.Unlock()
			return
		}
		failed := l.failed
		l.mu.Unlock()
		if failed == nil {
			failed = l.write(batch)
		}
		for _, c := range batch {
			if c.err == nil {
				c.err = failed
			}
			close(c.done)
		}
	}
}

// write is the committer's. A record that cannot be encoded is the error of its call
// alone.
func (l *Log) write(batch []*call) error {
	synced, next := int64(l.next)-1, l.next
	var text []byte
	for _, c := range batch {
		seq, before := next, len(text)
		for i := range c.records {
			r := c.records[i]
			r.Seq = next
			if r.At.IsZero() {
				r.At = l.cfg.Clock.Now().UTC()
			}
			longer, err := appendLine(text, lineOf(&r, synced))
			if err != nil {
				c.err, next, text = err, seq, text[:before]
				break
			}
			text, next = longer, next+1
		}
	}
	op := "write"
	_, err := l.file.Write(text)
	if err == nil {
		op, err = "sync", l.file.Sync()
	}
	if err != nil {
		failed := &FailedError{Op: op, Err: named(err)}
		l.mu.Lock()
		l.failed = failed
		l.mu.Unlock()
		return failed
	}
	l.next = next
	return nil
}

// Close implements [Journal].
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	var idle chan struct{}
	if l.running {
		idle = make(chan struct{})
		l.idle = idle
	}
	l.mu.Unlock()
	if idle != nil {
		_ = l.cfg.Executor.Await(context.Background(), idle) // a sync ends by itself
	}
	return errors.Join(l.file.Close(), l.lock.Close())
}
