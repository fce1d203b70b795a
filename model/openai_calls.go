package model

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
)

// call is a call of a tool as it grows.
type call struct {
	partial
	at int // its index on the wire; below 0: none
}

func (d *chatDecoder) toolCalls(value []byte) error {
	list := jsonscan.Array(value, 0)
	for val := range list.Elements() {
		if err := d.toolCall(list.Bytes(val)); err != nil {
			return err
		}
	}
	return nil
}

// toolCall adds to a call, or begins one.
func (d *chatDecoder) toolCall(data []byte) error {
	var in struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if err := protocol.Unmarshal(data, &in); err != nil {
		return broken("a call of a tool has another form: %v", err)
	}
	at := -1
	if in.Index != nil {
		at = *in.Index
	}
	arguments := []byte(in.Function.Arguments)
	switch {
	case string(arguments) == "null": // they follow, or it has no arguments
		arguments = nil
	case len(arguments) > 0 && arguments[0] == '"':
		arguments = jsonscan.Unescaped(arguments)
	}
	c := d.find(at, in.ID, in.Function.Name, len(arguments) > 0)
	if c == nil {
		if err := d.ends(); err != nil {
			return err
		}
		c = &call{at: at, partial: partial{block: Block{Kind: ToolUse, ID: in.ID, Name: in.Function.Name, Origin: d.origin}}}
		d.calls = append(d.calls, c)
	}
	c.block.Name = cmp.Or(c.block.Name, in.Function.Name)
	c.block.ID = cmp.Or(c.block.ID, in.ID)
	c.text = append(c.text, arguments...)
	c.more.keep(data, "index", "id", "type", "function")
	return nil
}

// find finds the call that a delta adds to; nil: a new one. Servers leave the index out, or
// give 0 for all calls; they repeat the id, give it once, never, or another one with each delta.
// So a call that is open ends only where a function is named. more: the delta has arguments.
func (d *chatDecoder) find(at int, id, name string, more bool) *call {
	var same *call
	for _, c := range d.calls {
		switch {
		case id != "" && c.block.ID == id && (at < 0 || c.at == at):
			return c
		case at >= 0 && c.at == at:
			same = c // the last of them, if all have the same index
		}
	}
	if at < 0 && (id == "" || name == "") && len(d.calls) > 0 {
		same = d.calls[len(d.calls)-1]
	}
	switch {
	case same == nil:
		return nil
	case name == "" || same.block.Name == "":
		return same
	case id != "" && same.block.ID != "" && same.block.ID != id:
		return nil
	case (more || name != same.block.Name) && json.Valid(same.text):
		return nil // it is whole, and another one is named; without arguments, the name may be a repeated one
	}
	return same
}

func (d *chatDecoder) wholeCall(i int, c *call) error {
	c.index = d.index
	d.index++
	if c.block.ID == "" {
		c.block.ID = fmt.Sprintf("call_%s_%d", cmp.Or(d.id, "0"), i)
	}
	c.block.Input, c.block.BadInput = object(c.text)
	c.block.Raw = c.more.object()
	if err := d.pass(func() any {
		return rawBlockStart{"content_block_start", c.index, rawBlock{Type: "tool_use", ID: c.block.ID, Name: c.block.Name, Input: json.RawMessage("{}")}}
	}); err != nil {
		return err
	}
	if err := d.pass(func() any {
		text := string(c.text)
		return rawBlockDelta{"content_block_delta", c.index, rawDelta{Type: "input_json_delta", Partial: &text}}
	}); err != nil {
		return err
	}
	return d.done(&c.partial)
}

// reasoningDetails is OpenRouter's member for thinking that can be given back.
const reasoningDetails = "reasoning_details"

// joinDetails joins the parts of one thought, which come word by word.
func joinDetails(list json.RawMessage) json.RawMessage {
	var out []fields
	of := func(f fields, name string) string {
		for _, m := range f {
			if m.name == name {
				return string(m.value)
			}
		}
		return ""
	}
	c := jsonscan.Array(list, 0)
	for val := range c.Elements() {
		var next fields
		next.keep(c.Bytes(val))
		if len(out) == 0 || of(out[len(out)-1], "type") != of(next, "type") || of(out[len(out)-1], "index") != of(next, "index") {
			out = append(out, next)
			continue
		}
		last := &out[len(out)-1]
		for _, m := range next {
			switch before := of(*last, m.name); {
			case (m.name == "text" || m.name == "summary") && before != "":
				last.set(m.name, appendString(nil, jsonscan.Text([]byte(before))+jsonscan.Text(m.value)))
			case string(m.value) != "null":
				last.set(m.name, m.value)
			}
		}
	}
	if c.Err {
		return list
	}
	b := []byte{'['}
	for i, f := range out {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, orElse(f.object(), "{}")...)
	}
	return append(b, ']')
}
