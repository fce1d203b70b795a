package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Marshal encodes v as the vendors do: compact, and without escaping <, > and &.
func Marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}

// MarshalWith encodes the struct v and then extra's keys in sorted order, except those that v has.
func MarshalWith(v any, extra map[string]json.RawMessage) ([]byte, error) {
	own, err := Marshal(v)
	if err != nil || len(extra) == 0 {
		return own, err
	}
	known := jsonKeys(reflect.TypeOf(v))
	rest := make(map[string]json.RawMessage, len(extra))
	for k, val := range extra {
		if !known[k] {
			rest[k] = val
		}
	}
	if len(rest) == 0 {
		return own, nil
	}
	more, err := Marshal(rest)
	if err != nil {
		return nil, err
	}
	if string(own) == "{}" {
		return more, nil
	}
	return append(append(own[:len(own)-1], ','), more[1:]...), nil
}

// UnmarshalWith decodes b with decode into the struct that v points to, and the keys that
// the struct does not know into extra. decode must match names exactly: a key in another
// case is another key, for extra.
func UnmarshalWith(decode func(b []byte, v any) error, b []byte, v any, extra *map[string]json.RawMessage) error {
	if err := decode(b, v); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for k := range jsonKeys(reflect.TypeOf(v).Elem()) {
		delete(all, k)
	}
	if len(all) == 0 {
		all = nil
	}
	*extra = all
	return nil
}

// jsonKeys are the keys that a struct type encodes to.
func jsonKeys(t reflect.Type) map[string]bool {
	keys := make(map[string]bool)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			keys[name] = true
		}
	}
	return keys
}

// Misplaced are the keys of extra that v has a field for, sorted. MarshalWith leaves them out.
func Misplaced(v any, extra map[string]json.RawMessage) []string {
	known := jsonKeys(reflect.TypeOf(v))
	return slices.Sorted(func(yield func(string) bool) {
		for key := range extra { //troupe:maporder they are sorted
			if known[key] && !yield(key) {
				return
			}
		}
	})
}

// WholeMillis is d in milliseconds, rounded up: Claude Code drops a server, with no word, whose timeout is a fraction
// (observed on 2.1.329).
func WholeMillis(d time.Duration) int64 {
	return int64(d/time.Millisecond) + min(1, int64(d%time.Millisecond))
}

// Millis is d in milliseconds, as the wire has it.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
