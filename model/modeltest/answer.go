package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/agent-troupe/troupe/model"
)

// Answer is what the model says to a request.
type Answer struct {
	// Blocks are texts, thinking and calls. A call without an ID gets one.
	Blocks []model.Block
	// Stop is why the answer ends, in the words of the Messages API; "": tool_use if there is
	// a call, else end_turn.
	Stop  string
	Usage model.Usage   // without any: 10 tokens in and 5 out. Reasoning and Raw are not sent
	Pace  time.Duration // before each event of the stream
}

// Text is a block of text.
func Text(s string) model.Block { return model.Block{Kind: model.Text, Text: s} }

// Thinking is a block of thinking.
func Thinking(s string) model.Block {
	return model.Block{Kind: model.Thinking, Text: s, Signature: "signed"}
}

// Call is a call of a tool. input is what encoding/json takes; a json.RawMessage is sent as
// it is, also if it is malformed. Call panics if input cannot be encoded.
func Call(name string, input any) model.Block {
	raw, ok := input.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(input); err != nil {
			panic(fmt.Sprintf("modeltest: the input of %s: %v", name, err))
		}
	}
	return model.Block{Kind: model.ToolUse, Name: name, Input: raw}
}

// Say is an answer of these blocks.
func Say(blocks ...model.Block) *Answer { return &Answer{Blocks: blocks} }

// render makes the events of the answer, with those faults that are the model's own.
func (a *Answer) render(r *Request, f *Fault) [][]byte {
	said := a.said(r, f)
	if r.API == "openai" {
		return said.chat(r)
	}
	return said.messages(r)
}

// said is the answer with all that the script leaves out, and those faults that are the model's own.
func (a *Answer) said(r *Request, f *Fault) *Answer {
	said := *a
	said.Blocks = nil
	first := ""
	for i, b := range a.Blocks {
		if b.Kind == model.ToolUse {
			b.ID = cmp.Or(b.ID, fmt.Sprintf("toolu_%d_%d", r.N, i))
			if first == "" {
				first = cmp.Or(f.firstID(r), b.ID)
			}
			if f.SameID || f.OldID && f.firstID(r) != "" {
				b.ID = first
			}
		}
		said.Blocks = append(said.Blocks, b)
	}
	if f.Empty {
		said.Blocks, first = nil, ""
	}
	if said.Stop == "" {
		said.Stop = "end_turn"
		if first != "" {
			said.Stop = "tool_use"
		}
	}
	said.Stop = cmp.Or(f.Stop, said.Stop)
	if u := said.Usage; u.Input+u.Output+u.CacheRead+u.CacheWrite == 0 {
		said.Usage = model.Usage{Input: 10, Output: 5}
	}
	return &said
}

type object map[string]any

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("modeltest: an event cannot be encoded: %v", err)) // a malformed raw text of the script's
	}
	return b
}

// pieces cuts a text in up to three.
func pieces(s string) []string {
	runes := []rune(s)
	if len(runes) < 3 {
		return []string{s}
	}
	n := len(runes) / 3
	return []string{string(runes[:n]), string(runes[n : 2*n]), string(runes[2*n:])}
}

// messages are the events in the form of the Messages API.
func (a *Answer) messages(r *Request) (all [][]byte) {
	event := func(kind string, o object) {
		o["type"] = kind
		all = append(all, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encoded(o)))
	}
	u := a.Usage
	event("message_start", object{"message": object{
		"id": fmt.Sprintf("msg_%d", r.N), "type": "message", "role": "assistant", "model": r.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": u.Input, "output_tokens": min(1, u.Output), "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite},
	}})
	event("ping", object{})
	for i, b := range a.Blocks {
		start, member, kind := object{"type": b.Kind}, "text", "text_delta"
		text := b.Text
		switch b.Kind {
		case model.Thinking:
			start["thinking"], start["signature"] = "", ""
			member, kind = "thinking", "thinking_delta"
		case model.ToolUse:
			start["id"], start["name"], start["input"] = b.ID, b.Name, object{}
			member, kind, text = "partial_json", "input_json_delta", string(b.Input)
		case model.Text, model.ToolResult, model.Image, model.Document, model.Opaque:
			start["text"] = ""
		}
		event("content_block_start", object{"index": i, "content_block": start})
		for _, p := range pieces(text) {
			event("content_block_delta", object{"index": i, "delta": object{"type": kind, member: p}})
		}
		if b.Kind == model.Thinking {
			event("content_block_delta", object{"index": i, "delta": object{"type": "signature_delta", "signature": b.Signature}})
		}
		event("content_block_stop", object{"index": i})
	}
	event("message_delta", object{"delta": object{"stop_reason": a.Stop, "stop_sequence": nil}, "usage": object{"output_tokens": u.Output}})
	event("message_stop", object{})
	return all
}

// chat are the events in the form of chat completions.
func (a *Answer) chat(r *Request) (all [][]byte) {
	chunk := func(choices []any, more object) {
		o := object{"id": fmt.Sprintf("chatcmpl-%d", r.N), "object": "chat.completion.chunk", "model": r.Model, "choices": choices}
		maps.Copy(o, more)
		all = append(all, fmt.Appendf(nil, "data: %s\n\n", encoded(o)))
	}
	delta := func(o object) { chunk([]any{object{"index": 0, "delta": o, "finish_reason": nil}}, nil) }
	delta(object{"role": "assistant", "content": ""})
	calls := 0
	for _, b := range a.Blocks {
		switch b.Kind {
		case model.ToolUse:
			delta(object{"tool_calls": []any{object{"index": calls, "id": b.ID, "type": "function", "function": object{"name": b.Name, "arguments": ""}}}})
			for _, p := range pieces(string(b.Input)) {
				delta(object{"tool_calls": []any{object{"index": calls, "function": object{"arguments": p}}}})
			}
			calls++
		case model.Thinking:
			for _, p := range pieces(b.Text) {
				delta(object{"reasoning_content": p})
			}
		case model.Text, model.ToolResult, model.Image, model.Document, model.Opaque:
			for _, p := range pieces(b.Text) {
				delta(object{"content": p})
			}
		}
	}
	finish := map[string]string{"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}[a.Stop]
	chunk([]any{object{"index": 0, "delta": object{}, "finish_reason": cmp.Or(finish, a.Stop)}}, nil)
	u := a.Usage
	chunk([]any{}, object{"usage": object{
		"prompt_tokens": u.Input + u.CacheRead, "completion_tokens": u.Output, "total_tokens": u.Input + u.CacheRead + u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead},
	}})
	return append(all, []byte("data: [DONE]\n\n"))
}
