package view

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
)

// CallState is how far a tool call has come.
type CallState string

// The states of a [ToolCall]. All but CallRunning are final.
const (
	CallRunning  CallState = "running" // or waiting to be allowed
	CallDone     CallState = "done"
	CallFailed   CallState = "failed"
	CallDenied   CallState = "denied"
	CallDeferred CallState = "deferred" // a hook put it off, which ended the turn
	CallLost     CallState = "lost"     // its turn or its subagent ended without it
)

// ToolCall is a tool call, and its result as far as it is known.
type ToolCall struct {
	ID   string // of its [protocol.ToolUseBlock]
	Name string // as the model called it; mcp__SERVER__TOOL for an MCP tool
	// Raw is the input as the model wrote it. A callback may have run the call
	// with another, which Claude Code 2.1.329 does not report (observed), or in
	// Decision.RunInput (declared).
	Raw json.RawMessage
	// ParentToolUseID is the call whose subagent made this one; "" for the main
	// agent.
	ParentToolUseID string
	State           CallState // [CallRunning] or one of the final states
	// Replayed: it is history that a resumed session shows.
	Replayed bool
	// Result is the result that the model reads; nil while the call runs.
	Result *protocol.ToolResultBlock
	// RawOutput is the structured output, in the tool's own shape, or nil.
	RawOutput json.RawMessage
	// MCP has the further fields of an MCP tool's result, or nil.
	MCP *protocol.MCPResultMeta
	// Decision says who allowed or denied the call; nil if the agent did not report it.
	Decision *protocol.ToolResultMeta
	// Elapsed is how long the call had run at its last tool_progress message.
	Elapsed time.Duration
	// Summary is the agent's line of text about this call and those before it.
	Summary string
}

// Input is the typed input; see [tools.DecodeInput].
func (c *ToolCall) Input() (tools.Input, error) { return tools.DecodeInput(c.Name, c.Raw) }

// Output is the typed output, or nil; see [tools.DecodeOutput].
func (c *ToolCall) Output() (tools.Output, error) { return tools.DecodeOutput(c.Name, c.RawOutput) }

// ToolCalls pairs tool calls with their results, which come in the order in
// which the calls end. A call of a session that was resumed may have begun
// before its messages; its result then has no call.
type ToolCalls struct {
	all []*ToolCall
	by  map[string]*ToolCall
}

// All returns the calls in the order in which they were made.
func (c *ToolCalls) All() []*ToolCall { return c.all }

// Get returns the call id, or nil.
func (c *ToolCalls) Get(id string) *ToolCall { return c.by[id] }

// Running returns the calls that have not ended.
func (c *ToolCalls) Running() []*ToolCall {
	var out []*ToolCall
	for _, call := range c.all {
		if call.State == CallRunning {
			out = append(out, call)
		}
	}
	return out
}

// Forget drops the calls that have ended.
func (c *ToolCalls) Forget() {
	c.all = c.Running()
	c.by = make(map[string]*ToolCall, len(c.all))
	for _, call := range c.all {
		c.by[call.ID] = call
	}
}

// Add takes a message and returns the calls that it changed.
func (c *ToolCalls) Add(m protocol.Message) []*ToolCall {
	switch m := known(m).(type) {
	case *protocol.AssistantMessage:
		return c.calls(m)
	case *protocol.UserMessage:
		return c.results(m)
	case *protocol.ToolProgressMessage:
		return c.progress(m)
	case *protocol.ToolUseSummaryMessage:
		return c.each(m.PrecedingToolUseIDs, func(call *ToolCall) { call.Summary = m.Summary })
	case *protocol.PermissionDeniedMessage:
		return c.each([]string{m.ToolUseID}, func(call *ToolCall) { call.State = CallDenied })
	case *protocol.TaskNotificationMessage:
		return c.lose(func(call *ToolCall) bool { return m.ToolUseID != "" && call.ParentToolUseID == m.ToolUseID })
	case *protocol.ResultMessage:
		// Calls of subagents in the background continue.
		lost := c.lose(func(call *ToolCall) bool { return call.ParentToolUseID == "" })
		if d := m.DeferredToolUse; d != nil && c.by[d.ID] != nil {
			c.by[d.ID].State = CallDeferred
		}
		return lost
	}
	return nil
}

func (c *ToolCalls) each(ids []string, change func(*ToolCall)) []*ToolCall {
	var out []*ToolCall
	for _, id := range ids {
		if call := c.by[id]; call != nil {
			change(call)
			out = append(out, call)
		}
	}
	return out
}

func (c *ToolCalls) calls(m *protocol.AssistantMessage) []*ToolCall {
	var out []*ToolCall
	for _, u := range protocol.ToolUses(m) {
		if c.by[u.ID] != nil {
			continue // told again
		}
		call := &ToolCall{ID: u.ID, Name: u.Name, Raw: u.Input, ParentToolUseID: m.ParentToolUseID, State: CallRunning, Replayed: m.Historical}
		if c.by == nil {
			c.by = map[string]*ToolCall{}
		}
		c.by[u.ID] = call
		c.all = append(c.all, call)
		out = append(out, call)
	}
	return out
}

func (c *ToolCalls) results(m *protocol.UserMessage) []*ToolCall {
	var out []*ToolCall
	results := protocol.ToolResults(m)
	for _, r := range results {
		call := c.by[r.ToolUseID]
		if call == nil {
			continue
		}
		call.Result = r
		if len(results) == 1 { // else it is not said whose it is
			call.RawOutput, call.MCP = m.ToolUseResult, m.MCPMeta
		}
		denied := call.State == CallDenied
		for i := range m.ToolResultMeta {
			if meta := &m.ToolResultMeta[i]; meta.ID == r.ToolUseID {
				call.Decision = meta
				denied = denied || refused(meta.NonExecutionKind)
			}
		}
		switch {
		case denied:
			call.State = CallDenied
		case r.IsError:
			call.State = CallFailed
		default:
			call.State = CallDone
		}
		out = append(out, call)
	}
	return out
}

// refused reports whether a call was kept from running, rather than broken off.
func refused(kind string) bool { return kind != "" && kind != "interrupted" && kind != "cancelled" }

func (c *ToolCalls) progress(m *protocol.ToolProgressMessage) []*ToolCall {
	id := m.ToolUseID
	if m.Heartbeat && c.by[id] == nil {
		id = m.ParentToolUseID // a heartbeat has its own id
	}
	return c.each([]string{id}, func(call *ToolCall) {
		call.Elapsed = time.Duration(m.ElapsedTimeSeconds * float64(time.Second))
	})
}

// lose gives running calls up: those of a turn or of a subagent that has ended.
func (c *ToolCalls) lose(which func(*ToolCall) bool) []*ToolCall {
	var out []*ToolCall
	for _, call := range c.Running() {
		if which(call) {
			call.State = CallLost
			out = append(out, call)
		}
	}
	return out
}
