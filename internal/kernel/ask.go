package kernel

import (
	"context"
	"fmt"
	"sync"
)

// Promise is a value that arrives once. Any number of tasks may wait for it;
// the first Resolve or Fail wins and later ones are ignored. The zero value is
// not usable; call [NewPromise].
type Promise[T any] struct {
	once  sync.Once
	done  chan struct{}
	value T
	err   error
}

// NewPromise returns an open promise.
func NewPromise[T any]() *Promise[T] { return &Promise[T]{done: make(chan struct{})} }

// Resolve gives the value. It reports whether this call settled the promise.
func (p *Promise[T]) Resolve(v T) bool { return p.settle(v, nil) }

// Fail gives the error. It reports whether this call settled the promise.
func (p *Promise[T]) Fail(err error) bool {
	var zero T
	return p.settle(zero, err)
}

func (p *Promise[T]) settle(v T, err error) (won bool) {
	p.once.Do(func() {
		p.value, p.err, won = v, err, true
		close(p.done)
	})
	return won
}

// Done is closed when the promise is settled.
func (p *Promise[T]) Done() <-chan struct{} { return p.done }

// Value returns what settled the promise. Call it after Done is closed.
func (p *Promise[T]) Value() (T, error) { return p.value, p.err }

// Wait blocks the calling task until the promise is settled or ctx ends.
func (p *Promise[T]) Wait(ctx context.Context, ex Executor) (T, error) {
	if err := ex.Await(ctx, p.done); err != nil {
		var zero T
		return zero, err
	}
	return p.value, p.err
}

// Ask sends the message that build makes around a promise and waits for the answer. It
// ends early with ctx, and with [ErrStopped] when the present incarnation stops first,
// or if no incarnation lives. It must not be called from inside an actor.
func Ask[R, M any](ctx context.Context, to *Address[M], build func(*Promise[R]) M) (R, error) {
	p := NewPromise[R]()
	unwatch := to.box.watch(func() { p.Fail(fmt.Errorf("ask %s: %w", to.Name(), ErrStopped)) })
	defer unwatch()
	select {
	case <-p.Done():
		return p.Value()
	default:
	}
	to.Tell(nil, build(p))
	return p.Wait(ctx, to.box.sys.cfg.Executor)
}

// StopAndWait stops an actor with all its children and waits until they are
// gone. At the end of ctx it returns an error that names the actor.
func StopAndWait[M any](ctx context.Context, to *Address[M]) error {
	l := to.present()
	if l == nil {
		return nil
	}
	gone := NewPromise[struct{}]()
	unwatch := to.box.watch(func() { gone.Resolve(struct{}{}) })
	defer unwatch()
	l.stop()
	if _, err := gone.Wait(ctx, l.sys.cfg.Executor); err != nil {
		return fmt.Errorf("kernel: %s did not stop: %w", to.Name(), err)
	}
	return nil
}
