package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// maxQueued is how many bytes may wait for the handlers, as memory, until nothing more is read.
	maxQueued = 64 << 20
	// queuedCost is the memory of a message that waits, without the text of its line.
	queuedCost = 512
	// maxServing is how many requests may be open; each has a goroutine.
	maxServing = 1024
)

// Handler handles what the other side sends. Both functions are called in the order in
// which the lines came, one at a time, on a goroutine that does nothing else; reading
// continues meanwhile. They must return soon, and must not wait for a [Conn.Call].
type Handler struct {
	// Request begins with a request, and returns the function that does the work, which
	// runs on its own goroutine. Its result is encoded as JSON; it may be an [After]. An
	// error that is not an [*Error] is answered with CodeInternalError. ctx ends when
	// the other side cancels the request, and with the connection. A nil function, and a
	// nil Request, answer CodeMethodNotFound.
	Request func(ctx context.Context, method string, params json.RawMessage) func() (any, error)
	// Notification handles a notification. nil ignores it.
	Notification func(ctx context.Context, method string, params json.RawMessage)
}

// After is a result with a function that is called once the answer is written, also an
// answer that is an error, or could not be written.
type After struct {
	Result any
	Then   func()
}

// ConnOptions are the options of a connection. The zero value is valid.
type ConnOptions struct {
	// MaxLine is the longest line that is read, in bytes. A longer one is answered with
	// CodeInvalidRequest, and the connection lives. 0: 32 MiB.
	MaxLine int
	// Go starts a goroutine. nil: a go statement.
	Go func(func())
	// OnProblem gets an error for each line that is not a message. nil: no callback.
	OnProblem func(error)
}

// Conn is a connection of an agent or a client. It is safe for concurrent use.
type Conn struct {
	o       ConnOptions
	handler Handler
	lines   *lines

	writing sync.Mutex // held while a line is written
	w       io.Writer

	mu      sync.Mutex
	changed *sync.Cond
	queue   []queued
	bytes   int // in queue
	ended   bool
	calls   map[ID]chan Message
	serving map[ID]context.CancelFunc
	last    int64
	working sync.WaitGroup // the functions of requests
}

// queued is a message that waits for the handler, or an error to answer.
type queued struct {
	Message
	problem *Error
	size    int // in memory
}

// NewConn makes a connection that reads r and writes w. Nothing is read before Serve.
func NewConn(r io.Reader, w io.Writer, h Handler, o ConnOptions) *Conn {
	if o.MaxLine <= 0 {
		o.MaxLine = defaultMaxLine
	}
	if o.Go == nil {
		o.Go = func(f func()) {
			go f() //troupe:seam the default for programs; simulations set ConnOptions.Go
		}
	}
	if o.OnProblem == nil {
		o.OnProblem = func(error) {}
	}
	c := &Conn{o: o, handler: h, lines: newLines(r, o.MaxLine), w: w, calls: map[ID]chan Message{}, serving: map[ID]context.CancelFunc{}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// Serve reads until the end of the input, and returns when all that was read is handled.
// At the end of the input the error is nil. Calls that are open then fail with ErrClosed,
// the contexts of handlers end, and Serve waits for the functions of requests. The end of ctx alone does not end a blocked read:
// close the reader.
func (c *Conn) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	handled := make(chan struct{})
	c.o.Go(func() {
		defer close(handled)
		c.dispatch(ctx)
	})
	err := c.read(ctx)
	c.mu.Lock()
	c.ended = true
	for _, answer := range c.calls { //troupe:maporder each call learns the same
		close(answer)
	}
	clear(c.calls)
	c.changed.Broadcast()
	c.mu.Unlock()
	cancel()
	<-handled
	c.working.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (c *Conn) read(ctx context.Context) error {
	for ctx.Err() == nil {
		line, long, err := c.lines.next()
		if err != nil {
			return err
		}
		q := queued{size: queuedCost + 2*len(line)} // the line, and the parts of it that the message copies
		switch {
		case long:
			q.Message = ParseHead(line)
			q.problem = &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf("the line is longer than %d bytes", c.o.MaxLine)}
		default:
			q.Message, q.problem = ParseMessage(line)
		}
		c.mu.Lock()
		for c.bytes > maxQueued {
			c.changed.Wait()
		}
		c.queue = append(c.queue, q)
		c.bytes += q.size
		c.changed.Broadcast()
		c.mu.Unlock()
	}
	return context.Cause(ctx)
}

// dispatch hands out what was read, in order.
func (c *Conn) dispatch(ctx context.Context) {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.ended {
			c.changed.Wait()
		}
		if len(c.queue) == 0 {
			c.mu.Unlock()
			return
		}
		q := c.queue[0]
		c.queue[0] = queued{} // the array keeps it otherwise
		c.queue = c.queue[1:]
		c.bytes -= q.size
		c.changed.Broadcast()
		c.mu.Unlock()
		switch {
		case q.problem != nil:
			c.refuse(q)
		case q.Method == MethodCancelRequest:
			c.cancelled(q.Params)
		case q.Method != "" && q.ID == nil:
			if c.handler.Notification != nil {
				c.handler.Notification(ctx, q.Method, q.Params)
			}
		case q.Method != "":
			c.begin(ctx, *q.ID, q.Method, q.Params)
		default:
			c.answered(*q.ID, q.Message)
		}
	}
}

