package main

import (
	"fmt"
	"slices"
	"strings"
)

// typeName is the Go name of a definition.
func typeName(name string) string {
	if name == "RequestId" {
		return "ID" // written by hand: a key of a map
	}
	return goName(name)
}

// field is a member of a Go struct.
type field struct {
	name, doc, typ string
	required       bool
}

// merge returns the members of an object with those of all its alternatives. A member
// that not every alternative requires is optional; one that has several types is raw.
func (g *generator) merge(d *schema) []field {
	var out []field
	add := func(fs []field, required bool) {
		for _, f := range fs {
			f.required = f.required && required
			at := slices.IndexFunc(out, func(o field) bool { return o.name == f.name })
			switch {
			case at < 0:
				out = append(out, f)
			case strings.TrimPrefix(out[at].typ, "*") != strings.TrimPrefix(f.typ, "*"):
				out[at].typ = "json.RawMessage"
			}
		}
	}
	if d.Ref != "" {
		return g.merge(g.defs[strings.TrimPrefix(d.Ref, "#/$defs/")])
	}
	var own []field
	for _, p := range d.Properties {
		required := slices.Contains(d.Required, p.name)
		own = append(own, field{p.name, p.summary(), g.member(p.schema, required), required})
	}
	add(own, true)
	for _, a := range d.AllOf {
		add(g.merge(a), true)
	}
	alone := len(d.variants()) == 1
	for _, v := range d.variants() {
		if _, ok := v.constant(); !ok {
			add(g.merge(v), alone)
		}
	}
	// A field of all alternatives is required if each requires it.
	for i, f := range out {
		if f.required || len(d.variants()) < 2 {
			continue
		}
		all := true
		for _, v := range d.variants() {
			all = all && slices.ContainsFunc(g.merge(v), func(o field) bool { return o.name == f.name && o.required })
		}
		out[i].required = all
	}
	return out
}

// object makes a struct.
func (g *generator) object(t string, fields []field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "type %s struct {\n", t)
	for _, f := range fields {
		if f.name == "_meta" {
			continue
		}
		tag := f.name
		if !f.required {
			tag += ",omitzero"
		}
		if f.required && strings.HasPrefix(f.typ, "[]") {
			f.typ = "List[" + f.typ[2:] + "]"
		}
		b.WriteString(comment("\t", f.doc))
		fmt.Fprintf(&b, "\t%s %s `json:%q`\n", goName(f.name), f.typ, tag)
	}
	if slices.ContainsFunc(fields, func(f field) bool { return f.name == "_meta" }) {
		b.WriteString("\tMeta Meta `json:\"_meta,omitzero\"`\n")
	}
	return b.String() + "}\n\n"
}

// member is the Go type of a member. An optional number or boolean that may be null is a
// pointer, because its zero value has a meaning, and so is an optional object.
func (g *generator) member(s *schema, required bool) string {
	t, null := g.goType(s)
	switch {
	case required:
		return t
	case null && (t == "int" || t == "int64" || t == "float64" || t == "bool"), g.isStruct(s):
		return "*" + t
	}
	return t
}

// isStruct: the schema stands for a definition that becomes a struct.
func (g *generator) isStruct(s *schema) bool {
	name, _ := s.ref()
	if name == "" || name == "RequestId" {
		return false
	}
	d := g.defs[name]
	return !g.scalars(d) && !isEnum(d) && !arrays(d) && (len(d.Properties) > 0 || len(d.variants()) > 0 || isObject(d)) || d.Tag != nil
}

// goType is the Go type of a schema, and whether null is allowed.
func (g *generator) goType(s *schema) (string, bool) {
	if name, null := s.ref(); name != "" {
		if name == "RequestId" {
			return "ID", null
		}
		if g.scalars(g.defs[name]) {
			return "json.RawMessage", null
		}
		g.reach(name)
		return typeName(name), null
	}
	t, null := s.types()
	switch t {
	case "string":
		return "string", null
	case "boolean":
		return "bool", null
	case "number":
		return "float64", null
	case "integer":
		if strings.HasSuffix(s.Format, "int64") {
			return "int64", null
		}
		return "int", null
	case "array":
		of, _ := g.goType(s.Items)
		return "[]" + of, null
	case "object":
		if of := additional(s); of != nil {
			value, _ := g.goType(of)
			return "map[string]" + value, null
		}
		return "map[string]json.RawMessage", null
	}
	return "json.RawMessage", null
}
