package sdk

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/protocol"
)

// toolCall is what a handler's context knows of its call.
type toolCall struct {
	meta  json.RawMessage
	token json.RawMessage // of progress; nil when the agent wants none

	mu    sync.Mutex
	ended bool
}

type toolCallKey struct{}

func newToolCall(meta json.RawMessage) *toolCall {
	if len(meta) == 0 {
		return &toolCall{}
	}
	var m struct {
		Token json.RawMessage `json:"progressToken"`
	}
	_ = protocol.Unmarshal(meta, &m) // without a token there is no progress
	if string(m.Token) == "null" {
		m.Token = nil
	}
	return &toolCall{meta: meta, token: m.Token}
}

func callOf(ctx context.Context) *toolCall {
	c, _ := ctx.Value(toolCallKey{}).(*toolCall)
	return c
}

// end is called before the answer: no progress may follow it.
func (c *toolCall) end() {
	if c.token == nil { // there is no progress
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// Progress sends the agent the progress of the tool call whose context is ctx. progress
// must increase with each call; total is 0 if it is unknown; message may be empty. The
// call's [ToolTimeout] starts again, even if the agent does not get the notification.
//
// Progress reports whether the notification was sent. It was not sent if the agent did
// not ask for progress, if the call is over, if ctx is not the context of a tool's
// handler, or if the session has ended. Progress does not block, and is safe for
// concurrent use.
func Progress(ctx context.Context, progress, total float64, message string) bool {
	mcp.Alive(ctx)
	c := callOf(ctx)
	notify, ok := mcp.NotifierFromContext(ctx)
	if c == nil || c.token == nil || !ok {
		return false
	}
	// The form that the vendor's SDK sends (observed on the Claude Agent SDK
	// 0.3.329).
	params, err := json.Marshal(struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total,omitempty"`
		Message  string          `json:"message,omitempty"`
	}{c.token, progress, total, message})
	if err != nil { // NaN and infinities
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended && notify("notifications/progress", params) == nil
}

// ToolCallMeta returns the _meta object of the tool call whose context is ctx, unchanged;
// nil if the call has no _meta. Claude Code sends the id of the tool use under
// "claudecode/toolUseId" (observed on 2.1.329).
func ToolCallMeta(ctx context.Context) json.RawMessage {
	if c := callOf(ctx); c != nil {
		return c.meta
	}
	return nil
}
