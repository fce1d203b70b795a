package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// rules is the model. It has no state: an answer follows from the request alone.
type rules struct{ codec model.Codec }

func newRules() *rules {
	return &rules{model.NewAnthropic(model.AnthropicConfig{}).Codec()} // no request is made
}

// Codec implements [model.Model].
func (m *rules) Codec() model.Codec { return m.codec }

// Stream implements [model.Model].
func (m *rules) Stream(ctx context.Context, r *model.Request, emit func(*model.Event) bool) error {
	p, err := readTurn(r)
	if err != nil {
		return &model.Error{Class: model.Invalid, RetryAfter: -1, Message: "the demonstration cannot read the conversation", Err: err}
	}
	p.play()
	w := &writer{ctx: ctx, raw: r.Raw, emit: emit}
	w.answer(fmt.Sprintf("msg_demo_%d", len(r.Messages)), p)
	return w.err
}

// message is a message of the conversation, as the codec has encoded it.
type message struct {
	Role    model.Role `json:"role"`
	Content []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		ID      string          `json:"id"`          // of a call
		Call    string          `json:"tool_use_id"` // of a result
		Content json.RawMessage `json:"content"`     // of a result
		Failed  bool            `json:"is_error"`
	} `json:"content"`
}

// result is what a call of a tool gave.
type result struct {
	text   string
	failed bool
}

// readTurn reads what the request says of the turn that runs: its prompt, and the calls of
// it that have a result. A turn begins with a text of the user's.
func readTurn(r *model.Request) (*turn, error) {
	t := &turn{id: len(r.Messages), dir: workingDirectory(r.System)}
	if err := protocol.Unmarshal(orList(r.Tools), &t.tools); err != nil {
		return nil, err
	}
	answered := false
	var calls []string
	results := map[string]result{}
	for _, encoded := range r.Messages {
		var m message
		if err := protocol.Unmarshal(encoded, &m); err != nil {
			return nil, err
		}
		fresh := false // this message has a prompt already
		for i := range m.Content {
			b := &m.Content[i]
			switch {
			case b.Type == "tool_use":
				calls = append(calls, b.ID)
			case b.Type == "tool_result":
				results[b.Call] = result{plain(b.Content), b.Failed}
			case b.Type != "text" || m.Role != model.User || strings.HasPrefix(b.Text, "<system-reminder>"):
			case strings.HasPrefix(b.Text, "[Request interrupted"):
				t.interrupted = true
			case fresh:
				t.prompt += "\n" + b.Text
			default:
				t.prompt, t.first, fresh, calls = b.Text, !answered, true, nil
			}
		}
		if m.Role == model.Assistant {
			answered, t.interrupted = true, false
		}
	}
	for _, id := range calls {
		t.done = append(t.done, results[id])
	}
	return t, nil
}

func orList(tools []byte) []byte {
	if len(tools) == 0 {
		return []byte("[]")
	}
	return tools
}

// plain is the text of a result.
func plain(content json.RawMessage) string {
	var text string
	if protocol.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	_ = protocol.Unmarshal(content, &blocks) // an image has no text
	for _, b := range blocks {
		text += b.Text
	}
	return text
}

// workingDirectory is what the system prompt of package embedded says of it; "": nothing.
func workingDirectory(system []string) string {
	for _, part := range system {
		for line := range strings.Lines(part) {
			if dir, ok := strings.CutPrefix(line, "Working directory: "); ok {
				return strings.TrimSpace(dir)
			}
		}
	}
	return ""
}

// writer writes an answer as events.
type writer struct {
	ctx  context.Context
	raw  bool
	emit func(*model.Event) bool
	err  error
}

type object = map[string]any

// send sends an event. raw is its form in the Messages API.
func (w *writer) send(e *model.Event, raw object) {
	switch {
	case w.err != nil:
		return
	case w.ctx.Err() != nil:
		w.err = context.Cause(w.ctx)
		return
	case w.raw:
		e.Raw, w.err = json.Marshal(raw)
	case e.Kind == model.Delta:
		return
	}
	if w.err == nil && !w.emit(e) {
		w.err = model.ErrStopped
	}
}

func (w *writer) answer(id string, t *turn) {
	usage := object{"input_tokens": 0, "output_tokens": 0}
	w.send(&model.Event{Kind: model.Start, ID: id, Model: ModelName}, object{"type": "message_start", "message": object{
		"id": id, "type": "message", "role": "assistant", "model": ModelName, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	index := 0
	if text := strings.TrimSpace(t.said.String()); text != "" {
		var deltas []object
		for _, word := range strings.SplitAfter(text, " ") {
			deltas = append(deltas, object{"type": "text_delta", "text": word})
		}
		w.block(0, &model.Block{Kind: model.Text, Text: text}, object{"type": "text", "text": ""}, deltas)
		index++
	}
	reason := "end_turn"
	for i, c := range t.next {
		reason = "tool_use"
		input, err := json.Marshal(c.input)
		if err != nil && w.err == nil {
			w.err = err
		}
		call := fmt.Sprintf("toolu_demo_%d_%d", t.id, i)
		w.block(index, &model.Block{Kind: model.ToolUse, ID: call, Name: c.tool, Input: input},
			object{"type": "tool_use", "id": call, "name": c.tool, "input": object{}},
			[]object{{"type": "input_json_delta", "partial_json": string(input)}})
		index++
	}
	w.send(&model.Event{Kind: model.Delta}, object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	w.send(&model.Event{Kind: model.Stop, StopReason: reason}, object{"type": "message_stop"})
}

func (w *writer) block(index int, b *model.Block, start object, deltas []object) {
	w.send(&model.Event{Kind: model.Delta, Index: index}, object{"type": "content_block_start", "index": index, "content_block": start})
	for _, d := range deltas {
		w.send(&model.Event{Kind: model.Delta, Index: index}, object{"type": "content_block_delta", "index": index, "delta": d})
	}
	w.send(&model.Event{Kind: model.Done, Index: index, Block: b}, object{"type": "content_block_stop", "index": index})
}
