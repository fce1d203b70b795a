package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// schema is the part of JSON Schema that the published file uses.
type schema struct {
	Description string          `json:"description"`
	Title       string          `json:"title"`
	Ref         string          `json:"$ref"`
	Type        json.RawMessage `json:"type"` // a name, or a list with "null"
	Format      string          `json:"format"`
	Const       json.RawMessage `json:"const"`
	Properties  properties      `json:"properties"`
	Required    []string        `json:"required"`
	Items       *schema         `json:"items"`
	Additional  json.RawMessage `json:"additionalProperties"` // a boolean or a schema
	AllOf       []*schema       `json:"allOf"`
	AnyOf       []*schema       `json:"anyOf"`
	OneOf       []*schema       `json:"oneOf"`
	Tag         *struct {
		Property string `json:"propertyName"`
	} `json:"discriminator"`
	Side   string `json:"x-side"`
	Method string `json:"x-method"`
}

// properties are the members of an object in the order of the file.
type properties []property

type property struct {
	name string
	*schema
}

func (p *properties) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		s := &schema{}
		if err := d.Decode(s); err != nil {
			return fmt.Errorf("%v: %w", name, err)
		}
		*p = append(*p, property{fmt.Sprint(name), s})
	}
	return nil
}

// types returns the type without null, and whether null is allowed.
func (s *schema) types() (name string, null bool) {
	if len(s.Type) == 0 {
		return "", false
	}
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return one, false
	}
	var several []string
	if json.Unmarshal(s.Type, &several) != nil {
		return "", false
	}
	null = slices.Contains(several, "null")
	several = slices.DeleteFunc(several, func(t string) bool { return t == "null" })
	if len(several) != 1 {
		return "", null
	}
	return several[0], null
}

// variants are the alternatives of a union.
func (s *schema) variants() []*schema {
	if len(s.OneOf) > 0 {
		return s.OneOf
	}
	return s.AnyOf
}

// ref returns the definition that the schema stands for, "" if it has its own content,
// and whether null is allowed in its place.
func (s *schema) ref() (name string, null bool) {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/$defs/"), false
	case len(s.AllOf) == 1 && len(s.Properties) == 0:
		return s.AllOf[0].ref()
	case len(s.AnyOf) == 2:
		if t, _ := s.AnyOf[1].types(); t == "null" {
			name, _ = s.AnyOf[0].ref()
			return name, true
		}
	}
	return "", false
}

// constant returns the text of a string constant.
func (s *schema) constant() (string, bool) {
	var text string
	if len(s.Const) == 0 || json.Unmarshal(s.Const, &text) != nil {
		return "", false
	}
	return text, true
}

// summary is the first paragraph of the description, without markup.
func (s *schema) summary() string {
	text, _, _ := strings.Cut(s.Description, "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	return strings.ReplaceAll(text, "`", "")
}
