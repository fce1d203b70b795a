package troupenats

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// Results of this program wait in its own memory for a loop of Watch, up to so many bytes. The
// others, and those of other programs, are read as the loop comes to them, so many at a time.
const (
	keptBytes = 4 << 20
	atATime   = 16
)

// watcher is a loop over Watch. The mu of the mirror guards it.
type watcher struct {
	pending []told
	bytes   int           // of their results
	news    chan struct{} // closed by the next change; nil unless the loop waits
}

// told is a change, and where its result is.
type told struct {
	queue.Change
	seq    uint64
	object string
	note   uint64 // the sequence of a note that is to be read; 0: there is nothing to read
}

func (w *watcher) wake() {
	if w.news != nil {
		close(w.news)
		w.news = nil
	}
}

func (w *watcher) add(task string, r, note record) {
	t := told{Change: r.change(task), seq: r.seq, object: r.object}
	if r.state != queue.Over && note.seq != 0 {
		if t.Note = slices.Clone(note.note); t.Note == nil {
			t.note = note.seq
		}
	}
	if n := len(r.body); n > 0 && r.state == queue.Over && w.bytes+n <= keptBytes {
		t.Result = slices.Clone(json.RawMessage(r.body))
		w.bytes += n
	}
	w.pending = append(w.pending, t)
}

func (w *watcher) decision(d queue.Decision) {
	w.pending = append(w.pending, told{Change: queue.Change{Decision: &d}})
}

// take takes the next changes. Without changes the loop waits for news.
func (w *watcher) take() (next []told, news chan struct{}) {
	if len(w.pending) == 0 {
		w.pending, w.news = nil, make(chan struct{})
		return nil, w.news
	}
	n := min(len(w.pending), atATime)
	next, w.pending = w.pending[:n:n], w.pending[n:]
	for _, t := range next {
		w.bytes -= len(t.Result)
	}
	return next, nil
}

// tell gives a change to those who watch; mu is held.
func (m *mirror) tell(task string, r record) {
	for _, w := range m.watchers {
		w.add(task, r, m.notes[task])
		w.wake()
	}
}

func (m *mirror) watch(ctx context.Context) iter.Seq2[queue.Change, error] {
	return func(yield func(queue.Change, error) bool) {
		if err := m.current(ctx); err != nil {
			if ctx.Err() == nil {
				yield(queue.Change{}, err)
			}
			return
		}
		w := &watcher{}
		m.mu.Lock()
		for _, task := range m.order {
			w.add(task, m.stateOf(task), m.notes[task])
		}
		for _, d := range m.decided {
			w.decision(d)
		}
		w.pending = append(w.pending, told{Change: queue.Change{State: queue.Current}})
		m.watchers = append(m.watchers, w)
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.watchers = slices.DeleteFunc(m.watchers, func(o *watcher) bool { return o == w })
		}()
		for ctx.Err() == nil {
			m.mu.Lock()
			next, news := w.take()
			err := m.err
			m.mu.Unlock()
			switch {
			case len(next) == 0 && err != nil:
				yield(queue.Change{}, err)
				return
			case len(next) == 0:
				select {
				case <-ctx.Done():
				case <-news:
				}
				continue
			}
			next, err = m.q.results(ctx, next)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(queue.Change{}, err)
				return
			}
			for _, t := range next {
				if ctx.Err() != nil || !yield(t.Change, nil) {
					return
				}
			}
		}
	}
}

// results reads the results and notes that changes lack, at the same time, and leaves out a change that
// a later one has made void.
func (q *Queue) results(ctx context.Context, all []told) ([]told, error) {
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i := range all {
		switch t := &all[i]; {
		case t.State == queue.Over && t.Result == nil:
			work.Go(func() { t.Result, errs[i] = q.result(ctx, *t) })
		case t.note != 0:
			work.Go(func() { t.Note, errs[i] = q.noteSince(ctx, t.Task, t.note) })
		}
	}
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(t told) bool { return t.State == queue.Over && t.Result == nil }), nil
}

// result reads a result, and returns nil if it is void.
func (q *Queue) result(ctx context.Context, t told) (json.RawMessage, error) {
	if t.object == "" {
		return q.content(ctx, t.seq)
	}
	var body []byte
	err := q.files.fetch(ctx, t.object, func(r io.Reader) (err error) {
		body, err = io.ReadAll(r)
		return err
	})
	return body, err
}

// errLate is that of a message that the leader does not have yet.
var errLate = errors.New("the message is not there yet")

// content reads the body of a message that the stream has delivered, and returns nil if it is
// not there any more. A replica may deliver it before the leader has it.
func (q *Queue) content(ctx context.Context, seq uint64) (body []byte, err error) {
	began := time.Now()
	err = q.persist(ctx, q.cfg.Try, func(ctx context.Context) error {
		m, err := q.stream.GetMsg(ctx, seq)
		if codeOf(err) == jetstream.JSErrCodeMessageNotFound {
			if time.Since(began) < q.cfg.silence {
				return errLate
			}
			return nil
		}
		if err == nil {
			body = append([]byte{}, m.Data...) // not nil
		}
		return err
	})
	return body, err
}
