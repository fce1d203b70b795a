package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/internal/userproc"
	"github.com/agent-troupe/troupe/session"
)

const sweepLimit = 5 * time.Second

// command is a process that a tool has started, with all that it starts.
type command struct {
	h    *hands
	p    session.Process
	out  output
	read chan struct{} // closed when all its output is read

	before  []byte        // its output before it went to the background
	claimed atomic.Bool   // it is stopped
	gone    chan struct{} // closed when it has ended; status and err are set
	status  session.ExitStatus
	err     error
}

// commands are those of a session that have not ended.
type commands struct {
	mu   sync.Mutex
	live []*command // in the order of their starts
	over bool       // the session has ended: nothing starts any more
}

func (r *commands) add(c *command) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.live = append(r.live, c)
	return true
}

func (r *commands) drop(c *command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = slices.DeleteFunc(r.live, func(o *command) bool { return o == c })
}

// errEnded is why a command does not start in a session that has ended.
var errEnded = errors.New("the session has ended")

// finish says that the session has ended, and returns what still runs.
func (r *commands) finish() (left []*command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return slices.Clone(r.live)
}

// start starts a process. It is to be ended with end, in any case. Its input has nothing in
// it, and ends with the process or with this program.
func (h *hands) start(ctx context.Context, how session.Command) (*command, error) {
	program := how.Path
	spawner, how, input, err := h.wrap(how)
	if err != nil {
		return nil, err
	}
	p, err := userproc.Spawn(ctx, spawner, how, nil)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if input != nil {
		h.seams.Exec.Go(func() { _, _ = p.Stdin().Write(input) }) // a process that has ended reads nothing
	}
	c := &command{h: h, p: p, read: make(chan struct{}), gone: make(chan struct{})}
	h.seams.Exec.Go(func() {
		defer close(c.read)
		_, _ = io.Copy(&c.out, p.Stdout()) // it ends with the last process that has the pipe
	})
	if stderr := p.Stderr(); stderr != nil {
		h.seams.Exec.Go(func() { _, _ = io.Copy(io.Discard, stderr) })
	}
	if !h.session().commands.add(c) {
		_, _ = c.end()
		return nil, errEnded
	}
	return c, nil
}

// wait waits until the process has ended by itself, or ctx ends.
func (c *command) wait(ctx context.Context) error { return c.h.seams.Exec.Await(ctx, c.p.Exited()) }

// end ends the process and what it has left behind, waits until its output is read, and
// returns how it ended.
func (c *command) end() (session.ExitStatus, error) {
	h := c.h
	if !c.claimed.CompareAndSwap(false, true) {
		_ = h.seams.Exec.Await(context.Background(), c.gone)
		return c.status, c.err
	}
	select {
	case <-c.p.Exited():
	default:
		_ = c.p.Kill() // it may have ended
		_ = c.wait(context.Background())
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := h.seams.Clock.AfterFunc(sweepLimit, cancel)
	defer timer.Stop()
	_, _ = c.p.Sweep(ctx) // what cannot be killed is reported by the runtime's own sweep
	if h.seams.Exec.Await(ctx, c.read) != nil {
		c.p.CloseOutput()
		_ = h.seams.Exec.Await(context.Background(), c.read)
	}
	c.status, c.err = c.p.Reap()
	c.out.close()
	h.session().commands.drop(c)
	close(c.gone)
	return c.status, c.err
}

// endCommands ends all that still runs, and nothing starts any more: the session has ended.
func (h *hands) endCommands() {
	left := h.commands.finish()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer h.seams.Clock.AfterFunc(2*sweepLimit, cancel).Stop()
	for _, c := range left {
		h.seams.Exec.Go(func() { _, _ = c.end() })
	}
	for _, c := range left {
		_ = h.seams.Exec.Await(ctx, c.gone) // the runtime sweeps what takes longer
	}
}
