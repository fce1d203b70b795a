package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/base/wire"
)

// Millis is a span of time in milliseconds, the unit of every "_ms" key. The
// agents send fractions at times (observed in api_retry delays).
type Millis float64

// Duration converts m; what does not fit a Duration is cut to its range.
func (m Millis) Duration() time.Duration {
	ns := float64(m) * float64(time.Millisecond)
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	case ns != ns:
		return 0
	}
	return time.Duration(ns)
}

// Nullable is a value with three states on the wire: absent (the zero value), null, and
// set. Give its field the tag option omitzero.
type Nullable[T any] struct {
	// Present is false if the key is absent.
	Present bool
	// Value is nil if the key is null.
	Value *T
}

// Some returns a Nullable that is set to v.
func Some[T any](v T) Nullable[T] { return Nullable[T]{Present: true, Value: &v} }

// Null returns a Nullable that is null.
func Null[T any]() Nullable[T] { return Nullable[T]{Present: true} }

// IsZero reports whether the key is absent.
func (n Nullable[T]) IsZero() bool { return !n.Present }

// MarshalJSON encodes the value, or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if n.Value == nil {
		return []byte("null"), nil
	}
	return Marshal(n.Value)
}

// UnmarshalJSON decodes the value, or null.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	*n = Nullable[T]{Present: true}
	if string(b) == "null" {
		return nil
	}
	n.Value = new(T)
	return Unmarshal(b, n.Value)
}

// Marshal encodes v as the vendors do: compact, and without escaping <, > and &.
func Marshal(v any) (json.RawMessage, error) { return wire.Marshal(v) }

// prefixed returns the object obj with string members in front of those that it has. A
// member with an empty value is left out.
func prefixed(obj []byte, members ...string) ([]byte, error) {
	if len(obj) < 2 || obj[0] != '{' {
		return nil, fmt.Errorf("not an object: %.40q", obj)
	}
	out := make([]byte, 0, len(obj)+64)
	out = append(out, '{')
	for i := 0; i+1 < len(members); i += 2 {
		if members[i+1] == "" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendString(out, members[i])
		out = append(out, ':')
		out = appendString(out, members[i+1])
	}
	if len(out) > 1 && obj[1] != '}' {
		out = append(out, ',')
	}
	return append(out, obj[1:]...), nil
}

// marshalAs encodes v, which must be an object, with its "type" in front.
func marshalAs(typ string, v any) ([]byte, error) {
	b, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return prefixed(b, "type", typ)
}

// looseString returns a string value as text, null as "", and any other value
// as its JSON.
func looseString(value []byte) string {
	if len(value) > 0 && value[0] == '"' {
		return jsonscan.Text(value)
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// appendSurrogate appends a lone surrogate in the form that UTF-8 has for other
// runes of its size, so that two of them stay apart.
func appendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// isNull reports whether raw is absent or JSON null.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}

// Members yields the members of a JSON object in their order: the unescaped key, and the
// value as a part of object. Both may alias object and must not be changed. If object is
// not a JSON object, Members yields nothing.
//
// object must be valid JSON, such as a part of a decoded request; check other input with
// [json.Valid]. Members costs a fraction of [json.Unmarshal].
func Members(object json.RawMessage) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func(key []byte, value json.RawMessage) bool) {
		c := jsonscan.Object(object, 0)
		for key, value := range c.Members() {
			if !yield(jsonscan.Unescaped(key.Of(object)), value.Of(object)) {
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
