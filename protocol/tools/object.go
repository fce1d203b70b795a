package tools

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

func orNull(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return json.RawMessage("null")
	}
	return raw
}

// decode fills v from an object, and extra with the members that v has no
// field for.
//
// A member is taken for a field by its exact name. encoding/json would take
// Command for command, and the last of the two: a rule would then look at
// another command than the one the agent runs.
func decode(raw json.RawMessage, v any, extra *Extra) error {
	if b := bytes.TrimSpace(raw); len(b) == 0 || b[0] != '{' {
		return errNotObject
	}
	if extra == nil { // it keeps the whole object
		return protocol.Unmarshal(raw, v)
	}
	var members map[string]json.RawMessage
	if err := protocol.Unmarshal(raw, &members); err != nil {
		return err
	}
	fields := reflect.ValueOf(v).Elem()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		member, ok := members[name]
		if !ok || name == "" || name == "-" {
			continue
		}
		delete(members, name)
		if err := protocol.Unmarshal(member, fields.Field(i).Addr().Interface()); err != nil {
			return &memberError{name: name, raw: member, err: err}
		}
	}
	if len(members) > 0 {
		*extra = members
	}
	return nil
}

// memberError says which member of an object does not decode.
type memberError struct {
	name string
	raw  json.RawMessage
	err  error
}

func (e *memberError) Error() string { return e.name + ": " + e.err.Error() }

func (e *memberError) Unwrap() error { return e.err }

// withExtra returns the object obj with more members, in the order of their keys.
func withExtra(obj json.RawMessage, more Extra) (json.RawMessage, error) {
	if len(more) == 0 {
		return obj, nil
	}
	tail, err := marshalSorted(more)
	if err != nil {
		return nil, err
	}
	if len(obj) == 2 { // {}
		return tail, nil
	}
	out := append(slices.Clip(obj[:len(obj)-1]), ',')
	return append(out, tail[1:]...), nil
}

func marshalSorted(m Extra) (json.RawMessage, error) {
	out := []byte{'{'}
	for i, key := range slices.Sorted(maps.Keys(m)) {
		k, err := protocol.Marshal(key)
		if err != nil {
			return nil, err
		}
		v, err := protocol.Marshal(orNull(m[key]))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, k...), ':'), v...)
	}
	return append(out, '}'), nil
}

// found names what encoding/json found: a JSON type, with the value if it is a
// number that does not fit.
func found(value string) string {
	switch value {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "a boolean"
	}
	return "a " + value
}

// wanted names a Go type in JSON's terms.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

// joined puts a path behind the name of the member that it begins in.
func joined(name, path string) string {
	if name == "" || path == "" || path[0] == '[' {
		return name + path
	}
	return name + "." + path
}

// pathAt returns the path of the innermost value of raw that begins before the
// offset off and reaches it, such as todos[0].status.
func pathAt(raw json.RawMessage, off int64) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var path []string
	var walk func() bool // reports whether the value was found
	walk = func() bool {
		tok, err := dec.Token()
		if err != nil {
			return true
		}
		if dec.InputOffset() >= off {
			return true
		}
		delim, ok := tok.(json.Delim)
		if !ok {
			return false
		}
		for i := 0; dec.More(); i++ {
			step := "[" + strconv.Itoa(i) + "]"
			if delim == '{' {
				key, err := dec.Token()
				if err != nil {
					return true
				}
				step, _ = key.(string)
				if len(path) > 0 {
					step = "." + step
				}
			}
			path = append(path, step)
			if walk() {
				return true
			}
			path = path[:len(path)-1]
		}
		_, err = dec.Token() // the closing bracket
		return err != nil
	}
	walk()
	return strings.Join(path, "")
}
