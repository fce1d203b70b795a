package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Settings is a settings object that options are merged into.
type Settings struct {
	doc    *Tree
	raw    []byte // as given
	merged bool
}

// ParseSettings reads a settings object; nil or blank gives an empty one.
func ParseSettings(raw []byte) (*Settings, error) {
	s := &Settings{doc: NewTree(), raw: raw}
	if len(bytes.TrimSpace(raw)) == 0 {
		return s, nil
	}
	if !IsObject(raw) {
		return nil, errors.New("is not a JSON object")
	}
	doc, err := parseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON object: %w", err)
	}
	s.doc = doc
	return s, nil
}

// Keys returns the top-level keys in their order.
func (s *Settings) Keys() []string { return s.doc.Keys() }

// Get returns the value at a dotted path, or nil.
func (s *Settings) Get(path string) any {
	var at any = s.doc
	for key := range strings.SplitSeq(path, ".") {
		m, _ := at.(*Tree)
		at, _ = m.Value(key)
	}
	return at
}

// Set puts a value at a dotted path, making objects on the way. A value in the way that is not an
// object is an error.
func (s *Settings) Set(path string, value any) error {
	at := s.doc
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, _ := at.Value(key)
		switch next := next.(type) {
		case *Tree:
			at = next
		case nil:
			made := NewTree()
			at.Put(key, made)
			at = made
		default:
			return fmt.Errorf("has %s of another kind than an object", key)
		}
	}
	at.Put(keys[len(keys)-1], value)
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

// JSON encodes the settings in the order given; what was merged in stands where the vendors' SDKs put it.
func (s *Settings) JSON() (json.RawMessage, error) {
	if !s.merged && IsObject(s.raw) {
		return protocol.Marshal(json.RawMessage(s.raw))
	}
	return protocol.Marshal(s.doc)
}
