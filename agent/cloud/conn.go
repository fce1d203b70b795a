package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

// conn is one connection of a [program] to the cloud. Its state belongs to the goroutine of
// Serve, which waits in Port.Next alone. Requests are tasks, and hand what they learn to that
// goroutine through the queue.
type conn struct {
	*program
	port   agent.Port
	client client
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   func() // closes idle connections
	queue  queue

	initID      string // request id of initialize, until it is answered
	begun       bool   // initialize was answered
	stream      stream
	answered    ids       // uuids of messages whose results this connection has written
	posting     bool      // a message's request is under way
	postAt      time.Time // when the next message may be posted; zero: at once
	interrupts  int       // under way
	interrupted bool      // the cloud took an interrupt since the last message was posted
	eof         bool
	broken      error       // the host does not read any more
	exit        *agent.Exit // how the connection ends; nil while it is open
}

func newConn(a *program, port agent.Port) *conn {
	c := &conn{program: a, port: port}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	rt, idle := a.cfg.transport()
	c.idle = idle
	c.client = client{base: a.cfg.BaseURL, token: a.cfg.token, http: rt, clock: a.host.Clock}
	c.queue.exec = a.host.Exec
	if s, ok := port.(agent.Signaller); ok {
		c.queue.wake = func() { s.Signal(errWake) }
	}
	a.book.drop() // the session gives them again
	for _, m := range a.book.open {
		if m.stage == posting { // its connection ended before the answer
			m.stage, m.problem = unclear, errors.New("the connection ended before the answer")
		}
	}
	return c
}

// errWake says that the queue has something.
var errWake = errors.New("cloud: a task has finished")

// errEnded is why requests end with their connection.
var errEnded = errors.New("the connection to the cloud was closed")

// end lets go of what the connection has.
func (c *conn) end() {
	c.cancel(errEnded)
	c.queue.close()
	c.idle()
}

// serve is the connection's loop.
func (c *conn) serve() agent.Exit {
	if c.queue.wake == nil {
		return agent.Exit{Code: 2, Err: errors.New("the cloud agent needs a port that can be signalled")}
	}
	for {
		line, err := c.port.Next(c.wait())
		switch {
		case err == nil:
			c.line(line)
		case errors.Is(err, io.EOF):
			c.eof = true
			c.book.drop()
			c.interruptAtEnd()
		case errors.Is(err, agent.ErrTerminated):
			return c.leave(agent.Exit{Code: 128 + 15})
		case errors.Is(err, agent.ErrInterrupted):
			return c.leave(agent.Exit{Code: 128 + 2})
		case errors.Is(err, agent.ErrKilled):
			return c.leave(agent.Exit{Signal: "KILL"})
		}
		for _, do := range c.queue.take() {
			if c.exit == nil && c.broken == nil {
				do()
			}
		}
		c.work()
		switch {
		case c.exit != nil:
			return c.leave(*c.exit)
		case c.broken != nil:
			return c.leave(agent.Exit{Code: 1, Err: c.broken})
		case c.eof && len(c.book.open) == 0 && c.interrupts == 0:
			return agent.Exit{}
		}
	}
}

// work does what is due.
func (c *conn) work() {
	now := c.host.Clock.Now()
	c.results(now)
	c.expireUnclear(now)
	c.restream(now)
	c.pump(now)
}

// wait is how long nothing is due; below 0: for good. work must do what is due, or wait
// returns at once again and again.
func (c *conn) wait() time.Duration {
	first := c.book.wake()
	for _, at := range []time.Time{c.reopen(), c.retryPost(), c.stream.confirmBy} {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return -1
	}
	return max(first.Sub(c.host.Clock.Now()), time.Nanosecond)
}

// fail ends the connection with an error of the cloud.
func (c *conn) fail(err error) {
	if c.exit != nil {
		return
	}
	exit := agent.Exit{Code: 1, Err: err}
	if e, ok := errors.AsType[*session.CloudError](err); ok {
		exit.Err = e
		if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
			exit.Code = exitNoLogin
		}
	}
	c.exit = &exit
}

// exitNoLogin is the exit code of qodercli whose login is missing or has expired.
const exitNoLogin = 41

// leave ends the connection and reports what may still run in the cloud.
func (c *conn) leave(exit agent.Exit) agent.Exit {
	if running := c.book.running(); len(running) > 0 {
		e := &session.CloudLeft{SessionID: c.sessionID, LastEventID: c.lastID, Interrupted: c.interrupted}
		for _, m := range running {
			e.Messages = append(e.Messages, m.uuid)
		}
		c.host.Emit(e)
	}
	return exit
}

// write writes a line to the host and reports whether it got it.
func (c *conn) write(line []byte) bool {
	if c.broken == nil {
		c.broken = c.port.Write(append(line, '\n'))
	}
	return c.broken == nil
}

// maxQueue is how much a connection queues before the reader of the stream waits: the host may
// read slowly.
const maxQueue = 16

// queue carries what tasks learn to the goroutine of Serve. The lock guards all fields but exec
// and wake; nothing is called under it but wake.
type queue struct {
	exec session.Executor
	wake func() // nil: the port cannot be signalled

	mu     sync.Mutex
	items  []func()
	woken  bool
	closed bool
	room   chan struct{} // closed when the queue is taken; nil without a waiter
}

// push queues do. It never waits.
func (q *queue) push(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.items = append(q.items, do)
	if !q.woken {
		q.woken = true
		q.wake()
	}
}

// pushWhenFree is push, once there is room or ctx has ended.
func (q *queue) pushWhenFree(ctx context.Context, do func()) {
	for {
		q.mu.Lock()
		if q.closed || len(q.items) < maxQueue {
			q.mu.Unlock()
			q.push(do)
			return
		}
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room := q.room
		q.mu.Unlock()
		if q.exec.Await(ctx, room) != nil {
			return
		}
	}
}

// take empties the queue.
func (q *queue) take() []func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items, q.woken = nil, false
	q.free()
	return items
}

// free wakes the waiters for room; mu is held.
func (q *queue) free() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.closed = nil, true
	q.free()
}
