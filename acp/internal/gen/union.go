package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// additional is the schema of the values of a map, nil if they may be anything.
func additional(s *schema) *schema {
	of := &schema{}
	if len(s.Additional) == 0 || s.Additional[0] != '{' || json.Unmarshal(s.Additional, of) != nil {
		return nil
	}
	return of
}

// union makes a struct with a pointer for each alternative; encodeUnion and decodeUnion
// read its tags.
func (g *generator) union(t string, d *schema) string {
	var fields strings.Builder
	tag := d.Tag.Property
	for _, v := range d.variants() {
		value := ""
		for _, p := range v.Properties {
			if p.name == tag {
				value, _ = p.constant()
			}
		}
		name, of := goName(value), "Empty"
		if ref, _ := (&schema{AllOf: v.AllOf}).ref(); ref != "" {
			g.reach(ref)
			of = typeName(ref)
		}
		fields.WriteString(comment("\t", v.summary()))
		fmt.Fprintf(&fields, "\t%s *%s `variant:%q`\n", name, of, value)
	}
	return fmt.Sprintf(`//
// At most one field is set. Other is a variant that this release doesn't know.
type %[1]s struct {
%[2]s	Other json.RawMessage
}

// MarshalJSON writes the field that is set; it is an error if none is.
func (u %[1]s) MarshalJSON() ([]byte, error) { return encodeUnion(%[3]q, u) }

// UnmarshalJSON reads the variant that the member %[3]s names.
func (u *%[1]s) UnmarshalJSON(data []byte) error { return decodeUnion(%[3]q, data, u) }

`, t, fields.String(), tag)
}
