package protocol

import (
	"encoding/json"
	"iter"
)

// Members yields the members of a JSON object in their order: the key unescaped,
// and the value as the part of object that it is. Both may alias object and are
// not to be changed. What is not an object has none.
//
// It is for JSON that is known to be valid, such as a part of a request that was
// decoded, and costs a fraction of [json.Unmarshal]; see [json.Valid] for other.
func Members(object json.RawMessage) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func(key []byte, value json.RawMessage) bool) {
		c := open(object, 0, '{', '}')
		for {
			key, value, ok := c.member()
			if !ok || !yield(unescaped(key.of(object)), value.of(object)) {
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
	return string(unescaped(value)), true
}
