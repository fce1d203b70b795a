package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	for _, name := range required(method) {
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

// encodeTagged writes v with the member tag before its own.
func encodeTagged(tag, value string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("{%q:%q", tag, value)
	if rest := bytes.TrimPrefix(data, []byte("{")); len(rest) > 1 {
		return append([]byte(head+","), rest...), nil
	}
	return []byte(head + "}"), nil
}

// decodeVariant reads the variant of a union.
func decodeVariant[T any](data []byte, to **T) error {
	*to = new(T)
	return json.Unmarshal(data, *to)
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

func errNoVariant(union string) error {
	return fmt.Errorf("acp: a %s has no variant set", union)
}
