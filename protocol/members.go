package protocol

import (
	"encoding/json"
	"iter"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Members yields the members of a JSON object in their order: the unescaped key, and the
// value as a part of object. Both may alias object and must not be changed. If object is
// not a JSON object, Members yields nothing.
//
// object must be valid JSON, such as a part of a decoded request; check other input with
// [json.Valid]. Members costs a fraction of [json.Unmarshal].
func Members(object json.RawMessage) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func(key []byte, value json.RawMessage) bool) {
		c := jsonscan.Object(object, 0)
		for {
			key, value, ok := c.Member()
			if !ok || !yield(jsonscan.Unescaped(key.Of(object)), value.Of(object)) {
				return
			}
		}
	}
}

// StringValue returns the text of a JSON string, and false for any other value.
// value must be valid JSON.
func StringValue(value json.RawMessage) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return string(jsonscan.Unescaped(value)), true
}
