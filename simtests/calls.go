package simtests

import (
	"fmt"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// toolCalls is what callbacks and answers have said about the tool calls of one client.
// Several requests may be about one call: each of its hooks, a policy's hook, a permission
// request. The oracles judge the call, by all that was said about it.
type toolCalls struct {
	mu       sync.Mutex
	anybody  bool // a policy allows calls without the callback
	ofCall   map[callKey]*toolCall
	ofAnswer map[requestKey]*requests
}

// callKey names a tool call. A script may give calls of two processes the same id.
type callKey struct {
	process int // of the client, from 1
	tool    string
}

// requestKey names the requests that are about one call and call one kind of callback.
type requestKey struct {
	callKey
	callback string // CanUseTool, or the hook's event
}

// toolCall is one call.
type toolCall struct {
	allowed bool // by a callback, in time
	failed  int  // PreToolUse hooks that deny when they fail, and failed
	stopped bool // an answer to a hook denied it, or the agent gave up a hook, which does not allow the call
}

// requests are those that wait for one kind of callback.
type requests struct {
	open   int       // neither answered nor cancelled
	gaveUp time.Time // when the agent cancelled the last one that it did
}

func newToolCalls(anybody bool) *toolCalls {
	return &toolCalls{anybody: anybody, ofCall: make(map[callKey]*toolCall), ofAnswer: make(map[requestKey]*requests)}
}

// call returns what is known of a call; mu is held.
func (c *toolCalls) call(k callKey) *toolCall {
	t := c.ofCall[k]
	if t == nil {
		t = new(toolCall)
		c.ofCall[k] = t
	}
	return t
}

// requests returns those of one kind about a call; mu is held.
func (c *toolCalls) requests(k requestKey) *requests {
	r := c.ofAnswer[k]
	if r == nil {
		r = new(requests)
		c.ofAnswer[k] = r
	}
	return r
}

// allow notes that a CanUseTool callback allowed a call in time.
func (c *toolCalls) allow(k callKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.call(k).allowed = true
}

// allowed reports whether a permission request about a call may be answered with allow.
func (c *toolCalls) allowed(k callKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.anybody || c.call(k).allowed
}

// hookFailed notes that a PreToolUse hook failed that denies then.
func (c *toolCalls) hookFailed(k callKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.call(k).failed++
}

// asks notes a request of the agent's.
func (c *toolCalls) asks(k requestKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests(k).open++
}

// givesUp notes that the agent cancels a request.
func (c *toolCalls) givesUp(k requestKey, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests(k)
	r.open, r.gaveUp = max(0, r.open-1), now
	if k.callback == string(protocol.HookPreToolUse) {
		c.call(k.callKey).stopped = true
	}
}

// answered notes the answer to a request. Once all hooks of a call have their answers, it
// returns why the call must not run although no answer denies it, or "".
func (c *toolCalls) answered(k requestKey, denies bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests(k)
	r.open = max(0, r.open-1)
	if k.callback != string(protocol.HookPreToolUse) {
		return ""
	}
	t := c.call(k.callKey)
	t.stopped = t.stopped || denies
	if r.open > 0 || t.stopped || t.failed == 0 {
		return ""
	}
	return fmt.Sprintf("though %d of its PreToolUse hooks failed, and no answer denied it", t.failed)
}

// cancelled returns when the agent gave up the last request of one kind about a call; false
// if it did not, or if one of them still waits for its answer: it may be that one's callback
// that runs.
func (c *toolCalls) cancelled(k requestKey) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests(k)
	return r.gaveUp, r.open == 0 && !r.gaveUp.IsZero()
}

// process is the number of the client's process that runs now.
func (p *program) process() int {
	if p == nil {
		return 0
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.started
}

// gate reports whether a hook denies the tool call when it fails.
func gate(h session.Hook) bool {
	return h.Event == protocol.HookPreToolUse && h.OnFailure != session.ContinueOnFailure
}
