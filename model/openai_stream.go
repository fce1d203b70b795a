package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
)

// chatDecoder makes events of an answer of chat completions. Its raw events are those that
// the Messages API would have sent.
type chatDecoder struct {
	raw    bool
	emit   func(*Event) bool
	origin string

	began   bool
	id      string
	model   string
	index   int      // of the next block
	size    int      // bytes of all blocks
	open    *partial // the text or the thinking that grows
	calls   []*call  // they are whole only at the end
	finish  string
	refused bool
	usage   Usage
	extra   fields
}

// event takes a chunk.
func (d *chatDecoder) event(data []byte) (whole bool, err error) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		if !d.began {
			return false, broken("the stream has ended without an answer")
		}
		return true, d.stop()
	}
	return false, d.chunk(data)
}

// end: some servers close the stream without [DONE]. The answer is whole if they had said
// why it ends.
func (d *chatDecoder) end() (bool, error) {
	if !d.began || d.finish == "" {
		return false, nil
	}
	return true, d.stop()
}

// cut: calls are not whole before the end.
func (d *chatDecoder) cut() {
	switch {
	case d.open != nil:
		d.open.block.Text = string(d.open.text)
		d.emit(&Event{Kind: Cut, Index: d.open.index, Block: &d.open.block})
	case len(d.calls) > 0:
		d.emit(cutEvent(&d.calls[len(d.calls)-1].partial))
	}
}

func (d *chatDecoder) answer(data []byte) error {
	if err := d.chunk(data); err != nil {
		return err
	}
	if !d.began {
		return broken("the answer has no choice")
	}
	return d.stop()
}

// chunk takes a chunk, or an answer that came in one piece.
func (d *chatDecoder) chunk(data []byte) error {
	c := jsonscan.StrictObject(data)
	var choices, usage []byte
	for key, val := range c.Members() {
		value := c.Bytes(val)
		switch name := string(jsonscan.Unescaped(c.Bytes(key))); name {
		case "id":
			d.id = cmp.Or(d.id, jsonscan.Text(value))
		case "model":
			d.model = cmp.Or(d.model, jsonscan.Text(value))
		case "choices":
			choices = value
		case "usage":
			usage = value
		case "object":
			if jsonscan.Text(value) == "error" {
				return inStream(data)
			}
		case "error":
			if string(value) != "null" {
				return inStream(data)
			}
		case "obfuscation": // padding
		default:
			d.extra.add(name, value)
		}
	}
	if !c.Whole() {
		return broken("a chunk of the stream is no JSON object")
	}
	counted := d.count(usage)
	list := jsonscan.Array(choices, 0)
	var first []byte
	for val := range list.Elements() {
		one := list.Bytes(val)
		// Only one is asked for: the first, whatever its index is, since some servers count on
		// with each chunk. Another one of that index is more of it.
		if first == nil {
			first = one
		} else if !bytes.Equal(jsonscan.Get(one, "index"), jsonscan.Get(first, "index")) {
			continue
		}
		if err := d.choice(one, counted); err != nil {
			return err
		}
	}
	return nil
}

// choice takes the choice that is the answer. counted: the chunk has said how many tokens there are.
func (d *chatDecoder) choice(data []byte, counted bool) error {
	c := jsonscan.Object(data, 0)
	var delta []byte
	for key, val := range c.Members() {
		value := c.Bytes(val)
		switch name := string(jsonscan.Unescaped(c.Bytes(key))); name {
		case "index":
		case "delta", "message":
			delta = value
		case "finish_reason":
			if reason := jsonscan.Text(value); reason != "" {
				d.finish = reason
			}
		case "usage": // Moonshot's
			if counted || !d.count(value) {
				d.extra.add(name, value)
			}
		default:
			d.extra.add(name, value)
		}
	}
	if err := d.begin(); err != nil {
		return err
	}
	return d.delta(delta)
}

func (d *chatDecoder) begin() error {
	if d.began {
		return nil
	}
	d.began = true
	return d.send(&Event{Kind: Start, ID: d.id, Model: d.model}, func() any {
		return rawStart{"message_start", rawMessage{d.id, "message", "assistant", d.model, []any{}, nil, nil, rawUsage{}}}
	})
}

func (d *chatDecoder) delta(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	if err := grow(&d.size, len(data)); err != nil {
		return err
	}
	c := jsonscan.Object(data, 0)
	var thought string
	var content, refusal, calls []byte
	var details fields
	for key, val := range c.Members() {
		value := c.Bytes(val)
		switch name := string(jsonscan.Unescaped(c.Bytes(key))); name {
		case "role":
		case "content":
			content = value
		case "refusal":
			refusal = value
		case "reasoning_content", "reasoning": // some servers send both, with the same text
			thought = cmp.Or(thought, jsonscan.Text(value))
		case reasoningDetails:
			details.add(name, value)
		case "tool_calls":
			calls = value
		default:
			d.extra.add(name, value)
		}
	}
	if err := d.grow(Thinking, thought); err != nil {
		return err
	}
	if len(details) > 0 {
		if err := d.details(details[0].value); err != nil {
			return err
		}
	}
	if err := d.content(content); err != nil {
		return err
	}
	if text := jsonscan.Text(refusal); text != "" {
		d.refused = true
		if err := d.grow(Text, text); err != nil {
			return err
		}
	}
	return d.toolCalls(calls)
}

// details keeps what the endpoint wants back with the thinking, such as signatures. They
// may come without a text.
func (d *chatDecoder) details(list []byte) error {
	if string(list) == "[]" {
		return nil
	}
	if d.open == nil || d.open.block.Kind != Thinking {
		if err := d.begins(Thinking); err != nil {
			return err
		}
	}
	d.open.more.add(reasoningDetails, list)
	return nil
}

