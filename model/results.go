package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// Results implements [Codec].
func (messages) Results(message []byte, put func(id string) (text string, ok bool)) []byte {
	var m struct {
		Role    Role              `json:"role"`
		Content []json.RawMessage `json:"content"`
	}
	if protocol.Unmarshal(message, &m) != nil {
		return message
	}
	changed := false
	for i, raw := range m.Content {
		var r struct {
			Type    BlockKind `json:"type"`
			ID      string    `json:"tool_use_id"`
			IsError bool      `json:"is_error"`
		}
		if protocol.Unmarshal(raw, &r) != nil || r.Type != ToolResult {
			continue
		}
		if text, ok := put(r.ID); ok {
			m.Content[i] = appendBlock(nil, &Block{Kind: ToolResult, ID: r.ID, Text: text, IsError: r.IsError})
			changed = true
		}
	}
	if !changed {
		return message
	}
	b := append([]byte(`{"role":"`), m.Role...)
	b = append(b, `","content":[`...)
	b = append(b, join(m.Content)...)
	return exact(append(b, "]}"...))
}

// Results implements [Codec]. Images of a result stay: they are in the message behind it.
func (c chat) Results(message []byte, put func(id string) (text string, ok bool)) []byte {
	var list []json.RawMessage
	if protocol.Unmarshal(slices.Concat([]byte{'['}, message, []byte{']'}), &list) != nil {
		return message
	}
	changed := false
	for i, raw := range list {
		var r struct {
			Role string `json:"role"`
			ID   string `json:"tool_call_id"`
		}
		if protocol.Unmarshal(raw, &r) != nil || r.Role != "tool" {
			continue
		}
		if text, ok := put(r.ID); ok {
			list[i] = c.result(&Block{Kind: ToolResult, ID: r.ID, Text: text}, nil)
			changed = true
		}
	}
	if !changed {
		return message
	}
	return exact(join(list))
}

func join(list []json.RawMessage) []byte {
	parts := make([][]byte, len(list))
	for i := range list {
		parts[i] = list[i]
	}
	return bytes.Join(parts, []byte{','})
}
