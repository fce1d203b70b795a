package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
)

// messagesDecoder makes events of an answer of the Messages API.
type messagesDecoder struct {
	raw   bool
	emit  func(*Event) bool
	began bool
	open  []*partial // blocks that are not whole, few
	size  int        // bytes of all blocks
	usage usageFields
	stop  string
	extra fields
}

// partial is a block that is not whole.
type partial struct {
	index int
	block Block
	start json.RawMessage // of an opaque block, and of one with members that no field has
	text  []byte          // text, thinking, or the input's JSON
	sign  []byte
	cites []byte // citations, joined by commas
	more  fields // members of deltas of kinds that are not known
}

// grow adds n bytes to the answer.
func grow(size *int, n int) error {
	if *size += n; *size > maxAnswer {
		return broken("the answer has more than %d bytes", maxAnswer)
	}
	return nil
}

// messagesEvent is what is read of an event.
type messagesEvent struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message json.RawMessage `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   json.RawMessage `json:"delta"`
	Usage   json.RawMessage `json:"usage"`
}

type messagesDelta struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Partial   string          `json:"partial_json"`
	Signature string          `json:"signature"`
	Citation  json.RawMessage `json:"citation"`
	Stop      string          `json:"stop_reason"`
}

func (d *messagesDecoder) event(data []byte) (whole bool, err error) {
	if text, index, ok := textDelta(data); ok {
		if p := d.find(index); p != nil && p.start == nil {
			p.text = jsonscan.AppendUnescaped(p.text, text)
			if err := grow(&d.size, len(text)); err != nil {
				return false, err
			}
			return false, d.pass(data)
		}
	}
	var e messagesEvent
	if err := protocol.Unmarshal(data, &e); err != nil {
		return false, &Error{Class: Broken, Status: 200, RetryAfter: -1, Message: "an event of the stream is no JSON", Err: err}
	}
	if !d.began && e.Type != "message_start" && e.Type != "error" && e.Type != "ping" {
		return false, broken("%s came before message_start", orUnnamed(e.Type))
	}
	switch e.Type {
	case "error":
		return false, inStream(data)
	case "message_start":
		return false, d.start(e.Message, data)
	case "content_block_start":
		return false, d.openBlock(e.Index, e.Block, data)
	case "content_block_delta":
		return false, d.delta(e.Index, e.Delta, data)
	case "content_block_stop":
		return false, d.closeBlock(e.Index, data)
	case "message_delta":
		return false, d.messageDelta(&e, data)
	case "message_stop":
		if len(d.open) > 0 {
			return false, broken("message_stop came before the end of block %d", d.open[0].index)
		}
		return true, d.finish(data)
	}
	return false, d.pass(data) // ping, and kinds that are new
}

func orUnnamed(kind string) string {
	if kind == "" {
		return "an event without a type"
	}
	return kind
}

// end: the answer is whole without message_stop, too, if it has said why it ends.
func (d *messagesDecoder) end() (bool, error) {
	if d.stop == "" || len(d.open) > 0 {
		return false, nil
	}
	return true, d.finish(nil)
}

func (d *messagesDecoder) cut() {
	if len(d.open) > 0 {
		d.emit(cutEvent(d.open[len(d.open)-1]))
	}
}

// cutEvent says how far a block has come.
func cutEvent(p *partial) *Event {
	p.finish()
	return &Event{Kind: Cut, Index: p.index, Block: &p.block}
}

// answer plays a whole message as the events that a stream would have had.
func (d *messagesDecoder) answer(data []byte) error {
	var m struct {
		Type    string            `json:"type"`
		Content []json.RawMessage `json:"content"`
		Stop    string            `json:"stop_reason"`
	}
	if err := protocol.Unmarshal(data, &m); err != nil {
		return &Error{Class: Broken, Status: 200, RetryAfter: -1, Message: "the answer is no JSON", Err: err}
	}
	if m.Type == "error" {
		return inStream(data)
	}
	if m.Type != "message" {
		return broken("the answer is no message: its type is %q", m.Type)
	}
	raw := d.raw
	d.raw = false
	if err := d.start(data, nil); err != nil {
		return err
	}
	d.raw = raw
	for i, b := range m.Content {
		p, err := d.wholeBlock(i, b)
		if err != nil {
			return err
		}
		if err := d.done(p, nil); err != nil {
			return err
		}
	}
	d.stop = m.Stop
	return d.finish(nil)
}

func (d *messagesDecoder) find(index int) *partial {
	for _, p := range d.open {
		if p.index == index {
			return p
		}
	}
	return nil
}

func (d *messagesDecoder) send(e *Event, data []byte) error {
	if d.raw && data != nil {
		e.Raw = bytes.Clone(data)
	}
	if !d.emit(e) {
		return ErrStopped
	}
	return nil
}

// pass hands on what only a reader of raw events wants.
func (d *messagesDecoder) pass(data []byte) error {
	if !d.raw {
		return nil
	}
	return d.send(&Event{Kind: Delta}, data)
}

func (d *messagesDecoder) start(message, data []byte) error {
	if d.began {
		return broken("message_start came twice")
	}
	var m struct {
		ID    string          `json:"id"`
		Model string          `json:"model"`
		Usage json.RawMessage `json:"usage"`
	}
	if err := protocol.Unmarshal(message, &m); err != nil {
		return broken("message_start has no message: %v", err)
	}
	d.began = true
	d.usage.merge(m.Usage)
	d.extra.keep(message, "id", "type", "role", "model", "content", "stop_reason", "usage", "stop_sequence")
	return d.send(&Event{Kind: Start, ID: m.ID, Model: m.Model, Usage: d.usage.usage()}, data)
}

func (d *messagesDecoder) openBlock(index int, block, data []byte) error {
	if d.find(index) != nil {
		return broken("block %d began twice", index)
	}
	p, err := newPartial(index, block)
	if err != nil {
		return err
	}
	d.open = append(d.open, p)
	if err := grow(&d.size, len(block)); err != nil {
		return err
	}
	return d.pass(data)
}

// newPartial is a block that begins.
func newPartial(index int, block []byte) (*partial, error) {
	var in struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Input     json.RawMessage `json:"input"`
	}
	if err := protocol.Unmarshal(block, &in); err != nil || in.Type == "" {
		return nil, broken("block %d has no type", index)
	}
	p := &partial{index: index, block: Block{Kind: BlockKind(in.Type), Origin: anthropic}}
	switch p.block.Kind {
	case Text:
		p.text = append(p.text, in.Text...)
		p.keepMore(block, "type", "text")
	case Thinking:
		p.text, p.sign = append(p.text, in.Thinking...), append(p.sign, in.Signature...)
		p.keepMore(block, "type", "thinking", "signature")
	case ToolUse:
		p.block.ID, p.block.Name = in.ID, in.Name
		if len(in.Input) > 0 && string(in.Input) != "{}" && string(in.Input) != "null" {
			p.text = append(p.text, in.Input...)
		}
		p.keepMore(block, "type", "id", "name", "input")
	case ToolResult, Image, Opaque:
		fallthrough
	default: // encrypted thinking, tools of the server, what is new
		p.block.Kind, p.start = Opaque, bytes.Clone(block)
	}
	return p, nil
}

// keepMore keeps the block as it is if it has more members than these.
func (p *partial) keepMore(block []byte, known ...string) {
	var f fields
	f.keep(block, known...)
	if len(f) > 0 {
		p.start = bytes.Clone(block)
	}
}

func (d *messagesDecoder) delta(index int, delta, data []byte) error {
	p := d.find(index)
	if p == nil {
		return broken("a delta came for block %d, which is not open", index)
	}
	var in messagesDelta
	if err := protocol.Unmarshal(delta, &in); err != nil {
		return broken("the delta of block %d is no object: %v", index, err)
	}
	switch in.Type {
	case "text_delta":
		p.text = append(p.text, in.Text...)
	case "thinking_delta":
		p.text = append(p.text, in.Thinking...)
	case "input_json_delta":
		p.text = append(p.text, in.Partial...)
	case "signature_delta":
		p.sign = append(p.sign, in.Signature...)
	case "citations_delta":
		if len(p.cites) > 0 {
			p.cites = append(p.cites, ',')
		}
		p.cites = append(p.cites, in.Citation...)
	default:
		p.more.keep(delta, "type")
	}
	if err := grow(&d.size, len(delta)); err != nil {
		return err
	}
	return d.pass(data)
}

func (d *messagesDecoder) closeBlock(index int, data []byte) error {
	p := d.find(index)
	if p == nil {
		return broken("block %d ended, and is not open", index)
	}
	d.open = slices.DeleteFunc(d.open, func(o *partial) bool { return o == p })
	p.finish()
	return d.done(p, data)
}

func (d *messagesDecoder) done(p *partial, data []byte) error {
	return d.send(&Event{Kind: Done, Index: p.index, Block: &p.block}, data)
}

// wholeBlock is a block of an answer that came in one piece.
func (d *messagesDecoder) wholeBlock(index int, block []byte) (*partial, error) {
	p, err := newPartial(index, block)
	if err != nil {
		return nil, err
	}
	whole := p.start // it has more than its fields, and is complete
	p.start = nil
	p.finish()
	if whole != nil {
		p.block.Raw = whole
	}
	return p, nil
}

// finish makes the block of what has come.
func (p *partial) finish() {
	switch p.block.Kind {
	case ToolUse:
		p.block.Input, p.block.BadInput = object(p.text)
	case Text:
		p.block.Text = string(p.text)
	case Thinking:
		p.block.Text, p.block.Signature = string(p.text), string(p.sign)
	case Opaque, ToolResult, Image:
	}
	p.block.Raw = p.raw()
}

// raw is the whole block if its fields do not say all of it.
func (p *partial) raw() json.RawMessage {
	if p.start == nil && p.cites == nil && len(p.more) == 0 {
		return nil
	}
	var all fields
	if p.start != nil {
		all.keep(p.start)
	} else {
		all.set("type", []byte(`"`+string(p.block.Kind)+`"`))
	}
	switch p.block.Kind {
	case Text:
		all.set("text", appendString(nil, p.block.Text))
	case Thinking:
		all.set("thinking", appendString(nil, p.block.Text))
		all.set("signature", appendString(nil, p.block.Signature))
	case ToolUse:
		all.set("id", appendString(nil, p.block.ID))
		all.set("name", appendString(nil, p.block.Name))
		all.set("input", p.block.Input)
	case Opaque, ToolResult, Image:
		if len(p.text) > 0 { // the input of a tool of the server
			input, _ := object(p.text)
			all.set("input", input)
		}
	}
	if p.cites != nil {
		all.set("citations", slices.Concat([]byte{'['}, p.cites, []byte{']'}))
	}
	for _, f := range p.more {
		all.set(f.name, f.value)
	}
	return all.object()
}

// object is text as a JSON object; bad is the text if it is something else.
func object(text []byte) (obj json.RawMessage, bad string) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || string(text) == "null" { // models write both for a tool without parameters
		return json.RawMessage("{}"), ""
	}
	var b bytes.Buffer
	if text[0] != '{' || json.Compact(&b, text) != nil {
		return json.RawMessage("{}"), string(text)
	}
	return b.Bytes(), ""
}

func (d *messagesDecoder) messageDelta(e *messagesEvent, data []byte) error {
	var in messagesDelta
	if len(e.Delta) > 0 {
		if err := protocol.Unmarshal(e.Delta, &in); err != nil {
			return broken("message_delta has a delta that is no object: %v", err)
		}
		d.extra.keep(e.Delta, "stop_reason")
	}
	if in.Stop != "" {
		d.stop = in.Stop
	}
	d.usage.merge(e.Usage)
	d.extra.keep(data, "type", "delta", "usage")
	return d.pass(data)
}

func (d *messagesDecoder) finish(data []byte) error {
	d.extra.dropNull()
	return d.send(&Event{Kind: Stop, StopReason: d.stop, Usage: d.usage.usage(), Extra: d.extra.object()}, data)
}

// textDelta reads what nearly all events of a long answer are, in the order of members in
// which the API writes them. text is the inside of the string, with its escapes.
func textDelta(data []byte) (text []byte, index int, ok bool) {
	const head, middle, tail = `{"type":"content_block_delta","index":`, `,"delta":{"type":"text_delta","text":"`, `"}}`
	if !bytes.HasPrefix(data, []byte(head)) {
		return nil, 0, false
	}
	at := len(head)
	for at < len(data) && data[at] >= '0' && data[at] <= '9' && index < 1<<20 {
		index = index*10 + int(data[at]-'0')
		at++
	}
	if !bytes.HasPrefix(data[at:], []byte(middle)) {
		return nil, 0, false
	}
	quote := at + len(middle) - 1
	end := jsonscan.ValidString(data, quote)
	if end < 0 || string(bytes.TrimRight(data[end-1:], " ")) != tail {
		return nil, 0, false
	}
	return data[quote+1 : end-1], index, true
}
