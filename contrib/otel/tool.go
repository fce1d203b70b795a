package troupeotel

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-troupe/troupe/protocol"
)

// tool is a call of a tool without a result.
type tool struct {
	id, name, parent string
	turn             *turn // nil outside of turns
	ctx              context.Context
	span             trace.Span
	began            time.Time
	order            int
}

const (
	maxTools  = 1024 // open at a time; further ones have no span
	maxAgents = 256  // known after their end
)

// message looks for calls of tools, their results, and the results of turns.
func (f *follower) message(at time.Time, m protocol.Frame) {
	switch m.Type {
	case "result":
		r, ok := protocol.DecodeMessage(m).(*protocol.ResultMessage)
		f.mu.Lock()
		defer f.mu.Unlock()
		if ok && !f.ended {
			f.used(r)
		}
	case "system":
		if m.Subtype == "init" {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !f.ended {
				f.learn(m.SessionID())
			}
		}
	case "assistant", "user":
		if bytes.Contains(m.Raw, []byte(`"tool_use`)) || bytes.Contains(m.Raw, []byte(`"tool_result"`)) {
			f.blocks(at, m)
		}
	}
}

// blocks looks at the parts of a message.
func (f *follower) blocks(at time.Time, m protocol.Frame) {
	var said struct {
		Message struct {
			Content []struct {
				Type      string          `json:"type"`
				ID        string          `json:"id"`
				Name      string          `json:"name"`
				Input     json.RawMessage `json:"input"`
				ToolUseID string          `json:"tool_use_id"`
				IsError   bool            `json:"is_error"`
				Content   json.RawMessage `json:"content"`
			} `json:"content"`
		} `json:"message"`
	}
	if protocol.Unmarshal(m.Raw, &said) != nil {
		return // a content that is a text, among others
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	for _, b := range said.Message.Content {
		switch b.Type {
		case "tool_use":
			f.startTool(at, b.ID, b.Name, m.ParentToolUseID(), b.Input)
		case "tool_result":
			t := f.tools[b.ToolUseID]
			if t == nil {
				continue
			}
			if f.cfg.Content {
				t.span.SetAttributes(semconv.GenAIToolCallResultKey.String(cut(string(b.Content))))
			}
			failed := ""
			if b.IsError {
				failed = "tool_error"
			}
			f.endTool(at, t, failed, string(b.Content))
		}
	}
}

func (f *follower) startTool(at time.Time, callID, name, parent string, input json.RawMessage) {
	if f.tools[callID] != nil || len(f.tools) >= maxTools {
		return
	}
	place, began := f.placeOf(parent)
	at = later(at, began)
	t := &tool{id: callID, name: label(name), parent: parent, turn: f.currentTurn(), began: at}
	kind := "extension" // the agent runs it
	for _, server := range f.servers {
		if strings.HasPrefix(name, server) {
			kind = "function" // this program does
		}
	}
	attrs := []attribute.KeyValue{
		semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(t.name), semconv.GenAIToolCallID(id(callID)), semconv.GenAIToolType(kind),
	}
	if f.cfg.Content {
		attrs = append(attrs, semconv.GenAIToolCallArgumentsKey.String(cut(string(input))))
	}
	t.ctx, t.span = f.start(place, at, "execute_tool "+t.name, trace.SpanKindInternal, attrs...)
	t.order = f.order
	if f.tools == nil {
		f.tools = make(map[string]*tool)
	}
	f.tools[callID] = t
}

// placeOf has the span of the tool call with that id, else of the turn that runs, else of
// the session, and says when it began.
func (f *follower) placeOf(callID string) (context.Context, time.Time) {
	if t := cmp.Or(f.tools[callID], f.agents[callID]); t != nil {
		return t.ctx, t.began
	}
	if t := f.currentTurn(); t != nil {
		return t.ctx, t.began
	}
	return f.root, f.opened
}

// later is the later time: messages of an actor that crashed are reported after others
// of the same time.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// endTool ends the span of a call. failed is the type of its error, "" for a success.
// Without a result, the calls of its subagent have no result either.
func (f *follower) endTool(at time.Time, t *tool, failed, text string) {
	if f.tools[t.id] != t {
		return
	}
	delete(f.tools, t.id)
	at = later(at, t.began)
	if failed != "" {
		f.failed(t.span, failed, text)
	}
	t.span.End(trace.WithTimestamp(at))
	f.metrics.operation(t.ctx, at.Sub(t.began), failed, append(slices.Clone(f.few),
		semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(f.metrics.tools.value(t.name)))...)
	if t.name == "Agent" || t.name == "Task" || failed == "agent_exit" {
		f.keepAgent(t)
	}
	if failed == "" || failed == "tool_error" {
		return
	}
	for _, below := range f.openTools() {
		if below.parent == t.id {
			f.endTool(at, below, failed, text)
		}
	}
}

// keepAgent keeps the span of a subagent that may run in the background.
func (f *follower) keepAgent(t *tool) {
	if f.agents == nil {
		f.agents = make(map[string]*tool)
	}
	if f.agents[t.id] == nil {
		f.oldAgents = append(f.oldAgents, t.id)
	}
	f.agents[t.id] = t
	if len(f.oldAgents) > maxAgents {
		delete(f.agents, f.oldAgents[0])
		f.oldAgents = f.oldAgents[1:]
	}
}

// openTools are the calls without a result, oldest first.
func (f *follower) openTools() []*tool {
	all := make([]*tool, 0, len(f.tools))
	for _, t := range f.tools {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *tool) int { return a.order - b.order })
	return all
}
