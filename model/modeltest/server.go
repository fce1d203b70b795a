package modeltest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

// Server is an endpoint of the Messages API and of chat completions. The zero value is ready
// to use. Its exported fields must be set before the first request. It is safe for concurrent
// use; Script and Fault are called by several goroutines at once.
type Server struct {
	// Script returns the answer to a request; nil: the text "ok".
	Script func(r *Request) *Answer
	// Fault returns the fault of a request, or nil. A nil Fault means no faults.
	Fault func(r *Request) *Fault
	// BatchTakes is how long a batch takes; 0: it is over when it is there.
	BatchTakes time.Duration
	// BatchFault returns the fault of the n-th batch, from 1, or nil. A nil BatchFault means no faults.
	BatchFault func(n int) *BatchFault
	Clock      session.Clock    // nil: the time of this process
	Exec       session.Executor // nil: goroutines

	mu       sync.Mutex
	requests []*Request
	open     int
	batches  []*batch
	files    []string // that were uploaded for batches
}

// Anthropic returns a client of the server that speaks the Messages API. AfterFunc of c is the
// server's, and so is Client if it is nil; a Client of the caller's has to lead to the server.
func (s *Server) Anthropic(c model.Config) *model.Client {
	return model.NewAnthropic(model.AnthropicConfig{Config: s.config(c)})
}

// OpenAI returns a client of the server that speaks chat completions. It takes c as
// [Server.Anthropic] does.
func (s *Server) OpenAI(c model.Config) *model.Client {
	return model.NewOpenAI(model.OpenAIConfig{Config: s.config(c)})
}

func (s *Server) config(c model.Config) model.Config {
	c.URL = cmp.Or(c.URL, "http://model.invalid/v1")
	if c.Client == nil {
		c.Client = &http.Client{Transport: s}
	}
	c.AfterFunc = func(d time.Duration, fn func()) func() bool { return s.clock().AfterFunc(d, fn).Stop }
	return c
}

// Requests are those that came so far, in their order.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Open is how many answers are neither read to their end nor closed.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *Server) clock() session.Clock {
	if s.Clock == nil {
		return kernel.NewClock(nil)
	}
	return s.Clock
}

func (s *Server) exec() session.Executor {
	if s.Exec == nil {
		return kernel.GoExecutor{}
	}
	return s.Exec
}

// wait returns why ctx has ended before.
func (s *Server) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	over := make(chan struct{})
	t := s.clock().AfterFunc(d, func() { close(over) })
	defer t.Stop()
	return s.exec().Await(ctx, over)
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(in *http.Request) (*http.Response, error) {
	if resp, err, is := s.aboutBatches(in); is {
		return resp, err
	}
	r, err := s.take(in)
	if err != nil {
		return nil, err
	}
	f := &Fault{}
	if s.Fault != nil {
		if some := s.Fault(r); some != nil {
			f = some
		}
	}
	if f.NoConnection {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if err := s.wait(in.Context(), f.Delay); err != nil {
		return nil, err
	}
	h := http.Header{"Request-Id": {"req_" + strconv.Itoa(r.N)}}
	reply := func(status int, kind string, body io.ReadCloser) (*http.Response, error) {
		h.Set("Content-Type", kind)
		return &http.Response{StatusCode: status, Header: h, Body: body, Request: in}, nil
	}
	switch {
	case f.Status != 0:
		if f.RetryAfter != "" {
			h.Set("Retry-After", f.RetryAfter)
		}
		return reply(f.Status, "application/json", io.NopCloser(strings.NewReader(f.body())))
	case f.Page != "":
		return reply(http.StatusOK, "text/html", io.NopCloser(strings.NewReader(f.Page)))
	}
	a := &Answer{Blocks: []model.Block{Text("ok")}}
	if s.Script != nil {
		if some := s.Script(r); some != nil {
			a = some
		}
	}
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	return reply(http.StatusOK, "text/event-stream", &stream{s: s, ctx: in.Context(), fault: f, pace: a.Pace, events: f.events(r, a.render(r, f))})
}

// take keeps a request.
func (s *Server) take(in *http.Request) (*Request, error) {
	r := &Request{Header: in.Header.Clone()}
	if in.Body != nil {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			return nil, fmt.Errorf("modeltest: read the request: %w", err)
		}
		_ = in.Body.Close() // a reader in memory
		r.Body = body
	}
	r.API = "anthropic"
	if strings.HasSuffix(in.URL.Path, "/chat/completions") {
		r.API = "openai"
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	r.N = len(s.requests)
	return r, nil
}

// stream is the body of an answer.
type stream struct {
	s      *Server
	ctx    context.Context //nolint:containedctx // that of the request
	fault  *Fault
	pace   time.Duration
	events [][]byte // that were not sent
	buf    []byte
	sent   int
	closed bool
}

// Close implements io.Closer.
func (b *stream) Close() error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.s.open--
	}
	return nil
}

// Read implements io.Reader.
func (b *stream) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	switch f := b.fault; {
	case f.BreakAt != 0 && b.sent >= f.BreakAt:
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case f.EndAt != 0 && b.sent >= f.EndAt:
		return 0, io.EOF
	case f.SilentAt != 0 && b.sent >= f.SilentAt:
		_ = b.s.exec().Await(b.ctx, nil) // the end of ctx
		return 0, context.Cause(b.ctx)
	}
	if len(b.buf) == 0 {
		if len(b.events) == 0 {
			_ = b.Close() // it never fails
			return 0, io.EOF
		}
		if err := b.s.wait(b.ctx, b.pace+b.fault.Pause); err != nil {
			return 0, err
		}
		b.buf, b.events = b.events[0], b.events[1:]
	}
	n := min(len(p), len(b.buf))
	if b.fault.Piece > 0 {
		n = min(n, b.fault.Piece)
	}
	for _, at := range []int{b.fault.BreakAt, b.fault.EndAt, b.fault.SilentAt} {
		if at > 0 {
			n = min(n, at-b.sent)
		}
	}
	n = copy(p, b.buf[:n])
	b.buf = b.buf[n:]
	b.sent += n
	return n, nil
}
