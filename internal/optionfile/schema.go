package optionfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// schema is what the schema of options uses of JSON Schema. The package that
// checks the arguments of tools takes ten times as long to read it (22 ms), and
// its errors stop at the first problem and have no place.
type schema struct {
	Ref                  string             `json:"$ref"`
	Defs                 map[string]*schema `json:"$defs"`
	Title                string             `json:"title"` // of a value: what it is, for mistakes
	Type                 typeNames          `json:"type"`  // empty: any
	Enum                 []any              `json:"enum"`
	AnyOf                []*schema          `json:"anyOf"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *otherKeys         `json:"additionalProperties"` // nil: any
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	ExclusiveMinimum     *float64           `json:"exclusiveMinimum"`
	Examples             []json.RawMessage  `json:"examples"`
	MinLength            int                `json:"minLength"`
	Pattern              *pattern           `json:"pattern"` // its Title says what fits
}

// pattern is a regular expression.
type pattern struct{ *regexp.Regexp }

// UnmarshalText compiles it.
func (p *pattern) UnmarshalText(b []byte) (err error) {
	p.Regexp, err = regexp.Compile(string(b))
	return err
}

// typeNames are written as one name or a list.
type typeNames []string

// UnmarshalJSON decodes a name or a list.
func (t *typeNames) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = make(typeNames, 1)
	return json.Unmarshal(b, &(*t)[0])
}

// otherKeys is the schema of the keys that have no property; without one there
// can be none.
type otherKeys struct{ *schema }

// UnmarshalJSON decodes false or a schema.
func (o *otherKeys) UnmarshalJSON(b []byte) error {
	if string(b) == "false" {
		return nil
	}
	o.schema = &schema{}
	return json.Unmarshal(b, o.schema)
}

// alternatives are the schemas of which a value has to fit one. That of
// {"$env": …} is not among them: expand has replaced those.
func (r *reader) alternatives(s *schema) []*schema {
	const env = "#/$defs/env"
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok && s.Ref != env {
		return r.alternatives(r.schema.Defs[name])
	}
	if len(s.AnyOf) == 0 && s.Ref != env {
		return []*schema{s}
	}
	var all []*schema
	for _, sub := range s.AnyOf {
		all = append(all, r.alternatives(sub)...)
	}
	return all
}

// takes reports whether s takes values of n's kind, and for a choice of values n
// itself.
func (s *schema) takes(n *Node) bool {
	if len(s.Enum) > 0 {
		return n.Kind == Text && slices.Contains(s.Enum, any(n.Text)) || n.Kind == Null && slices.Contains(s.Enum, nil)
	}
	_, notBool := strconv.ParseBool(n.Text)
	_, notNumber := strconv.ParseFloat(n.Text, 64)
	return len(s.Type) == 0 || slices.ContainsFunc(s.Type, func(name string) bool {
		switch name {
		case "null":
			return n.Kind == Null
		case "boolean":
			return n.Kind == Bool || n.expanded && notBool == nil
		case "integer", "number":
			return n.Kind == Number || n.expanded && notNumber == nil
		case "string":
			return n.Kind == Text
		case "array":
			return n.Kind == List
		}
		return n.Kind == Object
	})
}

// expectation says what the schemas take.
func expectation(all []*schema) string {
	names := map[string]string{"boolean": "a boolean", "integer": "a whole number", "number": "a number", "string": "a text",
		"array": "a list", "object": "an object"}
	var words []string
	for _, s := range all {
		switch kind := s.Properties["type"]; {
		case s.Title != "" && s.Properties == nil:
			words = append(words, s.Title)
		case len(s.Enum) > 0:
			words = append(words, quoted(s.Enum))
		case kind != nil && len(kind.Enum) == 1 && !slices.Contains(words, names["object"]):
			words = append(words, fmt.Sprintf("an object of type %v", kind.Enum[0]))
		default:
			for _, name := range s.Type {
				if name != "null" && !slices.Contains(words, names[name]) {
					words = append(words, names[name])
				}
			}
		}
	}
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + ", or " + words[last]
}

// quoted lists values: "a", "b" or "c".
func quoted(values []any) string {
	var texts []any
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, strconv.Quote(text))
		}
	}
	return choice(texts)
}

// choice lists values: a, b or c.
func choice(values []any) string {
	var texts []string
	for _, v := range values {
		if text, ok := v.(string); ok && text != "" {
			texts = append(texts, text)
		}
	}
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}
