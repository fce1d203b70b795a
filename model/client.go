package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/base/sse"
)

const (
	// DefaultIdle is how long a stream may be silent if [Config.Idle] is 0.
	DefaultIdle = 90 * time.Second

	maxEvent  = 16 << 20 // bytes of an event of a stream
	maxAnswer = 16 << 20 // bytes of an answer, streamed or not
	maxError  = 64 << 10 // bytes of an error's body that are read
	firstRead = 1 << 10  // bytes of the first read: 10,000 slow streams have 10,000 of these
	lastRead  = 16 << 10 // and of those of a stream that is fast

	wholeLimit = 10 * time.Minute // for an answer in one piece, of which nothing comes before its end

	drainLimit = 100 * time.Millisecond // for the end of a stream behind a whole answer
)

// Config is an endpoint. Only URL may have to be set.
type Config struct {
	// URL is the API's, up to and without /messages or /chat/completions; "": the vendor's.
	URL string
	// Key returns the key. If it is nil, no key is sent. It is asked for each request, so that nothing
	// keeps it. Its error fails the request, as one of class Auth, unless ctx has ended.
	Key func(ctx context.Context) (string, error)
	// Client makes the requests: its proxy, certificates and authorities are the user's. It
	// is shared by all sessions of a host, so let it keep many idle connections; nil: one
	// of [NewHTTPClient]. Redirects are not followed, since the key would go with them, and
	// its Timeout would end long answers: leave that 0.
	Client *http.Client
	// Header is added to each request, in place of what would be there. Its names have the
	// form that http.Header.Set gives them.
	Header http.Header
	// Idle is how long the stream may be silent; 0: DefaultIdle. The time in which the
	// receiver works does not count.
	Idle time.Duration
	// AfterFunc makes timers; nil: the system's clock.
	AfterFunc func(d time.Duration, fn func()) (stop func() bool)
}

// NewHTTPClient returns a client for many streams to one host. The default transport keeps
// two idle connections for each host, so nearly each request would make a new one.
func NewHTTPClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 512
	t.ReadBufferSize, t.WriteBufferSize = 2<<10, 1<<10 // what is larger goes past them
	return &http.Client{Transport: t}
}

// Client is a [Model] behind an endpoint. Make one with [NewAnthropic], [NewOpenAI] or
// [Open].
type Client struct {
	cfg  Config
	url  string // of a request
	http *http.Client
	api  api
}

// api is what the client needs of a codec besides Codec's methods.
type api interface {
	Codec
	header(h http.Header, key string)
	// body is the request in parts, so that nothing of the conversation is copied.
	body(r *Request) [][]byte
	decoder(raw bool, emit func(*Event) bool) decoder
}

// decoder makes events of one answer.
type decoder interface {
	// event takes one event of a stream. It reports whether the answer is whole.
	event(data []byte) (whole bool, err error)
	// answer takes an answer that came in one piece.
	answer(data []byte) error
	// end is called if the stream ends without the last event. It reports whether the answer
	// is whole all the same.
	end() (whole bool, err error)
	// cut is called if the answer breaks off: it says how far the open block has come.
	cut()
}

func newClient(c Config, path string, a api) *Client {
	own := c.Client
	if own == nil {
		own = NewHTTPClient()
	}
	here := *own
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Idle = cmp.Or(c.Idle, DefaultIdle)
	if c.AfterFunc == nil {
		c.AfterFunc = afterFunc
	}
	return &Client{cfg: c, url: strings.TrimRight(c.URL, "/") + path, http: &here, api: a}
}

// afterFunc is the system's clock.
func afterFunc(d time.Duration, fn func()) func() bool {
	return time.AfterFunc(d, fn).Stop //troupe:seam the package has no executor, and is used without a runtime
}

// Endpoint is the URL of the requests, without a password.
func (c *Client) Endpoint() string { return redacted(c.url) }

// Codec implements [Model].
func (c *Client) Codec() Codec { return c.api }

