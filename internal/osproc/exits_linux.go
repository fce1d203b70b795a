package osproc

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// exitWatcher tells of exits through pidfds. They are in an epoll set of its
// own, and that set is in the runtime's poller, so that one parked goroutine
// serves all processes. Goroutine and set go when no process is watched.
type exitWatcher struct {
	clock kernel.Clock
	exec  kernel.Executor

	mu      sync.Mutex
	set     *os.File         // the epoll set; nil while nothing is watched
	setFD   int              // its descriptor: File.Fd would make it blocking
	waiting map[int]*Process // by pidfd
}

func (w *exitWatcher) init(clk kernel.Clock, exec kernel.Executor) {
	w.clock, w.exec = clk, exec
	w.waiting = make(map[int]*Process)
}

// watch closes p.exited once the leader has exited.
func (w *exitWatcher) watch(p *Process) {
	if !p.leader.hasFD || w.add(p) != nil {
		pollExit(w.clock, p)
	}
}

func (w *exitWatcher) add(p *Process) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	fd := p.leader.pidfd
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(w.setFD, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		w.closeIfIdle()
		return err
	}
	w.waiting[fd] = p
	return nil
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
		fd := int(ev.Fd)
		p, ok := w.waiting[fd]
		if !ok {
			continue
		}
		delete(w.waiting, fd)
		_ = unix.EpollCtl(w.setFD, unix.EPOLL_CTL_DEL, fd, nil)
		close(p.exited)
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
	//troupe:maporder each exit is watched for itself
	for _, p := range w.waiting {
		pollExit(w.clock, p)
	}
	clear(w.waiting)
	w.closeIfIdle()
}
