package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
		if err := write(b, key); err != nil {
			return err
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
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if key == "type" || key == "subtype" {
			continue
		}
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
	var b bytes.Buffer
	if err := write(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write writes objects in objects to the same buffer: marshalling each by itself
// would copy it once for every object around it.
func write(b *bytes.Buffer, v any) error {
	if o, ok := v.(Object); ok {
		return o.write(b)
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline
	return nil
}
