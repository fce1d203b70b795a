package troupeotel

import (
	"encoding/json"
	"strings"
)

// maxContent is how many bytes of a text are sent.
const maxContent = 16 << 10

// cut shortens a text.
func cut(s string) string {
	if len(s) > maxContent {
		s = s[:maxContent] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// part and message are the conventions' form of what was said.
type part struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

func spoken(role, text, finish string) string {
	raw, _ := json.Marshal([]message{{Role: role, Parts: []part{{"text", cut(text)}}, FinishReason: finish}})
	return string(raw)
}
