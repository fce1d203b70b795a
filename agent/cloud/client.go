package cloud

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The requests to the cloud, as CloudError.Op names them.
const (
	opCreateAgent   = "create agent"
	opCreateSession = "create session"
	opStream        = "open event stream"
	opMessage       = "post message"
	opInterrupt     = "post interrupt"
)

const (
	requestTimeout = 30 * time.Second // of a request, and of the headers of a stream
	maxAnswer      = 1 << 20          // bytes of an answer that are read
	maxErrorText   = 2048             // bytes of an answer that an error shows
)

// client makes the requests. It is safe for concurrent use.
type client struct {
	base  string // without a slash at its end
	token string
	http  http.RoundTripper
	clock session.Clock
}

// post sends a body and returns the answer. An empty answer, and one that is not JSON, is
// nil, as for the vendor's SDK 1.0.39 (observed).
func (c *client) post(ctx context.Context, op, path string, body any) (json.RawMessage, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, &session.CloudError{Op: op, Err: fmt.Errorf("encode the request: %w", err)}
	}
	ctx, cancel := kernel.WithTimeout(ctx, c.clock, &session.TimeoutError{What: "request to Qoder's cloud", Limit: requestTimeout})
	defer cancel()
	resp, err := c.send(ctx, op, http.MethodPost, path, nil, content)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is not wanted
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	valid := json.Valid(answer)
	if err == nil && !valid {
		err = ctx.Err() // a server that sees the client leave may end its answer as if it were whole
	}
	if err != nil { // the request arrived and was accepted, but what the answer says is not known
		return nil, &session.CloudError{Op: op, Unclear: true, Err: c.clean(cause(ctx, err))}
	}
	if !valid {
		return nil, nil
	}
	return answer, nil
}

// bare makes a request without a body, whose answer says nothing but that it has succeeded.
func (c *client) bare(ctx context.Context, op, method, path string) error {
	ctx, cancel := kernel.WithTimeout(ctx, c.clock, &session.TimeoutError{What: "request to Qoder's cloud", Limit: requestTimeout})
	defer cancel()
	resp, err := c.send(ctx, op, method, path, func(req *http.Request) {
		if method == http.MethodPost { // the service documents it as required
			req.Header.Set("Content-Type", "application/json")
		}
	}, nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // the status has said it
	return nil
}

// stream opens a stream of events. The end of ctx ends it.
func (c *client) stream(ctx context.Context, path string, query url.Values, lastEventID string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := c.clock.AfterFunc(requestTimeout, func() {
		cancel(&session.TimeoutError{What: "headers of the event stream of Qoder's cloud", Limit: requestTimeout})
	})
	resp, err := c.send(ctx, opStream, http.MethodGet, path, func(req *http.Request) {
		req.URL.RawQuery = query.Encode()
		req.Header.Set("Accept", "text/event-stream")
		if lastEventID != "" {
			req.Header.Set("Last-Event-ID", lastEventID)
		}
	}, nil)
	if !timer.Stop() && err == nil {
		err = &session.CloudError{Op: opStream, Err: cause(ctx, context.Canceled)}
		_ = resp.Body.Close()
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return &body{resp.Body, cancel}, nil
}

// body is that of a stream; its end ends the stream's context.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// send sends a request and returns the answer if it is a success.
func (c *client) send(ctx context.Context, op, method, path string, more func(*http.Request), content []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(content))
	if err != nil {
		return nil, &session.CloudError{Op: op, Err: c.clean(err)}
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	if content == nil {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if more != nil {
		more(req)
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return nil, &session.CloudError{Op: op, Unclear: !neverSent(err), Err: c.clean(cause(ctx, err))}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()                                // nothing more of it is wanted
	text, _ := io.ReadAll(io.LimitReader(resp.Body, int64(4*maxErrorText))) // what could be read is shown
	return nil, &refused{err: c.refusal(op, resp, text), after: retryAfter(resp.Header, c.clock.Now())}
}

// refused is an answer that is an error, with what it says of another attempt.
type refused struct {
	err   *session.CloudError
	after time.Duration // until another attempt; below 0: the answer does not say
}

func (r *refused) Error() string { return r.err.Error() }
func (r *refused) Unwrap() error { return r.err }

// refusal is the error of an answer. A request that a server failed to handle may have had its effect.
func (c *client) refusal(op string, resp *http.Response, text []byte) *session.CloudError {
	e := &session.CloudError{Op: op, Status: resp.StatusCode, Unclear: resp.StatusCode >= 500 || resp.StatusCode == http.StatusRequestTimeout}
	var said struct {
		RequestID string          `json:"request_id"`
		Error     json.RawMessage `json:"error"`
	}
	var failure struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if protocol.Unmarshal(text, &said) == nil && protocol.Unmarshal(said.Error, &failure) == nil && failure.Message != "" {
		e.Type, e.Message, e.RequestID = c.cut(failure.Type), c.cut(failure.Message), c.cut(said.RequestID)
		return e
	}
	if e.Message = c.cut(strings.TrimSpace(string(text))); e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	return e
}

// cut makes a text of the cloud's fit for an error.
func (c *client) cut(s string) string {
	s = c.scrub(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
	}
	return s
}

// scrub removes the token.
func (c *client) scrub(s string) string {
	if c.token == "" {
		return s
	}
	return strings.ReplaceAll(s, c.token, "[token]")
}

// clean is err, or its text without the token if it has it.
func (c *client) clean(err error) error {
	if text := err.Error(); c.scrub(text) != text {
		return errors.New(c.scrub(text))
	}
	return err
}

// cause is why a request ended: what ended its context, if something did.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// neverSent reports whether a request that failed surely did not reach the service: there was
// no connection.
func neverSent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// maxRetryAfter is the longest wait that an answer can ask for.
const maxRetryAfter = time.Minute

// retryAfter is the wait that an answer asks for, in seconds or as a date; below 0: none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return min(time.Duration(min(n, 3600))*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return -1
}
