package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// Tree is a JSON object that keeps the order of its keys, as the vendors' SDKs do. Its values are *Tree, []any, string,
// json.Number, bool and nil.
type Tree struct {
	keys   []string
	values map[string]any
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{values: map[string]any{}} }

// TreeOf is a value that encodes to a JSON object, as a tree.
func TreeOf(v any) (*Tree, error) {
	raw, err := protocol.Marshal(v)
	if err != nil {
		return nil, err
	}
	return parseTree(raw)
}

// parseTree reads a JSON object. Numbers keep their digits. The last of equal keys counts, where the first stood.
func parseTree(raw []byte) (*Tree, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := treeValue(dec)
	if err != nil {
		return nil, err
	}
	t, ok := v.(*Tree)
	if !ok {
		return nil, fmt.Errorf("is %T, not an object", v)
	}
	return t, nil
}

func treeValue(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		t := NewTree()
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := treeValue(dec)
			if err != nil {
				return nil, err
			}
			t.Put(key.(string), v) // a key is a string
		}
		_, err = dec.Token()
		return t, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := treeValue(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.Token()
		return list, err
	}
	return token, nil
}

// Keys are the keys in their order.
func (t *Tree) Keys() []string { return slices.Clone(t.keys) }

// Value is the value of a key, and whether it is there; a nil tree has no values.
func (t *Tree) Value(key string) (any, bool) {
	if t == nil {
		return nil, false
	}
	v, ok := t.values[key]
	return v, ok
}

// Sub is the object under a key, or nil.
func (t *Tree) Sub(key string) *Tree {
	v, _ := t.Value(key)
	sub, _ := v.(*Tree)
	return sub
}

// IsTrue reports whether a key is true.
func (t *Tree) IsTrue(key string) bool {
	v, _ := t.Value(key)
	on, _ := v.(bool)
	return on
}

// Put sets a key: where it stands, or at the end.
func (t *Tree) Put(key string, v any) {
	if _, have := t.values[key]; !have {
		t.keys = append(t.keys, key)
	}
	t.values[key] = v
}

// Delete takes a key away.
func (t *Tree) Delete(key string) {
	if _, have := t.values[key]; have {
		delete(t.values, key)
		t.keys = slices.DeleteFunc(t.keys, func(k string) bool { return k == key })
	}
}

// Copy is a copy of the tree's keys. The values are shared.
func (t *Tree) Copy() *Tree {
	out := NewTree()
	if t != nil {
		for _, key := range t.keys {
			out.Put(key, t.values[key])
		}
	}
	return out
}

// MarshalJSON encodes the object in the order of its keys.
func (t *Tree) MarshalJSON() ([]byte, error) {
	var o Object
	for _, key := range t.keys {
		o.Set(key, t.values[key])
	}
	return o.JSON()
}
