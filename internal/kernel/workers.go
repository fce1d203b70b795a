package kernel

import "sync"

// spares is how many idle goroutines the workers keep.
const spares = 4

// workers is the production executor and dispatcher. A goroutine that has run
// its task is used again, since its stack has grown to what tasks need; but none
// is kept once no task is left anywhere.
type workers struct {
	GoExecutor // Await

	mu    sync.Mutex
	live  int           // tasks that run, or are about to
	spare []chan func() // of idle goroutines; closed to end them
}

// Go implements [Executor].
func (w *workers) Go(fn func()) {
	w.mu.Lock()
	w.live++
	var idle chan func()
	if n := len(w.spare); n > 0 {
		idle, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	w.mu.Unlock()
	if idle != nil {
		idle <- fn
		return
	}
	go w.work(fn)
}

// Schedule implements [Dispatcher].
func (w *workers) Schedule(fn func()) { w.Go(fn) }

// Throughput implements [Dispatcher].
func (w *workers) Throughput() int { return GoDispatcher{}.Throughput() }

func (w *workers) work(fn func()) {
	var more chan func()
	for ok := true; ok; fn, ok = <-more {
		w.run(fn)
		if more == nil {
			more = make(chan func(), 1)
		}
		if !w.rest(more) {
			return
		}
	}
}

// run runs a task, which may end its goroutine instead of returning.
func (w *workers) run(fn func()) {
	returned := false
	defer func() {
		if !returned {
			w.rest(nil)
		}
	}()
	fn()
	returned = true
}

// rest ends a task and reports whether its goroutine is kept for another, which
// comes through more.
func (w *workers) rest(more chan func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live--
	if w.live == 0 {
		for _, idle := range w.spare {
			close(idle)
		}
		w.spare = nil
		return false
	}
	if more == nil || len(w.spare) == spares {
		return false
	}
	w.spare = append(w.spare, more)
	return true
}
