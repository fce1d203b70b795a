package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Meta is the member _meta, which every object of the protocol may have: what agents and
// clients add for each other. Keys that the reader doesn't know have no meaning.
type Meta map[string]any

// Empty is an object without members.
type Empty struct{}

// List is a list that the protocol requires: nil is written as [].
type List[T any] []T

// MarshalJSON writes the list.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}

// Decode decodes the parameters of a method. The error is an [*Error] with
// [CodeInvalidParams] if they don't have the types of the schema, or lack a member that
// the method requires.
func Decode(method string, params json.RawMessage, v any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(params, &members); err != nil {
		return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("%s: the params are no object", method)}
	}
	for _, name := range required[method] {
		if len(members[name]) == 0 || string(members[name]) == "null" {
			return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("%s: %s is missing", method, name)}
		}
	}
	if err := json.Unmarshal(params, v); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			// The value itself may be a secret.
			return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("%s: %s has the wrong type", method, t.Field)}
		}
		return &Error{Code: CodeInvalidParams, Message: method + ": the params cannot be read"}
	}
	return nil
}

// encodeUnion writes the variant that is set in the struct u, with the member tag, which
// names it, before the variant's own.
func encodeUnion(tag string, u any) ([]byte, error) {
	for field, v := range reflect.ValueOf(u).Fields() {
		if v.IsNil() {
			continue
		}
		name, known := field.Tag.Lookup("variant")
		data, err := json.Marshal(v.Interface())
		if err != nil || !known { // Other, which is whole
			return data, err
		}
		head := fmt.Sprintf("{%q:%q", tag, name)
		if rest := bytes.TrimPrefix(data, []byte("{")); len(rest) > 1 {
			return append([]byte(head+","), rest...), nil
		}
		return []byte(head + "}"), nil
	}
	return nil, fmt.Errorf("acp: a %s has no variant set", reflect.TypeOf(u).Name())
}

// decodeUnion reads the variant that the member tag names into its field of the struct
// that u points to, and one that has no field into Other.
func decodeUnion(tag string, data []byte, u any) error {
	name, err := tagOf(data, tag)
	if err != nil {
		return err
	}
	to := reflect.ValueOf(u).Elem()
	to.SetZero()
	for field, v := range to.Fields() {
		if variant, known := field.Tag.Lookup("variant"); known && variant == name {
			v.Set(reflect.New(v.Type().Elem()))
			return json.Unmarshal(data, v.Interface())
		}
	}
	to.FieldByName("Other").SetBytes(bytes.Clone(data))
	return nil
}

// tagOf returns the text of the member that names the variant, or "".
func tagOf(data []byte, tag string) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return "", err
	}
	var value string
	if raw, ok := members[tag]; ok {
		if err := json.Unmarshal(raw, &value); err != nil {
			return "", fmt.Errorf("%s: %w", tag, err)
		}
	}
	return value, nil
}