// refuse answers a line that is not a message. An answer that is too long fails its
// call, and a notification gets no answer.
func (c *Conn) refuse(q queued) {
	c.o.OnProblem(q.problem)
	switch {
	case q.Method == "" && q.ID != nil:
		if c.answered(*q.ID, Message{Error: q.problem}) {
			return
		}
	case q.Method != "" && q.ID == nil:
		return
	}
	id := ID{}
	if q.ID != nil {
		id = *q.ID
	}
	_ = c.answer(id, nil, q.problem) // the reader meets the end of the connection
}

// begin starts a request of the other side.
func (c *Conn) begin(ctx context.Context, id ID, method string, params json.RawMessage) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	_, twice := c.serving[id]
	var problem *Error
	switch {
	case twice:
		problem = &Error{Code: CodeInvalidRequest, Message: "the id belongs to a request that is still open"}
	case len(c.serving) >= maxServing:
		problem = &Error{Code: CodeInternalError, Message: fmt.Sprintf("%d requests are open already: wait for an answer", maxServing)}
	default:
		c.serving[id] = cancel
	}
	c.mu.Unlock()
	if problem != nil {
		cancel()
		_ = c.answer(id, nil, problem) // the reader meets the end of the connection
		return
	}
	var work func() (any, error)
	if c.handler.Request != nil {
		work = c.handler.Request(ctx, method, params)
	}
	if work == nil {
		cancel()
		c.mu.Lock()
		delete(c.serving, id)
		c.mu.Unlock()
		_ = c.answer(id, nil, &Error{Code: CodeMethodNotFound, Message: method + " is not known here"})
		return
	}
	c.working.Add(1)
	c.o.Go(func() {
		defer c.working.Done()
		defer cancel()
		result, err := safely(work)
		c.mu.Lock()
		delete(c.serving, id)
		c.mu.Unlock()
		after, isAfter := result.(After)
		if isAfter {
			result = after.Result
		}
		var problem *Error
		if err != nil {
			problem = errorOf(err)
		}
		_ = c.answer(id, result, problem) // the reader meets the end of the connection
		if after.Then != nil {
			after.Then()
		}
	})
}

// safely turns a panic of the handler into an answer.
func safely(work func() (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &Error{Code: CodeInternalError, Message: fmt.Sprintf("the handler panicked: %v", p)}
		}
	}()
	return work()
}

// cancelled ends the context of a request.
func (c *Conn) cancelled(params json.RawMessage) {
	var n CancelRequestNotification
	if Decode(MethodCancelRequest, params, &n) != nil {
		return
	}
	c.mu.Lock()
	cancel := c.serving[n.RequestID]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// answered hands an answer to its call, and reports whether there is one. Late answers
// have no call.
func (c *Conn) answered(id ID, m Message) bool {
	c.mu.Lock()
	answer, ok := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	if ok {
		answer <- m // has room for it
	}
	return ok
}

func (c *Conn) answer(id ID, result any, problem *Error) error {
	if problem != nil {
		return c.write(struct {
			JSONRPC string `json:"jsonrpc"`
			ID      ID     `json:"id"`
			Error   *Error `json:"error"`
		}{"2.0", id, problem})
	}
	data, err := json.Marshal(result)
	if err != nil {
		return c.answer(id, nil, &Error{Code: CodeInternalError, Message: "the result cannot be encoded: " + err.Error()})
	}
	return c.write(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      ID              `json:"id"`
		Result  json.RawMessage `json:"result"`
	}{"2.0", id, data})
}

// Call makes a request and decodes the result into result, which may be nil. An error of
// the other side is an [*Error]. If ctx ends first, the other side gets $/cancel_request,
// the error is that of ctx, and a late answer is ignored.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	answer := make(chan Message, 1)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return ErrClosed
	}
	c.last++
	id := NumberID(c.last)
	c.calls[id] = answer
	c.mu.Unlock()
	err := c.write(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      ID     `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
	if err != nil {
		c.forget(id)
		return err
	}
	//troupe:select an answer that comes with the end of ctx may count or not
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return ErrClosed
		case m.Error != nil:
			return m.Error
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("acp: the answer to %s: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		if c.forget(id) {
			_ = c.Notify(MethodCancelRequest, CancelRequestNotification{RequestID: id})
		}
		return context.Cause(ctx)
	}
}

// forget reports whether the call was still open.
func (c *Conn) forget(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.calls[id]
	delete(c.calls, id)
	return open
}

// Notify sends a notification. It waits while the other side does not read.
func (c *Conn) Notify(method string, params any) error {
	return c.write(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}

// write writes one line.
func (c *Conn) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("acp: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("acp: write: %w", err)
	}
	return nil
}
