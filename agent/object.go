package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Object is a JSON object. It is written with type and subtype first and the
// other keys in order, so that the same object is the same bytes.
type Object map[string]any

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("null"), nil
	}
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(key string) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		k, err := encode(key)
		if err != nil {
			return err
		}
		v, err := encode(o[key])
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		return nil
	}
	for _, key := range []string{"type", "subtype"} {
		if _, ok := o[key]; ok {
			if err := put(key); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if key == "type" || key == "subtype" {
			continue
		}
		if err := put(key); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
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
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
