package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// user takes a user message. One that an earlier connection was given is not posted again.
func (c *conn) user(f *protocol.Frame) {
	uuid := f.UUID()
	var line struct {
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	_ = protocol.Unmarshal(f.Raw, &line) // then the content is empty
	if result := c.unread[uuid]; result != nil {
		if c.write(result) {
			delete(c.unread, uuid)
			c.answered.add(uuid)
		}
		return
	}
	if m := c.book.message(uuid); m != nil && uuid != "" {
		c.tellStarted()
		return
	}
	m := &message{uuid: uuid, text: flatten(line.Message.Content), at: c.host.Clock.Now()}
	switch {
	case c.answered.has(uuid): // by the time the host gave it again
	case uuid != "" && c.book.closed.has(uuid):
		c.refuse(m, "the message has its result already")
	case c.eof:
	default:
		c.book.open = append(c.book.open, m)
	}
}

// flatten is the text of a content: text blocks are joined by newlines, and any other block is its
// JSON, as for the vendor's SDK 1.0.39 (observed).
func flatten(content json.RawMessage) string {
	var text string
	if protocol.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []json.RawMessage
	if protocol.Unmarshal(content, &blocks) != nil {
		return ""
	}
	parts := make([]string, len(blocks))
	for i, raw := range blocks {
		var block struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if protocol.Unmarshal(raw, &block) == nil && block.Type == "text" && block.Text != nil {
			parts[i] = *block.Text
			continue
		}
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil {
			parts[i] = b.String()
		}
	}
	return strings.Join(parts, "\n")
}

// tellStarted says of each message that a process before this one was given, and of each that this
// one posts after it, that its turn has begun: the session then waits for its result.
func (c *conn) tellStarted() {
	if c.served == 1 {
		return
	}
	for _, m := range c.book.open {
		if m.stage != posted || m.told == c.served {
			continue
		}
		m.told = c.served
		c.writeJSON(struct {
			Type      string `json:"type"`
			Command   string `json:"command_uuid"`
			State     string `json:"state"`
			UUID      string `json:"uuid"`
			SessionID string `json:"session_id"`
		}{"command_lifecycle", m.uuid, protocol.LifecycleStarted, c.uuid(), c.sessionID})
	}
}

// retryPost is when a message is posted that was not; zero: nothing waits for a time.
func (c *conn) retryPost() time.Time {
	if c.posting || c.stream.state != open || c.book.next() == nil {
		return time.Time{}
	}
	return c.postAt
}

// pump posts the next message, once the stream is open: its events are not missed then.
func (c *conn) pump(now time.Time) {
	m := c.book.next()
	if m == nil || c.posting || c.stream.state != open || now.Before(c.postAt) || c.exit != nil {
		return
	}
	c.postAt, c.posting, c.interrupted = time.Time{}, true, false
	c.book.begin(m, now)
	c.send(opMessage, map[string]string{"type": eventUserMessage, "content": m.text}, func(answer json.RawMessage, err error) {
		c.posting = false
		c.postedMessage(m, answer, err)
	})
}

// send posts an event as a task. then runs in Serve.
func (c *conn) send(op string, event any, then func(json.RawMessage, error)) {
	path := c.eventsPath()
	c.host.Exec.Go(func() {
		answer, err := c.client.post(c.ctx, op, path, map[string]any{"events": []any{event}})
		c.queue.push(func() { then(answer, err) })
	})
}

// postedMessage handles the answer to a message.
func (c *conn) postedMessage(m *message, answer json.RawMessage, err error) {
	now := c.host.Clock.Now()
	if err == nil {
		c.book.arrived(m, turnID(answer), now)
		c.tellStarted()
		c.results(now)
		return
	}
	e, _ := errors.AsType[*session.CloudError](err)
	delay, again := c.again(err, m.attempts)
	switch {
	case again:
		m.stage, c.postAt = queued, now.Add(delay)
	case e != nil && e.Unclear:
		m.stage, m.problem = unclear, err
		c.stream.confirmBy = now.Add(confirmLimit)
		c.book.confirm(now)
		c.lookAgain()
	case e != nil && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden):
		m.stage = queued
		c.fail(err)
	default:
		c.refuse(m, err.Error())
	}
}

