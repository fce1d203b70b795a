package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/base/sse"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The stream of events. The service sends a heartbeat about every 15 s (documented).
const (
	idleLimit    = time.Minute            // without a byte; then the stream is opened again
	firstBackoff = 500 * time.Millisecond // limit of the delay before the second attempt to open it; it doubles
	maxBackoff   = 30 * time.Second
	maxAttempts  = 10               // to open it, since the last event
	confirmLimit = 20 * time.Second // how long a message that may have arrived is looked for in the stream
	readSize     = 32 << 10
)

// stream is what a connection knows of the stream of events.
type stream struct {
	number   int       // of the present one, from 1; what comes from an earlier one is dropped
	state    streamIs  // what the stream does
	attempts int       // to open it, since the last event
	reopenAt time.Time // when to open it; zero: not now
	cancel   context.CancelCauseFunc
	// confirmBy is how long a message that may have arrived is looked for; zero: none is.
	confirmBy time.Time
}

type streamIs int

const (
	closed streamIs = iota // it is not needed, or waits for reopenAt
	opening
	open
)

// wantsStream reports whether the stream is needed and is not there.
func (c *conn) wantsStream() bool {
	needed := c.initID != "" && c.sessionID != "" || c.begun && len(c.book.open) > 0
	return needed && c.stream.state == closed && c.exit == nil
}

// reopen is when the stream is opened again; zero: nothing waits for a time.
func (c *conn) reopen() time.Time {
	if !c.wantsStream() {
		return time.Time{}
	}
	return c.stream.reopenAt
}

// restream opens the stream if it is needed and the time has come.
func (c *conn) restream(now time.Time) {
	if s := &c.stream; c.wantsStream() && !now.Before(s.reopenAt) {
		s.reopenAt = time.Time{}
		c.openStream()
	}
}

// openStream opens the stream and reads it, as a task.
func (c *conn) openStream() {
	s := &c.stream
	s.number++
	s.state = opening
	number := s.number
	ctx, cancel := context.WithCancelCause(c.ctx)
	s.cancel = cancel
	query := url.Values{}
	if c.lastID != "" {
		query.Set("after_id", c.lastID)
	}
	if st := c.cfg.agent.Stream; st != nil {
		if ms, ok := st.DeltaFlushIntervalMs.Value(); ok {
			query.Set("delta_flush_interval_ms", strconv.Itoa(ms))
		}
	}
	path, lastID := c.eventsPath()+"/stream", c.lastID
	here := func(do func()) func() {
		return func() {
			if c.stream.number == number {
				do()
			}
		}
	}
	c.host.Exec.Go(func() {
		defer cancel(nil)
		body, err := c.client.stream(ctx, path, query, lastID)
		if err != nil {
			c.queue.push(here(func() { c.streamLost(err) }))
			return
		}
		defer func() { _ = body.Close() }() // it was read to its end, or is not wanted
		c.queue.push(here(c.streamOpened))
		err = c.read(ctx, cancel, body, here)
		c.queue.push(here(func() { c.streamLost(err) }))
	})
}

// read reads the stream to its end and returns why it ended.
func (c *conn) read(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader, here func(func()) func()) error {
	var d sse.Decoder
	buf := make([]byte, readSize)
	for {
		timer := c.host.Clock.AfterFunc(idleLimit, func() {
			cancel(&session.TimeoutError{What: "the next byte of the event stream of Qoder's cloud", Limit: idleLimit})
		})
		n, err := body.Read(buf)
		timer.Stop()
		var events []sse.Event
		d.Feed(buf[:n], func(e *sse.Event) bool {
			e.Data = bytes.Clone(e.Data)
			events = append(events, *e)
			return true
		})
		if len(events) > 0 {
			c.queue.pushWhenFree(ctx, here(func() { c.events(events) }))
		}
		switch {
		case errors.Is(err, io.EOF):
			return errStreamClosed
		case err != nil:
			return c.client.clean(cause(ctx, err))
		case ctx.Err() != nil:
			return cause(ctx, ctx.Err())
		}
	}
}

// errStreamClosed says that the service has closed the stream.
var errStreamClosed = errors.New("the service closed it")

// streamOpened notes that the headers have come. Messages are posted from now on.
func (c *conn) streamOpened() {
	c.stream.state = open
	if c.initID != "" {
		c.initialized()
	}
	c.lookForUnclear()
}

