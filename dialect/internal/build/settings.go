package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Settings is a settings object that options are merged into.
type Settings struct {
	doc    map[string]any
	raw    []byte // as given
	merged bool
}

// ParseSettings reads a settings object; nil or blank gives an empty one.
func ParseSettings(raw []byte) (*Settings, error) {
	s := &Settings{doc: map[string]any{}, raw: raw}
	if len(bytes.TrimSpace(raw)) == 0 {
		return s, nil
	}
	if !IsObject(raw) {
		return nil, errors.New("is not a JSON object")
	}
	if err := decodeTree(raw, &s.doc); err != nil {
		return nil, fmt.Errorf("is not a JSON object: %w", err)
	}
	return s, nil
}

// Tree is a value that encodes to a JSON object as the maps and lists of settings.
func Tree(v any) (map[string]any, error) {
	raw, err := JSON(v)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	return tree, decodeTree(raw, &tree)
}

// decodeTree keeps the digits of numbers.
func decodeTree(raw []byte, tree *map[string]any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(tree)
}

// Merged reports whether anything was merged in.
func (s *Settings) Merged() bool { return s.merged }

// Keys returns the top-level keys, sorted.
func (s *Settings) Keys() []string { return slices.Sorted(maps.Keys(s.doc)) }

// Get returns the value at a dotted path, or nil.
func (s *Settings) Get(path string) any {
	var at any = s.doc
	for key := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[key]
	}
	return at
}

// Set puts a value at a dotted path, making objects on the way. A value in the way that is no object is an error.
func (s *Settings) Set(path string, value any) error {
	at := s.doc
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		switch next := at[key].(type) {
		case map[string]any:
			at = next
		case nil:
			made := map[string]any{}
			at[key] = made
			at = made
		default:
			return fmt.Errorf("has %s of another kind than an object", key)
		}
	}
	at[keys[len(keys)-1]] = value
	s.merged = true
	return nil
}

// Append adds strings to the list at a dotted path, those it has already excepted. The list is made if it is not
// there, even for no strings.
func (s *Settings) Append(path string, values ...string) error {
	list := []any{}
	switch old := s.Get(path).(type) {
	case []any:
		list = append(list, old...)
	case nil:
	default:
		return fmt.Errorf("has %s of another kind than a list", path)
	}
	have := make(map[string]bool, len(list))
	for _, v := range list {
		if text, ok := v.(string); ok {
			have[text] = true
		}
	}
	for _, v := range values {
		if !have[v] {
			have[v] = true
			list = append(list, v)
		}
	}
	return s.Set(path, list)
}

// Strings returns the strings of the list at a dotted path.
func (s *Settings) Strings(path string) []string {
	list, _ := s.Get(path).([]any)
	var out []string
	for _, v := range list {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// JSON encodes the settings: in the order given, and with sorted keys once something is merged in.
func (s *Settings) JSON() (json.RawMessage, error) {
	if !s.merged && IsObject(s.raw) {
		return JSON(json.RawMessage(s.raw))
	}
	return JSON(s.doc)
}
