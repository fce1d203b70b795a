package build

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
)

// Object is a JSON object whose keys stand in the order in which they were added. The zero value is {}.
type Object struct {
	buf bytes.Buffer
	err error
}

// Set adds a key.
func (o *Object) Set(key string, value any) {
	raw, err := protocol.Marshal(value)
	if err != nil {
		if o.err == nil {
			o.err = fmt.Errorf("encode %s: %w", key, err)
		}
		return
	}
	if o.buf.Len() == 0 {
		o.buf.WriteByte('{')
	} else {
		o.buf.WriteByte(',')
	}
	name, _ := protocol.Marshal(key) // a string always encodes
	o.buf.Write(name)
	o.buf.WriteByte(':')
	o.buf.Write(raw)
}

// SetRaw adds a key with a value that was encoded elsewhere, or takes over the error of that.
func (o *Object) SetRaw(key string, raw json.RawMessage, err error) {
	if err != nil {
		if o.err == nil {
			o.err = fmt.Errorf("encode %s: %w", key, err)
		}
		return
	}
	o.Set(key, raw)
}

// SetIf adds a key if given.
func (o *Object) SetIf(given bool, key string, value any) {
	if given {
		o.Set(key, value)
	}
}

// JSON returns the object, or the first error of Set.
func (o *Object) JSON() (json.RawMessage, error) {
	if o.err != nil {
		return nil, o.err
	}
	if o.buf.Len() == 0 {
		return json.RawMessage("{}"), nil
	}
	return append(bytes.Clone(o.buf.Bytes()), '}'), nil
}

// MarshalJSON lets an Object be a value of another.
func (o *Object) MarshalJSON() ([]byte, error) { return o.JSON() }

// WithKey adds a key to an encoded object that does not have it.
func WithKey(object json.RawMessage, key string, value any) (json.RawMessage, error) {
	var one Object
	one.Set(key, value)
	more, err := one.JSON()
	if err != nil || string(object) == "{}" {
		return more, err
	}
	return append(append(bytes.Clone(object[:len(object)-1]), ','), more[1:]...), nil
}

// IsObject reports whether raw is a JSON object.
func IsObject(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && jsonscan.Valid(raw)
}
