package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Executor runs what may block: requests, processes, files. It has the methods of
// session.Executor, which this package does not import.
type Executor interface {
	// Go runs fn as a separate task, never on the calling goroutine.
	Go(fn func())
	// Await blocks the calling task until done is closed or ctx ends. It returns nil if done
	// is closed, otherwise ctx's cause.
	Await(ctx context.Context, done <-chan struct{}) error
}

// ErrNoWake says that an agent cannot work outside of its strands: it has no
// [Config].Executor, or its port is not a [Signaller].
var ErrNoWake = errors.New("agent: work outside of the strands needs Config.Executor, and a Port that is a Signaller")

// errWake is the signal with which a task makes the engine look at its strands.
var errWake = errors.New("agent: a task has something for a strand")

// TaskPanic is the error of [Strand.Do] and [Receive] when the task has panicked. The
// agent continues.
type TaskPanic struct {
	Value any    // what was given to panic
	Stack []byte // of the task, as runtime/debug prints it
}

// Error says what the value was, without the stack.
func (p *TaskPanic) Error() string { return fmt.Sprintf("agent: a task has panicked: %v", p.Value) }

// outside are the tasks of an agent: what its strands wait for and cannot do themselves,
// since a strand that blocks blocks the agent. woken, and what mu guards, is all that more
// than one goroutine uses.
type outside struct {
	exec  Executor
	after func(time.Duration, func()) (stop func() bool)
	wake  func()
	woken atomic.Bool // a wake is under way: one is enough for all tasks

	mu   sync.Mutex
	live int           // tasks that have not ended
	none chan struct{} // closed when the last one has; nil while the agent does not wait
}

func newOutside(p Port, cfg *Config) *outside {
	s, ok := p.(Signaller)
	if !ok || cfg.Executor == nil {
		return nil
	}
	return &outside{exec: cfg.Executor, after: cfg.AfterFunc, wake: func() { s.Signal(errWake) }}
}

// poke has the engine look at its strands. The engine takes woken back before it looks, so
// what is written before a poke is seen.
func (o *outside) poke() {
	if o.woken.CompareAndSwap(false, true) {
		o.wake()
	}
}

// start runs fn as a task. ended gets its error, or its panic as one, before the strands are
// looked at.
func (o *outside) start(fn func() error, ended func(error)) {
	o.mu.Lock()
	o.live++
	o.mu.Unlock()
	o.exec.Go(func() {
		var err error
		defer func() {
			if v := recover(); v != nil {
				err = &TaskPanic{v, debug.Stack()}
			}
			ended(err)
			o.poke()
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.live--; o.live == 0 && o.none != nil {
				close(o.none)
				o.none = nil
			}
		}()
		err = fn()
	})
}

// join waits until no task is left, or limit has passed. The contexts of all tasks have
// ended. It is called on the goroutine that serves the agent, which is a task itself.
func (o *outside) join(limit time.Duration) {
	if o == nil {
		return
	}
	o.mu.Lock()
	if o.live == 0 {
		o.mu.Unlock()
		return
	}
	none := make(chan struct{})
	o.none = none
	o.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if o.after != nil {
		defer o.after(limit, cancel)()
	}
	_ = o.exec.Await(ctx, none) // a task that does not heed its context is left behind
}

// joinGrace is how long an agent that ends, and a strand that is aborted, waits for a task
// whose context has ended.
const joinGrace = 5 * time.Second

// Do runs fn as a task and waits for it. The engine answers the host meanwhile. The context
// of fn ends when the strand's turn or background task is aborted, and when the agent ends.
//
// Do returns when fn has, so what fn does to the world is over by then. After an abort it
// returns the reason, and at most 5 s later: a task that does not heed its context is left
// behind.
func (s *Strand) Do(fn func(ctx context.Context) error) error {
	return s.DoReporting(func(ctx context.Context, _ func(func())) error { return fn(ctx) })
}

