package protocol

import (
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Delta is what a [ContentBlockDelta] adds. The concrete types are
// *[DeltaText], *[DeltaThinking], *[DeltaSignature], *[DeltaInputJSON],
// *[DeltaCitations] and *[DeltaUnknown].
type Delta interface {
	// DeltaType is the "type" of the delta.
	DeltaType() string
	isDelta()
}

// DeltaText adds text.
type DeltaText struct {
	Text string `json:"text"` // append it; UTF-8, cut at any character
}

// DeltaThinking adds thinking.
type DeltaThinking struct {
	Thinking string `json:"thinking"` // append it; "" with EstimatedTokens
	// EstimatedTokens is set by some models instead of the thinking.
	EstimatedTokens int64 `json:"estimated_tokens,omitempty"`
}

// DeltaSignature is the signature of the thinking.
type DeltaSignature struct {
	Signature string `json:"signature"` // the whole signature
}

// DeltaInputJSON adds a piece of a tool's input. The pieces of a block joined
// are its JSON; one alone is not.
type DeltaInputJSON struct {
	PartialJSON string `json:"partial_json"` // append it; may be ""
}

// DeltaCitations adds one citation, unchanged.
type DeltaCitations struct {
	Citation json.RawMessage `json:"citation"` // an object
}

// DeltaUnknown is a delta that this package does not know, or a known one
// that does not decode.
type DeltaUnknown struct {
	Type string          // the delta's type as the agent sent it; "" if absent
	Raw  json.RawMessage // the whole delta, written back unchanged
	// Err says why a known type did not decode; nil for an unknown type.
	Err error
}

func decodeDelta(raw json.RawMessage) Delta {
	typ := jsonscan.Text(jsonscan.Get(raw, "type"))
	var d Delta
	switch typ {
	case "text_delta":
		d = new(DeltaText)
	case "thinking_delta":
		d = new(DeltaThinking)
	case "signature_delta":
		d = new(DeltaSignature)
	case "input_json_delta":
		d = new(DeltaInputJSON)
	case "citations_delta":
		d = new(DeltaCitations)
	default:
		return &DeltaUnknown{Type: typ, Raw: slices.Clone(raw)}
	}
	if err := Unmarshal(raw, d); err != nil {
		return &DeltaUnknown{Type: typ, Raw: slices.Clone(raw), Err: err}
	}
	return d
}

func (*DeltaText) isDelta()      {}
func (*DeltaThinking) isDelta()  {}
func (*DeltaSignature) isDelta() {}
func (*DeltaInputJSON) isDelta() {}
func (*DeltaCitations) isDelta() {}
func (*DeltaUnknown) isDelta()   {}

// DeltaType implements [Delta].
func (*DeltaText) DeltaType() string { return "text_delta" }

// DeltaType implements [Delta].
func (*DeltaThinking) DeltaType() string { return "thinking_delta" }

// DeltaType implements [Delta].
func (*DeltaSignature) DeltaType() string { return "signature_delta" }

// DeltaType implements [Delta].
func (*DeltaInputJSON) DeltaType() string { return "input_json_delta" }

// DeltaType implements [Delta].
func (*DeltaCitations) DeltaType() string { return "citations_delta" }

// DeltaType implements [Delta].
func (d *DeltaUnknown) DeltaType() string { return d.Type }

// MarshalJSON adds the delta's "type".
func (d *DeltaText) MarshalJSON() ([]byte, error) {
	type plain DeltaText
	return marshalAs(d.DeltaType(), (*plain)(d))
}

// MarshalJSON adds the delta's "type".
func (d *DeltaThinking) MarshalJSON() ([]byte, error) {
	type plain DeltaThinking
	return marshalAs(d.DeltaType(), (*plain)(d))
}

// MarshalJSON adds the delta's "type".
func (d *DeltaSignature) MarshalJSON() ([]byte, error) {
	type plain DeltaSignature
	return marshalAs(d.DeltaType(), (*plain)(d))
}

// MarshalJSON adds the delta's "type".
func (d *DeltaInputJSON) MarshalJSON() ([]byte, error) {
	type plain DeltaInputJSON
	return marshalAs(d.DeltaType(), (*plain)(d))
}

// MarshalJSON adds the delta's "type".
func (d *DeltaCitations) MarshalJSON() ([]byte, error) {
	type plain DeltaCitations
	return marshalAs(d.DeltaType(), (*plain)(d))
}

// MarshalJSON returns the delta unchanged.
func (d *DeltaUnknown) MarshalJSON() ([]byte, error) { return orEmptyObject(d.Raw), nil }
