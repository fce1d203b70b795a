package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

const (
	// shutdownLimit bounds the end of the runtime, after the sessions'.
	shutdownLimit = 10 * time.Second
	// outputGrace is how long a closed session may take to write out the rest, once a
	// signal asked for the end.
	outputGrace = time.Second

	interrupting = "interrupting; Ctrl-C again closes the session"
)

// endings are the signals that end a run. One that is ignored when this program is started stays so: by nohup, and
// Ctrl-C by a script that has started it in the background.
func endings() []os.Signal {
	all := []os.Signal{syscall.SIGTERM}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			all = append(all, sig)
		}
	}
	return all
}

// watch turns signals into the end of a run: the first Ctrl-C interrupts the
// agent, the second closes the session, the third kills the agent, the fourth
// gives up. SIGTERM and SIGHUP close the session, however often they come:
// timeout(1) sends them twice.
type watch struct {
	r         *runner
	early     context.Context // ends with the first signal
	interrupt context.CancelFunc
	closing   context.Context // ends with the third
	kill      context.CancelFunc
	over      chan struct{} // the run has ended
	abandoned chan struct{}
	abandon   func()
	close     func() error // closes the session, once; returns when it is closed
	// spare reports whether this Ctrl-C interrupts a turn and leaves the session as it
	// is. nil: never.
	spare func() bool
	// discard reports whether this Ctrl-C only dropped what was typed at a prompt. nil: never.
	discard func() bool

	mu     sync.Mutex
	signal os.Signal
}

func newWatch(ctx context.Context, r *runner) *watch {
	w := &watch{r: r, spare: r.spare, discard: r.discard, over: make(chan struct{}), abandoned: make(chan struct{})}
	w.early, w.interrupt = context.WithCancel(ctx)
	w.closing, w.kill = context.WithCancel(context.WithoutCancel(ctx))
	w.abandon = sync.OnceFunc(func() { close(w.abandoned) })
	w.close = sync.OnceValue(func() error { return r.client.Close(w.closing) })
	return w
}

func (w *watch) stop() {
	close(w.over)
	w.interrupt()
	w.kill()
}

func (w *watch) watch() {
	for stage := 0; ; {
		select {
		case <-w.over:
			return
		case sig := <-w.r.process.signals:
			if sig == os.Interrupt {
				w.r.console.echoed()
				if w.discard != nil && stage == 0 && w.discard() {
					continue
				}
				if w.spare != nil && stage == 0 {
					if w.spare() {
						w.r.console.note(interrupting)
						go w.interruptTurn()
						continue
					}
					stage = 1 // there is no turn, or it was interrupted before
				}
				stage++
			} else if stage < 2 {
				stage = 2
			} else {
				continue
			}
			w.seen(sig)
			w.escalate(stage)
		}
	}
}

func (w *watch) escalate(stage int) {
	note := w.r.console.note
	switch stage {
	case 1:
		note(interrupting) // before the run can end
		w.interrupt()
		go w.interruptTurn()
	case 2:
		w.interrupt()
		go w.closeSession()
		note("closing; Ctrl-C again kills the agent")
	case 3:
		w.kill()
		note("killing the agent")
	default:
		w.abandon()
	}
}

// interruptTurn ends the running turn. The run then ends by itself.
func (w *watch) interruptTurn() {
	_, err := w.r.client.Interrupt(w.closing)
	if err != nil && !errors.Is(err, sdk.ErrNotConnected) && !errors.Is(err, sdk.ErrClosed) && w.closing.Err() == nil {
		w.r.console.note("the agent did not accept the interrupt: %v", err)
	}
}

// closeSession closes the session. Without a reader of the output the run cannot end by
// itself: then it is given up.
func (w *watch) closeSession() {
	_ = w.close() // the run reports it
	limit := time.NewTimer(outputGrace)
	defer limit.Stop()
	select {
	case <-w.over:
	case <-limit.C:
		w.abandon()
	}
}

func (w *watch) givenUp() bool {
	select {
	case <-w.abandoned:
		return true
	default:
		return false
	}
}

func (w *watch) seen(sig os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.signal == nil {
		w.signal = sig
	}
}

// first is the signal that began the end, or nil.
func (w *watch) first() os.Signal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.signal
}