// DoReporting is [Strand.Do] for a task that has something to say before it ends: the strand
// runs what the task gives to report, in that order. report returns at once. A function that comes
// after an abort is not run.
func (s *Strand) DoReporting(fn func(ctx context.Context, report func(func())) error) error {
	o := s.e.outside
	if o == nil {
		return ErrNoWake
	}
	if err := s.over(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	var done, some atomic.Bool
	var mu sync.Mutex
	var reports []func()
	report := func(r func()) {
		mu.Lock()
		reports = append(reports, r)
		mu.Unlock()
		some.Store(true)
		o.poke()
	}
	var result error
	o.start(func() error { return fn(ctx, report) }, func(err error) {
		result = err
		done.Store(true)
	})
	began := s.e.now()
	var err error
	for err == nil {
		if err = s.wait(-1, func() bool { return done.Load() || some.Load() }); err != nil {
			break
		}
		over := done.Load() // what was reported before is there
		some.Store(false)
		mu.Lock()
		said := reports
		reports = nil
		mu.Unlock()
		for _, r := range said {
			r()
		}
		if over {
			break
		}
	}
	cancel(err)
	if err != nil && !errors.Is(err, errOver) {
		_ = s.park(nil, joinGrace, done.Load) // the reason is what counts
	}
	s.slept += s.e.now() - began
	if err != nil {
		return err
	}
	return result
}

// over returns why nothing may begin any more: the strand was aborted, or the agent has ended,
// and its strands run to their ends.
func (s *Strand) over() error {
	if s.e.exit != nil {
		return errOver
	}
	return s.scope.cause()
}

// Receive runs fn as a task and yields what it emits, as many values at a time as there
// are. The task waits while limit values are not taken. emit returns false when the reader
// has stopped; fn must then return, as when its context ends. The last pair has the error of
// fn, or why the strand was aborted. After an abort Receive yields what fn still emits within
// a second; unlike [Strand.Do] it then waits no longer. The slice is valid until the next step.
func Receive[T any](s *Strand, limit int, fn func(ctx context.Context, emit func(T) bool) error) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		o := s.e.outside
		if o == nil {
			yield(nil, ErrNoWake)
			return
		}
		if err := s.over(); err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(errOver)
		f := &feed[T]{limit: limit, outside: o}
		o.start(func() error {
			return fn(ctx, func(v T) bool { return f.emit(ctx, v) })
		}, f.end)
		for {
			began := s.e.now()
			err := s.wait(-1, f.some.Load)
			s.slept += s.e.now() - began
			if err != nil {
				cancel(err)
				if !errors.Is(err, errOver) {
					_ = s.park(nil, lastWords, f.over) // the reason is what counts
					if items, _, _ := f.take(); len(items) > 0 && !yield(items, nil) {
						return
					}
				}
				yield(nil, err)
				return
			}
			items, ended, last := f.take()
			if len(items) > 0 && !yield(items, nil) {
				return
			}
			f.recycle(items)
			if ended {
				if last != nil {
					yield(nil, last)
				}
				return
			}
		}
	}
}

// lastWords is how long Receive waits for a task whose context has ended.
const lastWords = time.Second

// feed carries values from a task to a strand.
type feed[T any] struct {
	outside *outside
	limit   int
	some    atomic.Bool // there are values, or it has ended

	mu    sync.Mutex
	items []T
	spare []T // the slice of the last take, to be filled again
	ended bool
	err   error
	room  chan struct{} // closed when there is room; nil while the task does not wait
}

func (f *feed[T]) emit(ctx context.Context, v T) bool {
	f.mu.Lock()
	for len(f.items) >= f.limit {
		if f.room == nil {
			f.room = make(chan struct{})
		}
		room := f.room
		f.mu.Unlock()
		if f.outside.exec.Await(ctx, room) != nil {
			return false
		}
		f.mu.Lock()
	}
	f.items = append(f.items, v)
	first := !f.some.Swap(true)
	f.mu.Unlock()
	if first {
		f.outside.poke()
	}
	return ctx.Err() == nil
}

func (f *feed[T]) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.err = true, err
	f.some.Store(true)
}

// over reports whether the task has ended.
func (f *feed[T]) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

func (f *feed[T]) take() (items []T, ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items, f.items, f.spare = f.items, f.spare, nil
	if !f.ended {
		f.some.Store(false)
	}
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
	return items, f.ended, f.err
}

func (f *feed[T]) recycle(items []T) {
	clear(items)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spare = items[:0]
}
