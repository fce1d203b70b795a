package ui

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// patience is how long a page waits for other programs. One that is stopped, or has too much to do, must not
// hold up what is shown of the others.
const patience = 2 * time.Second

// questions are what other programs are being asked. One that has not answered is not asked the same again.
type questions struct {
	mu      sync.Mutex
	all     map[asking]*question
	stops   context.CancelFunc
	ctx     context.Context //nolint:containedctx // of all questions, until the window is closed
	closed  bool
	running sync.WaitGroup
}

// asking names a question.
type asking struct{ what, host string }

// question is one to a host. The answer is that of the question before until it has its own.
type question struct {
	began  time.Time
	done   chan struct{}
	mu     sync.Mutex
	answer any
}

func (q *question) known() any {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answer
}

// put asks, unless that is being asked already. Without an error the answer stays known until the next one.
func (a *questions) put(ctx context.Context, w *Window, key asking, ask func(context.Context) (any, error)) *question {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.all[key]
	if last != nil && !last.over() {
		return last
	}
	q := &question{began: w.clock.Now(), done: make(chan struct{})}
	if last != nil {
		q.answer = last.known()
	}
	if a.closed { // a page that is asked for still says what is known
		close(q.done)
		return q
	}
	if a.all == nil {
		a.all = map[asking]*question{}
		a.ctx, a.stops = context.WithCancel(context.WithoutCancel(ctx)) // others wait for the answer, too
	}
	a.all[key] = q
	within := a.ctx
	a.running.Add(1)
	w.exec.Go(func() {
		defer a.running.Done()
		defer close(q.done)
		answer, err := ask(within)
		if err != nil {
			answer = nil
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.answer = answer
	})
	return q
}

func (q *question) over() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// await returns the answer or, if it takes longer than pages wait, what was answered before; nil if nothing was.
func (q *question) await(ctx context.Context, w *Window) any {
	if rest := patience - w.clock.Now().Sub(q.began); rest > 0 && !q.over() {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer w.clock.AfterFunc(rest, stop).Stop()
		_ = w.exec.Await(ctx, q.done)
	}
	return q.known()
}

// keep forgets the answers of hosts that are gone, and questions that are over without one: jobs come and go.
func (a *questions) keep(hosts []Host) {
	there := map[string]bool{}
	for _, h := range hosts {
		there[h.ID()] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, q := range a.all { //troupe:maporder each is forgotten by itself
		if q.over() && (!there[key.host] || q.known() == nil) {
			delete(a.all, key)
		}
	}
}

// close ends all questions.
func (a *questions) close() {
	a.mu.Lock()
	a.closed = true
	if a.stops != nil {
		a.stops()
	}
	a.mu.Unlock()
	a.running.Wait()
}

// answersOf asks all hosts at once. A host that has an error, or has never answered, has the zero value.
func answersOf[T any](ctx context.Context, w *Window, what string, hosts []Host, ask func(context.Context, Host) (T, error)) []T {
	w.asks.keep(hosts)
	var asked []*question
	for _, h := range hosts {
		asked = append(asked, w.asks.put(ctx, w, asking{what, h.ID()}, func(ctx context.Context) (any, error) { return ask(ctx, h) }))
	}
	all := make([]T, len(hosts))
	for i, q := range asked {
		all[i], _ = q.await(ctx, w).(T)
	}
	return all
}

// looks asks jobs where they stand: those of this program in turn, those of other hosts at once. Of
// one that does not answer the last state stays; the next look asks again. The error is of a job of this program.
func (w *Window) looks(ctx context.Context, books []*book) (err error) {
	var asked []*question
	for _, b := range books {
		if b.host == "" {
			err = cmp.Or(err, b.look(ctx))
			continue
		}
		key := asking{"job " + b.job.ID(), b.host}
		asked = append(asked, w.asks.put(ctx, w, key, func(ctx context.Context) (any, error) { return nil, b.look(ctx) }))
	}
	for _, q := range asked {
		q.await(ctx, w)
	}
	return err
}
