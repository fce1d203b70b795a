package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Object is a JSON object. It is encoded with type and subtype first and the other keys
// sorted, so that equal objects have equal bytes.
type Object map[string]any

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) { return encode(o) }

func (o Object) write(b *bytes.Buffer) error {
	if o == nil {
		b.WriteString("null")
		return nil
	}
	b.WriteByte('{')
	first := true
	put := func(key string) error {
		if !first {
			b.WriteByte(',')
		}
		first = false
		if !writeText(b, key) { // in an interface, a key would be allocated
			if err := write(b, key); err != nil {
				return err
			}
		}
		b.WriteByte(':')
		if err := write(b, o[key]); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	for _, key := range []string{"type", "subtype"} {
		if _, ok := o[key]; ok {
			if err := put(key); err != nil {
				return err
			}
		}
	}
	var room [32]string // sorting allocates nothing
	keys := room[:0]
	for key := range o {
		if key != "type" && key != "subtype" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := put(key); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// with returns o with more's members added or replaced; o itself is unchanged.
func (o Object) with(more Object) Object {
	if len(more) == 0 {
		return o
	}
	out := make(Object, len(o)+len(more))
	maps.Copy(out, o)
	maps.Copy(out, more)
	return out
}

// encode is json.Marshal without HTML escapes, which no agent writes.
func encode(v any) ([]byte, error) {
	b := *bytes.NewBuffer(make([]byte, 0, 1024))
	if err := write(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write writes objects in objects to the same buffer: marshalling each by itself
// would copy it once for every object around it. It writes what objects are mostly made
// of itself, since an encoder costs more than the value.
func write(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case Object:
		return v.write(b)
	case string:
		if writeText(b, v) {
			return nil
		}
	case json.RawMessage:
		if v != nil {
			return json.Compact(b, v)
		}
	case nil:
		b.WriteString("null")
		return nil
	case bool:
		b.Write(strconv.AppendBool(b.AvailableBuffer(), v))
		return nil
	case int:
		b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(v), 10))
		return nil
	case int64:
		b.Write(strconv.AppendInt(b.AvailableBuffer(), v, 10))
		return nil
	case []any:
		if v != nil {
			return writeList(b, v)
		}
	case []Object:
		if v != nil {
			return writeList(b, v)
		}
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline
	return nil
}

func writeList[E any](b *bytes.Buffer, list []E) error {
	b.WriteByte('[')
	for i, e := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write(b, e); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	if plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	text, _ := json.Marshal(s) // a string
	return append(b, text...)
}

// writeText writes s as a JSON string, and reports false, with nothing written, where that
// takes an encoder: most texts have no other escapes than those of lines and quotes.
func writeText(b *bytes.Buffer, s string) bool {
	escapes := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n' || c == '\t' || c == '\r' || c == '"' || c == '\\':
			escapes++
		case c < ' ' || c >= 0x7f:
			return false
		}
	}
	b.Grow(len(s) + escapes + 2)
	b.WriteByte('"')
	from := 0
	for i := 0; escapes > 0; i++ {
		c := s[i]
		switch c {
		case '\n':
			c = 'n'
		case '\t':
			c = 't'
		case '\r':
			c = 'r'
		case '"', '\\':
		default:
			continue
		}
		b.WriteString(s[from:i])
		b.WriteByte('\\')
		b.WriteByte(c)
		from = i + 1
		escapes--
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
	return true
}

// plain reports whether JSON has no escape for any byte of s.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
}
