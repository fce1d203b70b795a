package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Name is the mirror's in the session's tree.
const Name = "mirror"

// Config describes a mirror.
type Config struct {
	Store   session.Store
	Options session.StoreOptions // complete
	// Root is the agent's configuration directory, of which its reports name files; "": the
	// agent may run elsewhere, and the last part "projects" of a path counts.
	Root  string
	Clock kernel.Clock
	Exec  kernel.Executor
	Emit  func(session.Event)
	// Over is called when nothing more is appended, and may block, or nil.
	Over func()
}

// Mirror copies what the agent stores. Its child has at most one function that runs, also
// after the death of an incarnation; what follows the fields so marked is that function's.
type Mirror struct {
	cfg   Config
	child *session.Child
	ref   *session.Ref[message]

	waiting atomic.Int64 // bytes of entries that are not in the store
	over    atomic.Bool  // the session has ended
	waiters atomic.Pointer[waiter]

	// Of the child.
	pending  []batch
	entries  int                    // in pending
	bytes    int64                  // in pending
	between  bool                   // no turn runs
	appended int                    // since the last session.Mirrored
	asked    []*kernel.Promise[any] // resolved once nothing is pending
}

// waiter is one call of Wait, in a list of them, the last one first.
type waiter struct {
	done *kernel.Promise[any]
	left atomic.Bool // it waits no longer
	next *waiter
}

// batch is what waits for one transcript.
type batch struct {
	key      session.StoreKey
	entries  []json.RawMessage
	bytes    int64
	attempts int
}

// message is what the child handles.
type message struct {
	report []byte               // from the agent; nil: what waits is due
	done   *kernel.Promise[any] // resolved once earlier entries are in the store, or lost; nil without a waiter
}

// New returns the mirror of a session.
func New(cfg Config) *Mirror {
	m := &Mirror{cfg: cfg, between: true}
	m.child, m.ref = session.NewChild(supervisor.Child{
		Name: Name, Shutdown: cfg.Options.Append + grace, Kill: grace,
	}, func() session.Behavior[message] {
		return session.Behavior[message]{Start: m.start, Handle: m.handle, Stop: m.stop}
	})
	return m
}

// grace is how long a store that does not return may run after its time.
const grace = 5 * time.Second

// Child is what the session supervises.
func (m *Mirror) Child() *session.Child { return m.child }

// Report takes a report of the agent; nil: what waits is due.
func (m *Mirror) Report(report []byte) {
	n := int64(len(report))
	if m.waiting.Add(n) > m.cfg.Options.Waiting && n > 0 {
		m.refuse(n, session.ErrMirrorFull)
		return
	}
	err := m.ref.Send(message{report: report})
	switch {
	case err == nil:
	case n > 0:
		if errors.Is(err, session.ErrChildFull) {
			err = session.ErrMirrorFull
		}
		m.refuse(n, err)
	}
}

func (m *Mirror) refuse(n int64, err error) {
	m.waiting.Add(-n)
	m.cfg.Emit(&session.MirrorFailed{Err: err})
}

// Wait waits until everything that was reported before is in the store, or lost.
func (m *Mirror) Wait(ctx context.Context) error {
	w := m.join()
	defer w.left.Store(true)
	switch err := m.ref.Send(message{done: w.done}); {
	case m.over.Load(), errors.Is(err, session.ErrNoChild):
		return nil // so is everything that it did
	case err != nil:
		return err
	}
	_, err := w.done.Wait(ctx, m.cfg.Exec)
	return err
}

// join adds a waiter to those whom End releases.
func (m *Mirror) join() *waiter {
	w := &waiter{done: kernel.NewPromise[any]()}
	for {
		last := m.waiters.Load()
		w.next = last
		for w.next != nil && w.next.left.Load() {
			w.next = w.next.next
		}
		if m.waiters.CompareAndSwap(last, w) {
			return w
		}
	}
}

// End reports what the session leaves behind. Nothing follows it.
func (m *Mirror) End() {
	if !m.over.CompareAndSwap(false, true) {
		return
	}
	for w := m.waiters.Swap(nil); w != nil; w = w.next {
		w.done.Resolve(nil)
	}
	if left := m.waiting.Load(); left > 0 {
		m.cfg.Emit(&session.MirrorFailed{Err: &session.StoreError{
			Doing: "append", Err: fmt.Errorf("the session ended, and about %d bytes were not appended in time (SessionStoreOptions.Append)", left),
		}})
	}
}

// start continues the work of the incarnation before.
func (m *Mirror) start(context.Context) error {
	if m.entries > 0 || len(m.asked) > 0 {
		_ = m.ref.Send(message{}) // without room something else will follow
	}
	return nil
}

func (m *Mirror) stop(ctx context.Context, why error) error {
	m.flush(ctx)
	if m.cfg.Over != nil && !errors.Is(why, session.ErrChildRestarts) {
		m.cfg.Over()
	}
	return nil
}

func (m *Mirror) handle(ctx context.Context, msg message) error {
	switch {
	case msg.done != nil:
		m.asked = append(m.asked, msg.done)
		m.flush(ctx)
	case msg.report == nil:
		if m.entries > 0 {
			m.cfg.Emit(&session.MirrorPending{Entries: m.entries})
		}
		m.between = true
		m.flush(ctx)
	default:
		m.take(msg.report)
		o := &m.cfg.Options
		if o.Flush == session.StoreEager || m.between || m.entries > o.Entries || m.bytes > o.Bytes {
			m.flush(ctx)
		}
	}
	return nil
}