// Stream implements [Model].
func (c *Client) Stream(ctx context.Context, r *Request, emit func(*Event) bool) error {
	limit := c.cfg.Idle
	if r.Whole {
		limit = max(limit, wholeLimit)
	}
	return c.exchange(ctx, limit, func(ctx context.Context, x *exchange) error {
		return x.run(ctx, r, func(e *Event) bool {
			x.reading.Store(false)
			defer x.reading.Store(true)
			if e.Kind == Start {
				e.RequestID = x.requestID
			}
			return emit(e)
		})
	})
}

// exchange has fn make a request with the key. It ends when nothing comes for the limit.
func (c *Client) exchange(ctx context.Context, limit time.Duration, fn func(context.Context, *exchange) error) error {
	key := ""
	if c.cfg.Key != nil {
		var err error
		if key, err = c.cfg.Key(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &Error{Class: Auth, RetryAfter: -1, Message: "the function for the key failed", Err: err}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{client: c, key: key, cancel: cancel}
	stop := x.watch(limit)
	defer stop()
	err := fn(ctx, x)
	switch {
	case err == nil, errors.Is(err, ErrStopped):
		return err
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrSilent):
		return context.Cause(ctx)
	}
	return x.failed(ctx, err)
}

// exchange is one request and its answer.
type exchange struct {
	client    *Client
	key       string
	cancel    context.CancelCauseFunc
	requestID string
	started   bool         // an event has come
	reads     atomic.Int64 // bytes that have come, or reads at least
	reading   atomic.Bool  // the time counts: the receiver does not work
}

// ticks are how often within the limit the silence is looked at. A timer for each read would
// cost more than the read.
const ticks = 4

// watch ends the request if nothing comes for the limit, or up to a quarter longer.
func (x *exchange) watch(limit time.Duration) (stop func()) {
	x.reading.Store(true)
	var last int64
	silent := 0
	var ended atomic.Bool
	var timer atomic.Pointer[func() bool]
	var arm func()
	tick := func() {
		if ended.Load() {
			return
		}
		now := x.reads.Load()
		if silent++; now != last || !x.reading.Load() {
			last, silent = now, 0
		}
		if silent >= ticks {
			x.cancel(ErrSilent)
			return
		}
		arm()
	}
	arm = func() {
		s := x.client.cfg.AfterFunc(limit/ticks, tick)
		timer.Store(&s)
	}
	arm()
	return func() {
		ended.Store(true)
		(*timer.Load())()
	}
}

// run makes the request and reads the answer.
func (x *exchange) run(ctx context.Context, r *Request, emit func(*Event) bool) error {
	accept := "text/event-stream"
	if r.Whole {
		accept = "application/json"
	}
	resp, err := x.post(ctx, accept, x.client.api.body(r))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	x.reads.Add(1)
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Oai-Request-Id", "Apim-Request-Id"} {
		if x.requestID = resp.Header.Get(name); x.requestID != "" {
			break
		}
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
		e := refusal(resp, text)
		if to := resp.Header.Get("Location"); to != "" && resp.StatusCode < http.StatusBadRequest {
			e.Message = "the endpoint redirects to " + to + ", and the key does not follow: use that URL"
		}
		return e
	}
	d := x.client.api.decoder(r.Raw, emit)
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/json": // some servers do not stream with tools
		// Some send white space until the answer is there: they are not silent.
		text, err := io.ReadAll(io.LimitReader(&noticed{ctx, resp.Body, x}, maxAnswer+1))
		if err != nil {
			return err
		}
		if len(text) > maxAnswer {
			return broken("the answer has more than %d bytes", maxAnswer)
		}
		x.started = true
		return d.answer(text)
	case "text/event-stream", "": // some servers leave it out
		return x.stream(resp.Body, d)
	}
	return broken("the endpoint answered with %s in place of a stream of events: is %s the API's URL?", kind, x.client.Endpoint())
}

