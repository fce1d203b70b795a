package sdk

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-troupe/troupe/internal/jsonshape"
)

// schemaOf is the schema of a Go type.
func schemaOf(t reflect.Type) (*jsonshape.Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	root, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: ownForms(t)})
	if err != nil {
		return nil, err
	}
	if root.Type != "object" {
		return nil, fmt.Errorf("%v does not encode as a JSON object", t)
	}
	if root.Properties == nil && root.AdditionalProperties != nil && t.Kind() == reflect.Struct {
		root.Properties = map[string]*jsonschema.Schema{} // listed even when empty
	}
	if err := refine(t, root); err != nil {
		return nil, err
	}
	listed, err := json.Marshal(root) // properties keep the order of the fields
	if err != nil {
		return nil, err
	}
	return jsonshape.New(listed, root)
}

// ownForms finds the types below t that encoding/json does not read by their
// structure.
func ownForms(t reflect.Type) map[reflect.Type]*jsonschema.Schema {
	forms := map[reflect.Type]*jsonschema.Schema{}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t {
		case reflect.TypeFor[big.Int](): // it reads no quoted number
			forms[t] = &jsonschema.Schema{Type: "integer"}
			return
		case reflect.TypeFor[json.Number]():
			forms[t] = &jsonschema.Schema{Type: "number"}
			return
		}
		switch t.PkgPath() {
		case "time", "math/big", "log/slog":
			return // the schema library knows these
		}
		switch p := reflect.PointerTo(t); {
		case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
			forms[t] = &jsonschema.Schema{} // anything: the type itself decides
			return
		case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
			forms[t] = &jsonschema.Schema{Type: "string"}
			return
		}
		switch t.Kind() {
		case reflect.Slice:
			if t.Elem().Kind() == reflect.Uint8 {
				forms[t] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
				return
			}
			walk(t.Elem())
		case reflect.Pointer, reflect.Array, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			for field := range t.Fields() {
				walk(field.Type)
			}
		}
	}
	walk(t)
	return forms
}

// refine adds to a type's schema what the schema library leaves out: enums; and
// takes out null where only Go's nil slice would need it.
func refine(t reflect.Type, s *jsonschema.Schema) error {
	nullable := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if s.Items == nil {
			return nil
		}
		if !nullable && len(s.Types) > 0 {
			s.Type, s.Types = "array", nil
		}
		return refine(t.Elem(), s.Items)
	case reflect.Map:
		if s.AdditionalProperties != nil {
			return refine(t.Elem(), s.AdditionalProperties)
		}
	case reflect.Interface:
		if t.NumMethod() > 0 && s.Type == "" {
			return fmt.Errorf("%v is an interface with methods, and JSON cannot say what is in it", t)
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if err := refineField(f, s); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

func refineField(f reflect.StructField, s *jsonschema.Schema) error {
	name, settings, _ := strings.Cut(f.Tag.Get("json"), ",")
	if f.Anonymous {
		switch {
		case name != "" && name != "-":
			return errors.New("an embedded field with a JSON name is not supported; name the field in Go")
		case name == "" && f.Type.Kind() == reflect.Pointer && !f.IsExported():
			return errors.New("JSON cannot fill an embedded pointer to an unexported struct; embed the struct itself")
		}
		return nil // its fields come by themselves
	}
	name = cmp.Or(name, f.Name)
	p := s.Properties[name]
	if p == nil || !f.IsExported() {
		return nil
	}
	if slices.Contains(strings.Split(settings, ","), "string") {
		return errors.New(`the JSON option "string" is not supported; use a string`)
	}
	if err := refine(f.Type, p); err != nil {
		return err
	}
	if values, ok := f.Tag.Lookup("enum"); ok {
		return setEnum(f.Type, p, values)
	}
	return nil
}

// setEnum reads an enum tag. On a list or a map it is about the elements.
func setEnum(t reflect.Type, s *jsonschema.Schema, values string) error {
	switch {
	case t.Kind() == reflect.Pointer:
		if err := setEnum(t.Elem(), s, values); err != nil {
			return err
		}
		if slices.Contains(s.Types, "null") && s.Enum != nil {
			s.Enum = append(s.Enum, nil)
		}
		return nil
	case s.Items != nil:
		return setEnum(t.Elem(), s.Items, values)
	case t.Kind() == reflect.Map && s.AdditionalProperties != nil:
		return setEnum(t.Elem(), s.AdditionalProperties, values)
	}
	for value := range strings.SplitSeq(values, ",") {
		v, err := enumValue(t, strings.TrimSpace(value))
		if err != nil {
			return fmt.Errorf("enum value %q: %w", value, err)
		}
		s.Enum = append(s.Enum, v)
	}
	return nil
}

func enumValue(t reflect.Type, value string) (any, error) {
	switch k := t.Kind(); {
	case k == reflect.String:
		return value, nil
	case k >= reflect.Int && k <= reflect.Int64:
		return strconv.ParseInt(value, 10, t.Bits())
	case k >= reflect.Uint && k <= reflect.Uint64:
		return strconv.ParseUint(value, 10, t.Bits())
	case k == reflect.Float32 || k == reflect.Float64:
		f, err := strconv.ParseFloat(value, t.Bits())
		if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			err = errors.New("not a JSON number")
		}
		return f, err
	}
	return nil, fmt.Errorf("an enum of %v is not supported; use strings or numbers", t)
}
