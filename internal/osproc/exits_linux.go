package osproc

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// exitWatcher reports exits through pidfds, and output that is waited for without a
// goroutine. They are in a separate epoll set, and that set is in the runtime's poller, so
// that one parked goroutine serves all processes. Goroutine and set go when nothing is
// watched.
type exitWatcher struct {
	clock kernel.Clock
	exec  kernel.Executor

	mu      sync.Mutex
	set     *os.File // the epoll set; nil while nothing is watched
	setFD   int      // its descriptor: File.Fd would make it blocking
	waiting map[int32]watched
	last    int32 // key in waiting: a descriptor may be closed, and be another's, before its event is read
}

// watched is a descriptor that becomes readable once.
type watched struct {
	fd    int
	ready func() // must not block
	lost  func() // takes the place of ready when the poller fails
}

func (w *exitWatcher) init(clk kernel.Clock, exec kernel.Executor) {
	w.clock, w.exec = clk, exec
	w.waiting = make(map[int32]watched)
}

// watch calls p.exit once the leader has exited.
func (w *exitWatcher) watch(p *Process) {
	poll := func() { pollExit(w.clock, p) }
	if !p.leader.hasFD {
		poll()
	} else if _, err := w.add(watched{p.leader.pidfd, p.exit, poll}); err != nil {
		poll()
	}
}

// watchOutput has fn run as a task once f can be read from, or has ended; when the
// poller fails lost is called, and fn is run. Before f is closed, unwatch must be
// called.
func (w *exitWatcher) watchOutput(f *os.File, fn, lost func()) (unwatch func(), ok bool) {
	run := func() { w.exec.Go(fn) }
	give := func() { w.exec.Go(func() { lost(); fn() }) }
	conn, err := f.SyscallConn()
	var key int32
	if err == nil {
		ctl := conn.Control(func(fd uintptr) { key, err = w.add(watched{int(fd), run, give}) })
		err = errors.Join(ctl, err)
	}
	if err != nil {
		return nil, false
	}
	return func() { w.unwatch(key) }, true
}

// unwatch runs what the descriptor did not have run yet.
func (w *exitWatcher) unwatch(key int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.waiting[key]; ok {
		w.forget(key, e)
		w.closeIfIdle()
		e.ready()
	}
}

func (w *exitWatcher) add(e watched) (key int32, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set == nil {
		if err := w.open(); err != nil {
			return 0, err
		}
	}
	w.last++
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: w.last}
	if err := unix.EpollCtl(w.setFD, unix.EPOLL_CTL_ADD, e.fd, &ev); err != nil {
		w.closeIfIdle()
		return 0, err
	}
	w.waiting[w.last] = e
	return w.last, nil
}

func (w *exitWatcher) forget(key int32, e watched) {
	delete(w.waiting, key)
	_ = unix.EpollCtl(w.setFD, unix.EPOLL_CTL_DEL, e.fd, nil)
}

func (w *exitWatcher) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else NewFile leaves it out of the poller
		_ = unix.Close(fd)
		return err
	}
	w.set, w.setFD = os.NewFile(uintptr(fd), "exits"), fd
	set := w.set
	w.exec.Go(func() { w.run(set, fd) })
	return nil
}

// run serves one set until it is closed.
func (w *exitWatcher) run(set *os.File, fd int) {
	conn, err := set.SyscallConn()
	if err != nil {
		w.giveUp(set)
		return
	}
	events := make([]unix.EpollEvent, 32)
	for {
		var n int
		err := conn.Read(func(uintptr) bool {
			// The set is edge triggered in the poller: it is read until it is
			// empty before the goroutine parks.
			n, _ = unix.EpollWait(fd, events, 0)
			return n > 0
		})
		if err != nil {
			w.giveUp(set)
			return
		}
		if !w.announce(events[:n]) {
			return
		}
	}
}

// announce reports whether anything is left to watch.
func (w *exitWatcher) announce(events []unix.EpollEvent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range events {
		if e, ok := w.waiting[ev.Fd]; ok {
			w.forget(ev.Fd, e)
			e.ready()
		}
	}
	return !w.closeIfIdle()
}

func (w *exitWatcher) closeIfIdle() bool {
	if len(w.waiting) > 0 {
		return false
	}
	_ = w.set.Close()
	w.set = nil
	return true
}

// giveUp is for a runtime poller that does not take the set: exits are polled
// on the clock from then on. A set that was closed for want of work, by add,
// has nothing to hand over.
func (w *exitWatcher) giveUp(set *os.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set != set {
		return
	}
	//troupe:maporder each is watched for itself
	for _, e := range w.waiting {
		e.lost()
	}
	clear(w.waiting)
	w.closeIfIdle()
}