func (x *exchange) post(ctx context.Context, accept string, parts [][]byte) (*http.Response, error) {
	body := func() (io.ReadCloser, error) { return &joined{parts: parts}, nil }
	first, _ := body() // it never fails
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.client.url, first)
	if err != nil {
		return nil, x.client.noRequest(err)
	}
	for _, b := range parts {
		req.ContentLength += int64(len(b))
	}
	req.GetBody = body // for a connection that was closed meanwhile
	req.Header.Set("Content-Type", "application/json")
	return x.send(req, accept)
}

// get asks the endpoint for something that it has.
func (x *exchange) get(ctx context.Context, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.client.url, http.NoBody)
	if err != nil {
		return nil, x.client.noRequest(err)
	}
	return x.send(req, accept)
}

// noRequest is the error of a request that cannot be made. That of the URL's parser has the URL in
// it, with a password, or a part of one.
func (c *Client) noRequest(err error) *Error {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		if err = wrong.Err; strings.Contains(c.url, "@") {
			err = errors.New("it has an @, so it is not shown: a name or a password in it must be escaped")
		}
		err = fmt.Errorf("the API's URL cannot be read: %w", err)
	}
	return &Error{Class: Invalid, RetryAfter: -1, Err: err}
}

func (x *exchange) send(req *http.Request, accept string) (*http.Response, error) {
	req.Header.Set("Accept", accept)
	x.client.api.header(req.Header, x.key)
	maps.Copy(req.Header, x.client.cfg.Header)
	resp, err := x.client.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the endpoint: %w", err)
	}
	return resp, nil
}

// stream reads a stream of events.
func (x *exchange) stream(body io.Reader, d decoder) error {
	events := sse.Decoder{MaxLine: maxEvent, MaxEvent: maxEvent}
	buf := make([]byte, firstRead)
	var whole bool
	var failed error
	one := func(e *sse.Event) bool {
		switch {
		case e.Skipped > 0:
			failed = broken("an event of %d bytes: at most %d are read", e.Skipped, maxEvent)
		case len(e.Data) > 0:
			x.started = true
			whole, failed = d.event(e.Data)
		}
		return !whole && failed == nil
	}
	for {
		n, err := body.Read(buf)
		x.reads.Add(1)
		if !events.Feed(buf[:n], one) {
			switch {
			case failed == nil && err == nil:
				x.drain(body)
			case failed != nil && !errors.Is(failed, ErrStopped):
				d.cut()
			}
			return failed
		}
		if n == len(buf) && n < lastRead {
			buf = make([]byte, 2*n)
		}
		switch {
		case errors.Is(err, io.EOF) && !x.started:
			return broken("the endpoint closed the stream before the first event")
		case err != nil:
			if whole, failed := d.end(); whole || failed != nil {
				return failed
			}
			d.cut()
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("read the answer: %w", err)
		}
	}
}

// drain reads what is behind a whole answer, which is the end of the stream, so that the
// connection can be used again. It is closed if the server does not end the stream.
func (x *exchange) drain(body io.Reader) {
	stop := x.client.cfg.AfterFunc(drainLimit, func() { x.cancel(nil) })
	defer stop()
	_, _ = io.CopyN(io.Discard, body, lastRead) // the answer is whole
}

// failed makes an [Error] of err, and takes the key out of it.
func (x *exchange) failed(ctx context.Context, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		e = &Error{Class: Network, RetryAfter: -1, Err: err}
	}
	e.RequestID, e.Started = x.requestID, x.started
	if len(x.key) >= 4 {
		e.Message = strings.ReplaceAll(e.Message, x.key, "[key]")
		e.Type = strings.ReplaceAll(e.Type, x.key, "[key]")
		if e.Err != nil && strings.Contains(e.Err.Error(), x.key) {
			e.Err = errors.New(strings.ReplaceAll(e.Err.Error(), x.key, "[key]"))
		}
	}
	return e
}