// content takes a string, or a list of parts.
func (d *chatDecoder) content(value []byte) error {
	if len(value) == 0 || value[0] != '[' {
		return d.grow(Text, jsonscan.Text(value))
	}
	parts := jsonscan.Array(value, 0)
	for val := range parts.Elements() {
		part := parts.Bytes(val)
		switch kind := jsonscan.Text(jsonscan.Get(part, "type")); kind {
		case "text":
			if err := d.grow(Text, jsonscan.Text(jsonscan.Get(part, "text"))); err != nil {
				return err
			}
		case "thinking": // Mistral's: a list of texts
			if err := d.grow(Thinking, plainText(jsonscan.Get(part, "thinking"))); err != nil {
				return err
			}
		default:
			d.extra.add("content", append(append([]byte{'['}, part...), ']'))
		}
	}
	return nil
}

// grow adds to the block of that kind, which begins if another was open.
func (d *chatDecoder) grow(kind BlockKind, more string) error {
	if more == "" {
		return nil
	}
	if d.open == nil || d.open.block.Kind != kind {
		if err := d.begins(kind); err != nil {
			return err
		}
	}
	d.open.text = append(d.open.text, more...)
	return d.pass(func() any {
		delta := rawDelta{Type: string(kind) + "_delta"}
		if kind == Thinking {
			delta.Thinking = &more
		} else {
			delta.Text = &more
		}
		return rawBlockDelta{"content_block_delta", d.open.index, delta}
	})
}

// begins ends the open block and begins another.
func (d *chatDecoder) begins(kind BlockKind) error {
	if err := d.ends(); err != nil {
		return err
	}
	d.open = &partial{index: d.index, block: Block{Kind: kind, Origin: d.origin}}
	d.index++
	return d.pass(func() any {
		empty := ""
		block := rawBlock{Type: string(kind)}
		if kind == Thinking {
			block.Thinking, block.Signature = &empty, &empty
		} else {
			block.Text = &empty
		}
		return rawBlockStart{"content_block_start", d.open.index, block}
	})
}

// ends ends the open block.
func (d *chatDecoder) ends() error {
	p := d.open
	if p == nil {
		return nil
	}
	d.open = nil
	for i := range p.more {
		p.more[i].value = joinDetails(p.more[i].value)
	}
	p.block.Text, p.block.Raw = string(p.text), p.more.object()
	return d.done(p)
}

func (d *chatDecoder) done(p *partial) error {
	return d.send(&Event{Kind: Done, Index: p.index, Block: &p.block}, func() any {
		return rawBlockStop{"content_block_stop", p.index}
	})
}

// count reads how many tokens there are. It reports whether the usage says that.
func (d *chatDecoder) count(usage []byte) bool {
	if len(usage) == 0 || usage[0] != '{' {
		return false
	}
	var in struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Hit     int `json:"prompt_cache_hit_tokens"`     // DeepSeek
		Created int `json:"cache_creation_input_tokens"` // Vercel
	}
	if protocol.Unmarshal(usage, &in) != nil {
		return false
	}
	if in.Prompt == 0 && in.Completion == 0 && d.usage.Raw != nil {
		return true // it takes nothing back
	}
	u := Usage{
		CacheRead: max(in.Details.Cached, in.Hit), CacheWrite: max(in.Details.Written, in.Created),
		Output: in.Completion, Reasoning: in.Out.Reasoning, Raw: bytes.Clone(usage),
	}
	u.Input = max(0, in.Prompt-u.CacheRead-u.CacheWrite)
	if in.Total > 0 && in.Prompt+in.Completion+in.Out.Reasoning == in.Total {
		u.Output += in.Out.Reasoning // xAI counts it apart
	}
	d.usage = u
	return true
}

// stop makes the events of the end.
func (d *chatDecoder) stop() error {
	if err := d.ends(); err != nil {
		return err
	}
	for i, c := range d.calls {
		if err := d.wholeCall(i, c); err != nil {
			return err
		}
	}
	reason := d.reason()
	if err := d.pass(func() any {
		return rawMessageDelta{"message_delta", rawStop{reason, nil}, rawUsage{d.usage.Input, d.usage.CacheWrite, d.usage.CacheRead, d.usage.Output}}
	}); err != nil {
		return err
	}
	return d.send(&Event{Kind: Stop, StopReason: reason, Usage: d.usage, Extra: d.extra.object()}, func() any { return rawMessageStop{"message_stop"} })
}

// reason is why the answer ends, in the words of the Messages API. Some servers say stop
// though there are calls.
func (d *chatDecoder) reason() string {
	switch d.finish {
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	}
	switch {
	case len(d.calls) > 0:
		return "tool_use"
	case d.refused:
		return "refusal"
	case d.finish == "", d.finish == "stop", d.finish == "tool_calls", d.finish == "function_call", d.finish == "eos":
		return "end_turn"
	}
	return d.finish
}

// pass sends a Delta event to a reader of raw events.
func (d *chatDecoder) pass(raw func() any) error {
	if !d.raw {
		return nil
	}
	return d.send(&Event{Kind: Delta}, raw)
}

func (d *chatDecoder) send(e *Event, raw func() any) error {
	if d.raw {
		var err error
		if e.Raw, err = json.Marshal(raw()); err != nil {
			return fmt.Errorf("encode a raw event of kind %s: %w", strconv.Itoa(int(e.Kind)), err)
		}
	}
	if !d.emit(e) {
		return ErrStopped
	}
	return nil
}
