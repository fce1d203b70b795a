package model

import "encoding/json"

// The events of the Messages API, as they are made for another API.
type (
	rawStart struct {
		Type    string     `json:"type"`
		Message rawMessage `json:"message"`
	}
	rawMessage struct {
		ID           string   `json:"id"`
		Type         string   `json:"type"`
		Role         string   `json:"role"`
		Model        string   `json:"model"`
		Content      []any    `json:"content"`
		StopReason   *string  `json:"stop_reason"`
		StopSequence *string  `json:"stop_sequence"`
		Usage        rawUsage `json:"usage"`
	}
	rawUsage struct {
		Input      int `json:"input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		Output     int `json:"output_tokens"`
	}
	rawBlockStart struct {
		Type  string   `json:"type"`
		Index int      `json:"index"`
		Block rawBlock `json:"content_block"`
	}
	rawBlock struct {
		Type      string          `json:"type"`
		Text      *string         `json:"text,omitempty"`
		Thinking  *string         `json:"thinking,omitempty"`
		Signature *string         `json:"signature,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
	}
	rawBlockDelta struct {
		Type  string   `json:"type"`
		Index int      `json:"index"`
		Delta rawDelta `json:"delta"`
	}
	rawDelta struct {
		Type     string  `json:"type"`
		Text     *string `json:"text,omitempty"`
		Thinking *string `json:"thinking,omitempty"`
		Partial  *string `json:"partial_json,omitempty"`
	}
	rawBlockStop struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	rawMessageDelta struct {
		Type  string   `json:"type"`
		Delta rawStop  `json:"delta"`
		Usage rawUsage `json:"usage"`
	}
	rawStop struct {
		Reason   string  `json:"stop_reason"`
		Sequence *string `json:"stop_sequence"`
	}
	rawMessageStop struct {
		Type string `json:"type"`
	}
)
