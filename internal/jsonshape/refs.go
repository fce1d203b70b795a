package jsonshape

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// checkRefs refuses schemas whose references leave them or form a ring. The
// schema library follows a ring until the stack overflows, which no program
// survives; and a schema may come from somewhere else, such as another server
// whose tools are passed on. This is for as long as the library does (github.com/google/jsonschema-go
// v0.4.3 and before): its state.validate would have to return an error for a schema that
// its stack has already for the same instance. It reports whether all references are to
// definitions, so that parts of the schema can stand alone beside them.
func checkRefs(raw json.RawMessage) (defsOnly bool, err error) {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return false, err
	}
	r := &refs{root: root, anchors: map[string]any{}, state: map[uintptr]visit{}, defsOnly: true}
	if err := r.collect(root, true); err != nil {
		return false, err
	}
	for _, s := range r.all {
		if r.ring(s) {
			return false, errors.New("its references form a cycle")
		}
	}
	return r.defsOnly, nil
}

type refs struct {
	root     any
	all      []map[string]any // every object that may be a schema
	anchors  map[string]any
	state    map[uintptr]visit
	defsOnly bool
}

type visit int

const (
	underway visit = iota + 1
	harmless
)

// collect finds the objects and anchors, and what cannot be followed.
func (r *refs) collect(v any, top bool) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := r.collect(e, false); err != nil {
				return err
			}
		}
	case map[string]any:
		r.all = append(r.all, v)
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v[key].(string); ok {
				r.anchors[name] = v
			}
		}
		for _, key := range []string{"$ref", "$dynamicRef"} {
			ref, ok := v[key].(string)
			if ok && !strings.HasPrefix(ref, "#") {
				return fmt.Errorf("%s %q refers outside of the schema", key, ref)
			}
			if ok && !strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/") {
				r.defsOnly = false
			}
		}
		if id, ok := v["$id"].(string); ok && !top {
			return fmt.Errorf("a nested $id (%q) is not supported", id)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "enum", "const", "default", "examples": // values, not schemas
			default:
				if err := r.collect(v[key], false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ring says whether checking a value against s leads back to s, with the same
// value.
func (r *refs) ring(v any) bool {
	s, ok := v.(map[string]any)
	if !ok {
		return false
	}
	at := reflect.ValueOf(s).Pointer()
	switch r.state[at] {
	case underway:
		return true
	case harmless:
		return false
	}
	r.state[at] = underway
	if slices.ContainsFunc(r.sameValue(s), r.ring) {
		return true
	}
	r.state[at] = harmless
	return false
}

// sameValue lists the schemas that s applies to the value it is given itself.
func (r *refs) sameValue(s map[string]any) []any {
	var all []any
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := s[key].(string); ok {
			all = append(all, r.target(ref))
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		all = append(all, list...)
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		all = append(all, s[key])
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		byName, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			all = append(all, byName[name])
		}
	}
	return all
}

// target follows a JSON pointer or an anchor; nil when there is nothing.
func (r *refs) target(ref string) any {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil
	}
	if fragment == "" {
		return r.root
	}
	path, pointer := strings.CutPrefix(fragment, "/")
	if !pointer {
		return r.anchors[fragment]
	}
	v := r.root
	for step := range strings.SplitSeq(path, "/") {
		switch at := v.(type) {
		case map[string]any:
			v = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}
