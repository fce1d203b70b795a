package sdk

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-troupe/troupe/protocol"
)

// flatSchema is a schema that knows its fields by name and wants texts and truth
// values in them, and nothing else. Most tools have one. What fits it needs no
// look by the library, and is plain as it is: three fields take 1 µs and one
// allocation, where the library takes 17 µs and 70.
type flatSchema struct {
	fields   map[string]flatField
	required uint64 // bits of the fields
}

type flatField struct {
	bit  uint64
	text bool // else a truth value
}

// flatten returns the flat schema that says what root says; nil when there is
// none.
func flatten(root *jsonschema.Schema) *flatSchema {
	var all struct {
		Keys       map[string]json.RawMessage            `json:"-"`
		Properties map[string]map[string]json.RawMessage `json:"properties"`
		Required   []string                              `json:"required"`
	}
	raw, err := json.Marshal(root) // by its keys, so that none is overlooked
	if err != nil || json.Unmarshal(raw, &all) != nil || json.Unmarshal(raw, &all.Keys) != nil {
		return nil
	}
	if string(all.Keys["additionalProperties"]) != "false" || len(all.Properties) > 64 ||
		!only(all.Keys, "$schema", "type", "title", "description", "properties", "required", "additionalProperties") {
		return nil
	}
	s := &flatSchema{fields: make(map[string]flatField, len(all.Properties))}
	for name, property := range all.Properties {
		kind := string(property["type"])
		if kind != `"string"` && kind != `"boolean"` || !only(property, "type", "title", "description") {
			return nil
		}
		s.fields[name] = flatField{bit: 1 << len(s.fields), text: kind == `"string"`}
	}
	for _, name := range all.Required {
		if _, known := s.fields[name]; !known {
			return nil
		}
		s.required |= s.fields[name].bit
	}
	return s
}

func only(keys map[string]json.RawMessage, allowed ...string) bool {
	known := 0
	for _, key := range allowed {
		if _, ok := keys[key]; ok {
			known++
		}
	}
	return known == len(keys)
}

// fits reports that arguments fit. When it reports false they still may.
func (s *flatSchema) fits(raw json.RawMessage) bool {
	if s == nil || raw[0] != '{' || !json.Valid(raw) {
		return false
	}
	var seen uint64
	for key, value := range protocol.Members(raw) {
		field, known := s.fields[string(key)]
		if !known || seen&field.bit != 0 || (value[0] == '"') != field.text || !field.text && value[0] != 't' && value[0] != 'f' {
			return false
		}
		seen |= field.bit
	}
	return seen&s.required == s.required
}
