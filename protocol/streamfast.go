package protocol

import (
	"strconv"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Text deltas are most of a stream's lines, so they have a fast path beside
// encoding/json. A line that is not exactly in the usual form is decoded by
// encoding/json.

// deltaScan is a content_block_delta event read by structure.
type deltaScan struct {
	index int
	kind  string        // text_delta, thinking_delta or input_json_delta
	value jsonscan.Span // the string that the delta adds, with its quotes
}

// scan reads the event at body; false unless it is a content_block_delta of
// one of the three common kinds without any further key.
func (d *deltaScan) scan(line []byte, body jsonscan.Span) bool {
	var typ, index, delta jsonscan.Span
	c := jsonscan.Object(line[:body.Hi], int(body.Lo))
	for key, val := range c.Members() {
		switch string(key.Of(line)) {
		case `"type"`:
			typ = val
		case `"index"`:
			index = val
		case `"delta"`:
			delta = val
		default:
			return false
		}
	}
	if c.Err || string(typ.Of(line)) != `"content_block_delta"` || delta.Empty() {
		return false
	}
	if !index.Empty() {
		n, err := strconv.Atoi(string(index.Of(line)))
		if err != nil {
			return false
		}
		d.index = n
	}
	return d.scanDelta(line, delta)
}

func (d *deltaScan) scanDelta(line []byte, delta jsonscan.Span) bool {
	var typ, key, value jsonscan.Span
	c := jsonscan.Object(line[:delta.Hi], int(delta.Lo))
	for k, v := range c.Members() {
		switch {
		case string(k.Of(line)) == `"type"`:
			typ = v
		case key.Empty():
			key, value = k, v
		default:
			return false
		}
	}
	if c.Err || value.Empty() || line[value.Lo] != '"' {
		return false
	}
	want := ""
	switch string(typ.Of(line)) {
	case `"text_delta"`:
		d.kind, want = "text_delta", `"text"`
	case `"thinking_delta"`:
		d.kind, want = "thinking_delta", `"thinking"`
	case `"input_json_delta"`:
		d.kind, want = "input_json_delta", `"partial_json"`
	}
	d.value = value
	return want != "" && string(key.Of(line)) == want
}

// decodeDeltaLine decodes a stream_event line of a common delta; nil if the
// line is anything else.
func decodeDeltaLine(f *Frame) Message {
	var d deltaScan
	if f.body.Empty() || !f.isUsual() || !d.scan(f.Raw, f.body) {
		return nil
	}
	// One object holds the message and what it points to.
	line := new(struct {
		m     PartialAssistantMessage
		event ContentBlockDelta
		text  DeltaText
	})
	m := &line.m
	m.setFrame(f)
	m.APIMessageID = jsonscan.Text(f.api.Of(f.Raw))
	m.Event = &line.event
	line.event.Index = d.index
	value := string(jsonscan.Unescaped(d.value.Of(f.Raw)))
	switch d.kind {
	case "text_delta":
		line.text.Text = value
		line.event.Delta = &line.text
	case "thinking_delta":
		line.event.Delta = &DeltaThinking{Thinking: value}
	default:
		line.event.Delta = &DeltaInputJSON{PartialJSON: value}
	}
	return m
}

// isUsual reports whether the line has only the keys that every delta has.
func (f *Frame) isUsual() bool {
	for _, v := range [...]jsonscan.Span{f.uuid, f.session, f.parent, f.api} {
		if !v.Empty() && f.Raw[v.Lo] != '"' && f.Raw[v.Lo] != 'n' {
			return false
		}
	}
	return !f.other
}
