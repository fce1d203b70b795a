package acpclient

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/acp"
)

// tool is a call of a tool that has no result.
type tool struct {
	id, parent  string
	name, title string
	kind        acp.ToolKind
	input       json.RawMessage // as the agent reports it, or nil
	locations   []acp.ToolCallLocation
	content     []acp.ToolCallContent
	output      json.RawMessage
	written     bool // the host has the call
}

// tool handles the news of a call. Its call is written once the input is known, or nothing more
// will be; its result once it has ended. raw is the update.
func (c *conn) tool(u *acp.ToolCallUpdate, raw json.RawMessage) {
	id := string(u.ToolCallID)
	if id == "" || c.shown.closed[id] || c.shown.earlier[id] {
		c.unknown(raw) // it has a result already
		return
	}
	t := c.learn(u)
	switch u.Status {
	case acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed:
		c.closeTool(t, u.Status == acp.ToolCallStatusFailed)
	case acp.ToolCallStatusInProgress:
		c.called(t)
	default:
		if isFull(t.input) {
			c.called(t)
		}
	}
}

// learn adds what an update says to its call.
func (c *conn) learn(u *acp.ToolCallUpdate) *tool {
	at := slices.IndexFunc(c.shown.tools, func(t *tool) bool { return t.id == string(u.ToolCallID) })
	if at < 0 {
		at = len(c.shown.tools)
		c.shown.tools = append(c.shown.tools, &tool{id: string(u.ToolCallID)})
	}
	t := c.shown.tools[at]
	vendor, _ := u.Meta["claudeCode"].(map[string]any)
	if name, ok := vendor["toolName"].(string); ok && t.name == "" {
		t.name = name
	}
	if parent, ok := vendor["parentToolUseId"].(string); ok {
		t.parent = parent
	}
	if u.Name != "" {
		t.name = u.Name
	}
	if u.Title != "" {
		t.title = u.Title
	}
	if u.Kind != "" {
		t.kind = u.Kind
	}
	if len(u.RawInput) > 0 && string(u.RawInput) != "null" {
		t.input = u.RawInput
	}
	if len(u.RawOutput) > 0 && string(u.RawOutput) != "null" {
		t.output = u.RawOutput
	}
	if u.Locations != nil {
		t.locations = u.Locations
	}
	if u.Content != nil {
		t.content = u.Content
	}
	return t
}

// called writes the call.
func (c *conn) called(t *tool) {
	if t.written {
		return
	}
	t.written = true
	c.flush()
	c.assistant("", t.parent, struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}{"tool_use", t.id, t.toolName(), t.toolInput()})
}

// toolName is the tool's name: the agent's if it gives one, else the kind of the call.
func (t *tool) toolName() string {
	switch {
	case t.name != "":
		return t.name
	case t.kind != "":
		return string(t.kind)
	}
	return string(acp.ToolKindOther)
}

// toolInput is the input, an object. Of a call whose input the agent does not give it has what
// the agent does say.
func (t *tool) toolInput() json.RawMessage {
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(t.input, &object); {
	case err == nil && len(object) > 0:
		return t.input
	case err != nil && t.input != nil:
		return mustJSON(map[string]json.RawMessage{"input": t.input})
	}
	return mustJSON(struct {
		Title     string                 `json:"title,omitempty"`
		Kind      acp.ToolKind           `json:"kind,omitempty"`
		Locations []acp.ToolCallLocation `json:"locations,omitempty"`
	}{t.title, t.kind, t.locations})
}

// isFull reports whether an input has anything.
func isFull(input json.RawMessage) bool {
	var object map[string]json.RawMessage
	err := json.Unmarshal(input, &object)
	return len(input) > 0 && (err != nil || len(object) > 0)
}

// mustJSON encodes what was decoded, or is made of strings, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// closeTool writes the result of a call.
func (c *conn) closeTool(t *tool, failed bool) {
	c.called(t)
	c.shown.tools = slices.DeleteFunc(c.shown.tools, func(other *tool) bool { return other == t })
	if c.shown.closed == nil {
		c.shown.closed = map[string]bool{}
	}
	c.shown.closed[t.id] = true
	type toolResult struct {
		Type      string `json:"type"`
		ToolUseID string `json:"tool_use_id"`
		Content   []any  `json:"content"`
		IsError   bool   `json:"is_error,omitempty"`
	}
	type userContent struct {
		Role    string       `json:"role"`
		Content []toolResult `json:"content"`
	}
	c.write(struct {
		Type      string          `json:"type"`
		Message   userContent     `json:"message"`
		Parent    *string         `json:"parent_tool_use_id"`
		SessionID acp.SessionID   `json:"session_id"`
		UUID      string          `json:"uuid"`
		Result    json.RawMessage `json:"tool_use_result,omitempty"`
	}{
		"user", userContent{"user", []toolResult{{"tool_result", t.id, t.result(), failed}}}, orNull(t.parent), c.id, c.uuid(), t.wholeResult(),
	})
}

// result is what the model has probably read: the text of the raw output, else what is shown to a
// person.
func (t *tool) result() []any {
	var text string
	if json.Unmarshal(t.output, &text) == nil {
		return []any{textBlock{"text", text}}
	}
	all := []any{}
	for i := range t.content {
		switch part := &t.content[i]; {
		case part.Content != nil:
			all = append(all, block(&part.Content.Content))
		case part.Diff != nil:
			all = append(all, textBlock{"text", "changed " + part.Diff.Path})
		case part.Terminal != nil:
			all = append(all, textBlock{"text", fmt.Sprintf("the output is in the terminal %s", part.Terminal.TerminalID)})
		}
	}
	if len(all) == 0 && t.output != nil {
		all = append(all, textBlock{"text", string(t.output)})
	}
	return all
}

// wholeResult is the agent's whole report of the result; nil without one, or if it does not fit
// into a line next to the result itself.
func (t *tool) wholeResult() json.RawMessage {
	if t.output == nil && t.content == nil {
		return nil
	}
	whole := mustJSON(struct {
		Content   []acp.ToolCallContent `json:"content,omitempty"`
		RawOutput json.RawMessage       `json:"rawOutput,omitempty"`
	}{t.content, t.output})
	if len(whole) > maxText {
		return nil
	}
	return whole
}

// closeTools ends the calls that a turn has left open.
func (c *conn) closeTools() {
	for len(c.shown.tools) > 0 {
		t := c.shown.tools[0]
		t.content, t.output = nil, mustJSON("The turn ended without a result of this call. It may or may not have taken effect.")
		c.closeTool(t, true)
	}
	c.shown.earlier, c.shown.closed = c.shown.closed, nil
}