// turnID is the turn of the answer to a message; "": the answer names none.
func turnID(answer json.RawMessage) string {
	var said struct {
		Data []struct {
			TurnID string `json:"turn_id"`
		} `json:"data"`
	}
	_ = protocol.Unmarshal(answer, &said) // then it names none
	for _, d := range said.Data {
		if d.TurnID != "" {
			return d.TurnID
		}
	}
	return ""
}

// lookAgain opens the stream anew, so that it shows what the cloud has: the connection may be
// dead. Without an id to begin at, the cloud may repeat everything, so the stream is kept.
func (c *conn) lookAgain() {
	if c.stream.state != closed && c.lastID != "" {
		c.stream.cancel(errLook)
		c.stream.number++ // what comes from it is dropped, and read again
		c.stream.state = closed
	}
}

var errLook = errors.New("a request has failed, and the stream is opened again")

// lookForUnclear begins the search for messages that may have arrived.
func (c *conn) lookForUnclear() {
	now := c.host.Clock.Now()
	c.book.confirm(now)
	for _, m := range c.book.open {
		if m.stage == unclear {
			c.stream.confirmBy = now.Add(confirmLimit)
		}
	}
}

// expireUnclear ends messages of which the cloud has shown nothing in time.
func (c *conn) expireUnclear(now time.Time) {
	if c.stream.confirmBy.IsZero() || now.Before(c.stream.confirmBy) {
		return
	}
	c.stream.confirmBy = time.Time{}
	for _, m := range slices.Clone(c.book.open) {
		if m.stage == unclear {
			c.refuse(m, fmt.Sprintf("%v; the cloud has not shown the message within %v, and it was not posted again", m.problem, confirmLimit))
		}
	}
}

// refuse gives a message a result that says why it was not run.
func (c *conn) refuse(m *message, why string) {
	c.book.close(m, nil)
	c.result(m, resultOf(nil).fail(why))
}

// results writes the results of the messages that are over.
func (c *conn) results(now time.Time) {
	for c.broken == nil {
		m, t := c.book.pop(now)
		if m == nil {
			return
		}
		if t != nil && t.truncated {
			c.host.Emit(&session.WarningIssued{Problem: fmt.Sprintf("the result of message %s has the first %d bytes of its text; the rest is in the events", m.uuid, maxText)})
		}
		c.result(m, resultOf(t))
	}
}

// result writes a result, and keeps it if the host does not get it.
func (c *conn) result(m *message, r *result) {
	r.DurationMs = c.host.Clock.Now().Sub(m.at).Milliseconds()
	r.DurationAPIMs = r.DurationMs
	r.TotalCostUSD = c.book.spent.cost
	maps.Copy(r.ModelUsage, c.book.spent.models)
	r.UUID, r.SessionID, r.UserMessageUUID = c.uuid(), c.sessionID, m.uuid
	line, err := protocol.Marshal(r)
	if err != nil {
		c.fail(fmt.Errorf("encode a result: %w", err))
		return
	}
	if c.write(line) {
		c.answered.add(m.uuid)
	} else {
		c.unread[m.uuid] = line
	}
}

// interrupt asks the cloud to stop its turn, and answers the request with that id, if there is one.
// Messages that were not posted are not posted any more.
func (c *conn) interrupt(requestID string) {
	if c.sessionID == "" || !c.begun {
		c.answer(requestID, nil, "there is no cloud session yet")
		return
	}
	for _, m := range c.book.drop() {
		c.refuse(m, "the message was interrupted before it was posted")
	}
	c.interrupts++
	c.send(opInterrupt, map[string]string{"type": "user.interrupt"}, func(_ json.RawMessage, err error) {
		c.interrupts--
		c.interrupted = err == nil
		c.host.Emit(&session.CloudInterrupted{SessionID: c.sessionID, Err: err})
		switch {
		case requestID == "":
		case err != nil:
			c.answer(requestID, nil, err.Error())
		default:
			c.answer(requestID, json.RawMessage("{}"), "")
		}
	})
}

// interruptAtEnd asks the cloud to stop its turn because the host goes, unless it was asked.
func (c *conn) interruptAtEnd() {
	if len(c.book.running()) > 0 && c.interrupts == 0 && !c.interrupted && c.begun {
		c.interrupt("")
	}
}