// streamLost decides what to do about a stream that has ended or was not opened.
func (c *conn) streamLost(err error) {
	s := &c.stream
	s.state = closed
	if c.initID == "" && len(c.book.open) == 0 {
		return // the next message opens it again
	}
	after := time.Duration(-1)
	if r, ok := errors.AsType[*refused](err); ok {
		if after = r.after; r.err.Status < 500 && r.err.Status != http.StatusTooManyRequests && r.err.Status != http.StatusRequestTimeout {
			c.fail(r.err)
			return
		}
	}
	most := maxAttempts
	if !c.begun {
		most = maxTries // the error comes before the time limit of initialize
	}
	if s.attempts++; s.attempts > most {
		c.fail(lostError(err, most))
		return
	}
	delay := max(after, c.backoff(s.attempts))
	s.reopenAt = c.host.Clock.Now().Add(delay)
	c.host.Emit(&session.CloudReconnecting{SessionID: c.sessionID, Attempt: s.attempts, Delay: delay, Err: err})
}

// lostError is the error of a stream that could not be opened again.
func lostError(err error, attempts int) error {
	if e, ok := errors.AsType[*session.CloudError](err); ok {
		return e
	}
	return &session.CloudError{Op: opStream, Err: fmt.Errorf("the stream closed before the current turn reached a terminal state, %s without an event: %w", shown.Count(attempts, "time"), err)}
}

// backoff is the delay before attempt n: the first is soon, later ones are uniform below a limit
// that doubles.
func (c *conn) backoff(n int) time.Duration { return backoff(c.host.Rand, n) }

func backoff(rand session.Rand, n int) time.Duration {
	limit := min(firstBackoff<<min(n-1, 10), maxBackoff)
	return limit/2 + time.Duration(rand.Int64N(int64(limit/2)))
}

// events handles events in order.
func (c *conn) events(events []sse.Event) {
	for i := range events {
		if c.broken != nil || c.exit != nil {
			return
		}
		c.event(&events[i])
	}
	c.results(c.host.Clock.Now())
}

// event hands an event to the host, and then to the book: what the host did not get is read again
// by the next connection.
func (c *conn) event(e *sse.Event) {
	if e.Skipped > 0 {
		c.host.Emit(&session.WarningIssued{Problem: fmt.Sprintf("an event of the cloud's of %d bytes was skipped: a line may have %d bytes and an event %d", e.Skipped, sse.DefaultMaxLine, sse.DefaultMaxEvent)})
		return
	}
	if e.ID != "" && c.seen.has(e.ID) {
		return
	}
	data := dataOf(e.Data)
	d := readData(data)
	name := cmp.Or(d.Type, e.Name, "message")
	line := struct {
		Type      string          `json:"type"`
		Event     string          `json:"event"`
		ID        string          `json:"id,omitempty"`
		Data      json.RawMessage `json:"data"`
		UUID      string          `json:"uuid"`
		SessionID string          `json:"session_id"`
	}{"cloud_agent_event", text(name), text(e.ID), data, text(e.ID), c.sessionID}
	if e.ID == "" {
		line.UUID = c.uuid()
	}
	if !c.writeJSON(line) {
		return
	}
	c.stream.attempts = 0
	if e.ID != "" {
		c.seen.add(e.ID)
		c.lastID = e.ID
	}
	c.book.take(name, &d, c.host.Clock.Now())
	c.tellStarted()
	c.results(c.host.Clock.Now()) // right after the event that ends the turn
}

// text is a string of the cloud's that can be in JSON.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// dataOf is the data of an event as JSON: {} without data, and a string for text that is not
// JSON, as for the vendor's SDK 1.0.39 (observed).
func dataOf(data []byte) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage("{}")
	}
	data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	var b bytes.Buffer
	if json.Compact(&b, data) == nil {
		return b.Bytes()
	}
	quoted, err := json.Marshal(string(data))
	if err != nil {
		return json.RawMessage("{}") // cannot be: a string is JSON
	}
	return quoted
}

// writeJSON writes a line.
func (c *conn) writeJSON(v any) bool {
	b, err := protocol.Marshal(v)
	if err != nil {
		c.fail(fmt.Errorf("encode a line for the host: %w", err))
		return false
	}
	return c.write(b)
}
