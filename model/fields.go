package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
)

// fields are members of a JSON object, in the order in which they came.
type fields []field

type field struct {
	name  string
	value json.RawMessage
}

// set adds a member, or replaces the value of the one with that name.
func (f *fields) set(name string, value []byte) {
	for i := range *f {
		if m := &(*f)[i]; m.name == name {
			if !bytes.Equal(m.value, value) {
				m.value = bytes.Clone(value)
			}
			return
		}
	}
	*f = append(*f, field{name, bytes.Clone(value)})
}

// add is set for what comes in parts: a list is appended to the list before, and null
// replaces nothing.
func (f *fields) add(name string, value []byte) {
	if string(value) == "null" {
		return
	}
	for i := range *f {
		m := &(*f)[i]
		if m.name != name || len(m.value) < 2 || m.value[0] != '[' || value[0] != '[' {
			continue
		}
		head, rest := bytes.TrimRight(m.value[:len(m.value)-1], " \n\t\r"), bytes.TrimLeft(value[1:], " \n\t\r")
		switch {
		case rest[0] == ']':
			return
		case len(head) > 1:
			head = append(head, ',')
		}
		m.value = append(head, rest...)
		return
	}
	f.set(name, value)
}

// keep sets the members of an object whose names are not known. Any other value has no members.
func (f *fields) keep(object []byte, known ...string) {
	c := jsonscan.Object(object, jsonscan.Space(object, 0))
	for key, val := range c.Members() {
		if name := string(jsonscan.Unescaped(c.Bytes(key))); !slices.Contains(known, name) {
			f.set(name, c.Bytes(val))
		}
	}
}

// dropNull drops members that say nothing.
func (f *fields) dropNull() {
	*f = slices.DeleteFunc(*f, func(m field) bool { return string(m.value) == "null" })
}

// object is an object of the members; nil without members.
func (f fields) object() json.RawMessage {
	if len(f) == 0 {
		return nil
	}
	b := []byte{'{'}
	for i, m := range f {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, m.name), ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// usageFields are the counts of tokens of the Messages API: a later one replaces an earlier.
type usageFields struct{ fields }

// merge adds later counts. The input is known from the start on, and many servers say null or 0 for
// it at the end, which means that they do not say it again.
func (u *usageFields) merge(usage []byte) {
	var later fields
	later.keep(usage)
	for _, m := range later {
		i := slices.IndexFunc(u.fields, func(o field) bool { return o.name == m.name })
		switch {
		case i >= 0 && string(m.value) == "null":
		case i >= 0 && ofInput(m.name) && noTokens(m.value):
		default:
			u.set(m.name, m.value)
		}
	}
}

// ofInput reports whether a count is of what the model has read.
func ofInput(name string) bool {
	switch name {
	case "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation":
		return true
	}
	return false
}

// noTokens reports whether a count is 0, or an object of such counts.
func noTokens(value []byte) bool {
	var n int
	if protocol.Unmarshal(value, &n) == nil {
		return n == 0
	}
	var parts map[string]int
	if protocol.Unmarshal(value, &parts) != nil {
		return false
	}
	for _, n := range parts {
		if n != 0 {
			return false
		}
	}
	return true
}

func (u *usageFields) usage() Usage {
	n := func(name string) (v int) {
		for _, m := range u.fields {
			if m.name == name {
				_ = protocol.Unmarshal(m.value, &v) // null, and any other value, is 0
			}
		}
		return v
	}
	var written struct {
		Hour int `json:"ephemeral_1h_input_tokens"`
	}
	for _, m := range u.fields {
		if m.name == "cache_creation" {
			_ = protocol.Unmarshal(m.value, &written) // the same
		}
	}
	return Usage{
		CacheHour: min(max(written.Hour, 0), n("cache_creation_input_tokens")),
		Input:     n("input_tokens"), Output: n("output_tokens"),
		CacheRead: n("cache_read_input_tokens"), CacheWrite: n("cache_creation_input_tokens"),
		Raw: u.object(),
	}
}