// report is a line of type transcript_mirror.
type report struct {
	FilePath string            `json:"filePath"`
	Entries  []json.RawMessage `json:"entries"`
}

// take puts the entries of a report to those that wait.
func (m *Mirror) take(line []byte) {
	var r report
	err := protocol.Unmarshal(line, &r)
	var key session.StoreKey
	if err == nil {
		key, err = m.key(r.FilePath)
	}
	if err != nil {
		m.waiting.Add(-int64(len(line)))
		m.cfg.Emit(&session.MirrorFailed{Entries: len(r.Entries), Err: &session.StoreError{Doing: "read a report of the agent", Err: err}})
		return
	}
	m.between = m.between && !m.begins(r.Entries)
	m.entries += len(r.Entries)
	m.bytes += int64(len(line))
	for i := range m.pending {
		if b := &m.pending[i]; b.key == key && b.attempts == 0 {
			b.entries = append(b.entries, r.Entries...)
			b.bytes += int64(len(line))
			return
		}
	}
	m.pending = append(m.pending, batch{key: key, entries: r.Entries, bytes: int64(len(line))})
}

// begins reports whether a turn begins with the entries.
func (m *Mirror) begins(entries []json.RawMessage) bool {
	for _, e := range entries {
		var head struct {
			Type string `json:"type"`
		}
		if protocol.Unmarshal(e, &head) == nil && (head.Type == "user" || head.Type == "assistant") {
			return true
		}
	}
	return false
}

// key is where the entries of a file of the agent's belong.
func (m *Mirror) key(file string) (key session.StoreKey, err error) {
	rest, ok := m.below(file)
	if !ok {
		return key, fmt.Errorf("the agent stores its session in %s, which is outside of %s: its configuration directory must be that of its environment", file, filepath.Join(m.cfg.Root, "projects"))
	}
	rest, ok = strings.CutSuffix(rest, ".jsonl")
	project, rest, below := strings.Cut(rest, "/")
	key.Project = project
	key.Session, key.Subpath, _ = strings.Cut(rest, "/")
	if err := key.Valid(); !ok || !below || err != nil {
		return key, fmt.Errorf("%s is no file of a session", file)
	}
	return key, nil
}

// below is the path of a file below the folder of all projects, with slashes.
func (m *Mirror) below(file string) (rest string, ok bool) {
	file = filepath.ToSlash(file)
	if m.cfg.Root == "" {
		i := strings.LastIndex(file, "/projects/")
		if i < 0 {
			return "", false
		}
		return file[i+len("/projects/"):], true
	}
	return strings.CutPrefix(path.Clean(file), path.Join(filepath.ToSlash(m.cfg.Root), "projects")+"/")
}

// flush appends what waits. If ctx ends meanwhile, the rest waits for the next incarnation, and
// so does who asked for it.
func (m *Mirror) flush(ctx context.Context) {
	for len(m.pending) > 0 {
		b := &m.pending[0]
		b.attempts++ // counted before, so that a store that ends its goroutine is not called without end
		err := m.append(ctx, b)
		switch {
		case err == nil:
			m.appended += len(b.entries)
		case ctx.Err() != nil:
			b.attempts--
			return
		default:
			if !m.gaveUp(b, err) {
				m.pause(ctx, b.attempts)
				continue
			}
			m.cfg.Emit(&session.MirrorFailed{Key: b.key, Entries: len(b.entries), Err: &session.StoreError{Doing: "append", Key: b.key, Err: err}})
		}
		m.entries -= len(b.entries)
		m.bytes -= b.bytes
		m.waiting.Add(-b.bytes)
		m.pending[0] = batch{}
		m.pending = m.pending[1:]
	}
	m.pending = nil
	if n := m.appended; n > 0 {
		m.appended = 0
		m.cfg.Emit(&session.Mirrored{Entries: n})
	}
	for _, done := range m.asked {
		done.Resolve(nil)
	}
	m.asked = nil
}

// gaveUp reports whether the batch is not tried again. A batch that took too long may be in
// the store: it is repeated only as often as by the vendors' SDKs. A lease that another
// host has does not come back.
func (m *Mirror) gaveUp(b *batch, err error) bool {
	_, late := errors.AsType[*session.TimeoutError](err)
	lease, _ := errors.AsType[*session.LeaseError](err)
	return late || lease != nil && lease.Err == nil || b.attempts >= m.cfg.Options.Attempts
}

// append is one attempt.
func (m *Mirror) append(ctx context.Context, b *batch) (err error) {
	limit := &session.TimeoutError{What: "append to the session store", Limit: m.cfg.Options.Append, SetBy: "SessionStoreOptions.Append"}
	within, cancel := kernel.WithTimeout(ctx, m.cfg.Clock, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = &session.PanicError{Value: p, Message: "SessionStore.Append", Stack: debug.Stack()}
		}
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", limit, err)
		}
	}()
	entries := make([]json.RawMessage, len(b.entries))
	for i, e := range b.entries {
		entries[i] = bytes.Clone(e) // copies for the store, which may use them later
	}
	return m.cfg.Store.Append(within, b.key, entries)
}

// Pauses between attempts.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second
)

// pause waits after an attempt that has failed, or until ctx ends.
func (m *Mirror) pause(ctx context.Context, attempts int) {
	d := firstPause
	for ; attempts > 1 && d < maxPause; attempts-- {
		d *= 4
	}
	within, cancel := kernel.WithTimeout(ctx, m.cfg.Clock, &session.TimeoutError{What: "pause", Limit: min(d, maxPause)})
	defer cancel()
	_ = m.cfg.Exec.Await(within, nil) // nothing but the time ends it
}
