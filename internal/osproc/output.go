package osproc

import (
	"os"
	"sync"
)

// output is a pipe from the process that can be watched. The zero value is
// closed.
type output struct {
	*os.File // nil: never opened

	mu      sync.Mutex
	unwatch func() // runs the watcher's callback at once; nil while nothing is watched
	closed  bool
	lost    bool // nothing can tell of output any more
}

// watch has fn run as a task once the pipe can be read from, or has ended or is
// closed. It reports false when nothing can tell of that.
func (o *output) watch(w *exitWatcher, fn func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.File == nil || o.closed || o.lost {
		return false
	}
	unwatch, ok := w.watchOutput(o.File, fn, o.lose)
	o.unwatch = unwatch
	return ok
}

// lose notes that the watcher failed, which has run what it was asked for.
func (o *output) lose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = true
}

// unwatchAll ends the watching for good: what was to be run is run.
func (o *output) unwatchAll() {
	o.mu.Lock()
	unwatch := o.unwatch
	o.unwatch, o.closed = nil, true
	o.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
}

// held reports whether a process still has the other end, as far as this system shows
// it.
func (o *output) held() bool { return o.File != nil && !hungUp(o.File) }

// Close implements [io.Closer].
func (o *output) Close() error {
	if o.unwatchAll(); o.File == nil {
		return os.ErrClosed
	}
	return o.File.Close()
}
