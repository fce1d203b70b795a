package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// maxTries is how often a request is made that surely did not arrive.
const maxTries = 5

// start creates what the options want created, as a task. It runs once initialize has come.
func (c *conn) start() {
	if c.sessionID != "" {
		if c.served == 1 {
			c.opened(false, false)
		}
		return
	}
	want, agentID := c.cfg.agent, c.agentID
	c.host.Exec.Go(func() {
		created := false
		if agentID == "" {
			id, err := c.create(c.ctx, opCreateAgent, "/agents", want.Agent.Create)
			if err != nil {
				c.queue.push(func() { c.fail(err) })
				return
			}
			agentID, created = id, true
			c.queue.push(func() { c.agentID = id })
		}
		body := struct {
			Agent string `json:"agent"`
			*session.CloudSessionCreate
		}{agentID, want.Session.Create}
		id, err := c.create(c.ctx, opCreateSession, "/sessions", body)
		c.queue.push(func() {
			if err != nil {
				if created { // it stays in the cloud: its id is all that the user has of it
					c.host.Emit(&session.CloudOpened{AgentID: agentID, AgentCreated: true})
				}
				c.fail(err)
				return
			}
			c.sessionID = id
			c.opened(created, true)
		})
	})
}

// opened reports the ids.
func (c *conn) opened(agentCreated, sessionCreated bool) {
	c.host.Emit(&session.CloudOpened{SessionID: c.sessionID, AgentID: c.agentID, AgentCreated: agentCreated, SessionCreated: sessionCreated})
}

// create creates something and returns its id. A request that surely had no effect is made again.
func (c *conn) create(ctx context.Context, op, path string, body any) (string, error) {
	for try := 1; ; try++ {
		answer, err := c.client.post(ctx, op, path, body)
		if err == nil {
			var made struct {
				ID string `json:"id"`
			}
			if protocol.Unmarshal(answer, &made) != nil || made.ID == "" {
				return "", &session.CloudError{Op: op, Err: errNoID}
			}
			return made.ID, nil
		}
		delay, again := c.again(err, try)
		if !again || !c.sleep(ctx, delay) {
			return "", err
		}
	}
}

var errNoID = errors.New("the answer has no id")

// again reports whether a request that failed may be made again, because it surely had no effect,
// and when.
func (c *conn) again(err error, try int) (time.Duration, bool) {
	after, again := hadNoEffect(err)
	if !again || try >= maxTries || c.ctx.Err() != nil {
		return 0, false
	}
	return max(after, c.backoff(try)), true
}

// hadNoEffect reports whether a request that failed may be made again, because it surely had no
// effect, and the wait that the answer asks for; below 0: none.
func hadNoEffect(err error) (after time.Duration, again bool) {
	e, ok := errors.AsType[*session.CloudError](err)
	if !ok || e.Unclear {
		return 0, false
	}
	if r, ok := errors.AsType[*refused](err); ok {
		return r.after, e.Status == http.StatusTooManyRequests
	}
	return -1, neverSent(e.Err)
}

// sleep waits, and reports false if ctx ends before.
func (c *conn) sleep(ctx context.Context, d time.Duration) bool { return sleep(ctx, c.host, d) }

func sleep(ctx context.Context, h backend.Seams, d time.Duration) bool {
	over := make(chan struct{})
	timer := h.Clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	return h.Exec.Await(ctx, over) == nil
}

// eventsPath is the path of the session's events.
func (c *conn) eventsPath() string { return "/sessions/" + url.PathEscape(c.sessionID) + "/events" }

// line handles a line of the host's.
func (c *conn) line(line []byte) {
	f, err := protocol.ParseFrame(line)
	if err != nil {
		return // the host writes none
	}
	switch f.Type {
	case protocol.TypeControlRequest:
		c.control(&f)
	case "user":
		c.user(&f)
	}
}

// control handles a control request.
func (c *conn) control(f *protocol.Frame) {
	switch f.Subtype {
	case "initialize":
		c.initID = f.RequestID
		c.start()
	case "interrupt":
		c.interrupt(f.RequestID)
	default:
		c.answer(f.RequestID, nil, f.Subtype+" is not supported by Qoder's Cloud Agent")
	}
}

// initialized answers initialize, and names the session.
func (c *conn) initialized() {
	id := c.initID
	c.initID, c.begun = "", true
	// The lists are empty as for the vendor's SDK 1.0.39 (observed).
	c.answer(id, json.RawMessage(`{"commands":[],"agents":[],"output_style":"cloud-agent","available_output_styles":["cloud-agent"],`+
		`"models":[],"account":{},"capabilities":[]}`), "")
	c.writeJSON(struct {
		Type      string `json:"type"`
		Subtype   string `json:"subtype"`
		SessionID string `json:"session_id"`
		UUID      string `json:"uuid"`
	}{"system", "init", c.sessionID, c.uuid()})
}

// answer answers a control request: with an error if it is not empty.
func (c *conn) answer(id string, body json.RawMessage, failure string) {
	type response struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response,omitempty"`
		Error     string          `json:"error,omitempty"`
	}
	r := response{Subtype: "success", RequestID: id, Response: body}
	if failure != "" {
		r = response{Subtype: "error", RequestID: id, Error: failure}
	}
	c.writeJSON(struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}{"control_response", r})
}
