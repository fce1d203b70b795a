package jsonshape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/protocol"
)

// Value is an object that fits its schema, such as the arguments of a call.
type Value struct {
	Given json.RawMessage // as the agent sent it; {} for nothing and null
	Plain json.RawMessage // without duplicate keys, whole numbers without a fraction
}

// Misfit says what is wrong with a value, in words for the model.
type Misfit struct{ Problems []string }

// Error joins the problems.
func (e *Misfit) Error() string { return strings.Join(e.Problems, "; ") }

// Check reads the arguments of a call. An error is a *[Misfit].
func (s *Schema) Check(raw json.RawMessage) (*Value, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	v, err := decodePlain(raw)
	if err != nil {
		return nil, &Misfit{[]string{err.Error()}}
	}
	if s.resolved.Validate(v) != nil {
		// The library's error depends on the order of a map and stops at the
		// first problem, so it is not the one to show.
		e := explainer{root: s.root, defsOnly: s.defsOnly, alone: map[*jsonschema.Schema]*jsonschema.Resolved{}}
		e.explain("", s.root, v)
		return nil, &Misfit{e.problems}
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, &Misfit{[]string{err.Error()}}
	}
	return &Value{Given: raw, Plain: plain}, nil
}

// decodePlain reads one JSON value; its numbers are int64, uint64 or float64,
// whichever holds them first, so that no whole number of 64 bits loses digits.
func decodePlain(raw json.RawMessage) (any, error) {
	if jsonscan.Valid(raw) {
		return plainValue(bytes.TrimSpace(raw), maxDepth)
	}
	var v any
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return nil, errors.New("more than one JSON value")
}

// plainValue reads a value of valid JSON, without white space around it.
func plainValue(valid []byte, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	switch valid[0] {
	case '{':
		all := map[string]any{}
		c := jsonscan.Object(valid, 0)
		for key, value := range c.Members() {
			v, err := plainValue(c.Bytes(value), depth-1)
			if err != nil {
				return nil, err
			}
			all[jsonscan.Text(c.Bytes(key))] = v
		}
		return all, nil
	case '[':
		all := []any{}
		c := jsonscan.Array(valid, 0)
		for value := range c.Elements() {
			v, err := plainValue(c.Bytes(value), depth-1)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case '"':
		return jsonscan.Text(valid), nil
	case 't', 'f':
		return valid[0] == 't', nil
	case 'n':
		return nil, nil
	}
	return plainNumber(json.Number(valid))
}

func plainNumber(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, fmt.Errorf("number %s is out of range", shown.Head(string(n), maxShown))
	}
	if i := int64(f); float64(i) == f && -1<<53 <= i && i <= 1<<53 {
		return i, nil // 3.0 is a whole number to JSON Schema, but not to a Go int
	}
	return f, nil
}

const (
	maxDepth    = 100 // of arguments: the library's errors grow with the square
	maxProblems = 10  // told to the model at once
	maxShown    = 60  // bytes of a wrong value
	maxExpected = 200 // bytes of a schema
)

// explainer finds the places where a value does not fit its schema, always in
// the same order, and says what was expected there.
type explainer struct {
	root     *jsonschema.Schema
	defsOnly bool
	alone    map[*jsonschema.Schema]*jsonschema.Resolved // parts of root; nil for unusable ones
	problems []string
}

func (e *explainer) add(path, format string, args ...any) {
	path = cmp.Or(path, "the arguments")
	if len(e.problems) < maxProblems {
		e.problems = append(e.problems, path+": "+fmt.Sprintf(format, args...))
	}
}

// walk looks at a part of the value, which may fit.
func (e *explainer) walk(path string, s *jsonschema.Schema, v any) {
	if len(e.problems) < maxProblems && !e.fits(s, v) {
		e.explain(path, s, v)
	}
}

// explain descends to the deepest places it can name; the value does not fit.
func (e *explainer) explain(path string, s *jsonschema.Schema, v any) {
	s = e.target(s)
	before := len(e.problems)
	switch v := v.(type) {
	case map[string]any:
		e.object(path, s, v)
	case []any:
		for i := range v {
			if s.Items != nil {
				e.walk(fmt.Sprintf("%s[%d]", path, i), s.Items, v[i])
			}
		}
	}
	if len(e.problems) == before {
		e.add(path, "expected %s, got %s", expectation(s, v), shownJSON(v))
	}
}

func (e *explainer) object(path string, s *jsonschema.Schema, v map[string]any) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			if p := s.Properties[name]; p != nil {
				e.add(join(path, name), "missing, expected %s", expectation(e.target(p), nil))
			} else {
				e.add(join(path, name), "missing")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p := s.Properties[name]
		switch {
		case p != nil:
			e.walk(join(path, name), p, v[name])
		case s.AdditionalProperties == nil || len(s.PatternProperties) > 0:
		case isFalse(s.AdditionalProperties):
			e.add(join(path, name), "unknown field, %s", known(s))
		default:
			e.walk(join(path, name), s.AdditionalProperties, v[name])
		}
	}
}

// fits asks the library about a part of the root schema. It returns true if the part
// cannot be validated alone.
func (e *explainer) fits(s *jsonschema.Schema, v any) bool {
	if !e.defsOnly {
		return true
	}
	resolved, known := e.alone[s]
	if !known {
		part := &jsonschema.Schema{
			Schema: e.root.Schema, Defs: e.root.Defs, Definitions: e.root.Definitions,
			AllOf: []*jsonschema.Schema{s.CloneSchemas()},
		}
		resolved, _ = part.Resolve(nil)
		e.alone[s] = resolved
	}
	return resolved == nil || resolved.Validate(v) == nil
}

// target follows references to the definitions of the root.
func (e *explainer) target(s *jsonschema.Schema) *jsonschema.Schema {
	for range 16 { // references may form a ring
		to := e.root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if to == nil {
			to = e.root.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
		}
		if s.Ref == "" || to == nil {
			break
		}
		s = to
	}
	return s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// isFalse recognizes the schema that nothing fits.
func isFalse(s *jsonschema.Schema) bool {
	b, err := json.Marshal(s)
	return err == nil && string(b) == "false"
}

func known(s *jsonschema.Schema) string {
	if len(s.Properties) == 0 {
		return "there are none"
	}
	return "the fields are " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
}

// expectation describes in few words what a schema wants instead of v: its
// values, its type, or all of it.
func expectation(s *jsonschema.Schema, v any) string {
	if len(s.Enum) > 0 {
		values := make([]string, 0, len(s.Enum))
		for _, v := range s.Enum {
			values = append(values, shownJSON(v))
		}
		return shown.Head("one of "+strings.Join(values, ", "), maxExpected)
	}
	if _, object := v.(map[string]any); s.Type == "object" && !object {
		return s.Type
	}
	bare := *s
	bare.Title, bare.Description, bare.Comment, bare.Default, bare.Examples = "", "", "", nil, nil
	bare.Schema, bare.Defs, bare.Definitions = "", nil, nil
	b, err := json.Marshal(bare)
	types := jsonschema.Schema{Type: s.Type, Types: s.Types}
	if plain, _ := json.Marshal(types); err != nil || s.Type+strings.Join(s.Types, "") != "" && bytes.Equal(b, plain) {
		return cmp.Or(s.Type, strings.Join(s.Types, " or "))
	}
	return shown.Head("a value that fits "+string(b), maxExpected)
}

// shownJSON is a value as the model wrote it.
func shownJSON(v any) string {
	b, err := protocol.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return shown.Head(string(b), maxShown)
}
