package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Opt is a value that may be absent. For many options "not given" and "given as zero" are different: an absent MaxTurns
// sends no limit, Some(0) sends a limit of 0. The zero Opt is absent. In JSON and YAML absent is null.
type Opt[T any] struct {
	value T
	given bool
}

// Some returns v as a given value, even if v is zero.
func Some[T any](v T) Opt[T] { return Opt[T]{value: v, given: true} }

// Value returns the value and whether it was given.
func (o Opt[T]) Value() (T, bool) { return o.value, o.given }

// Or returns the value if it was given, and def otherwise.
func (o Opt[T]) Or(def T) T {
	if o.given {
		return o.value
	}
	return def
}

// IsZero reports whether the value is absent. The omitzero tag of encoding/json uses it.
func (o Opt[T]) IsZero() bool { return !o.given }

// String returns the value as text, or "absent".
func (o Opt[T]) String() string {
	if !o.given {
		return "absent"
	}
	return fmt.Sprint(o.value)
}

// MarshalJSON encodes absent as null.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.given {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON decodes null as absent.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*o = Opt[T]{}
		return nil
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*o = Some(v)
	return nil
}

// MarshalYAML encodes absent as null.
func (o Opt[T]) MarshalYAML() (any, error) {
	if !o.given {
		return nil, nil
	}
	return o.value, nil
}

// UnmarshalYAML decodes null as absent.
func (o *Opt[T]) UnmarshalYAML(unmarshal func(any) error) error {
	var probe any
	if err := unmarshal(&probe); err != nil {
		return err
	}
	if probe == nil {
		*o = Opt[T]{}
		return nil
	}
	var v T
	if err := unmarshal(&v); err != nil {
		return err
	}
	*o = Some(v)
	return nil
}

// Set is a choice among the tools, skills or setting sources of the agent. The zero value lets the agent choose. That
// is not the same as None: without a choice most agents load everything.
//
// In JSON and YAML, null or a missing key is the zero value, [] is None, "all" or an object of type preset is All, and
// ["a","b"] is Only.
type Set struct {
	kind  setKind
	names []string
}

type setKind uint8

const (
	setDefault setKind = iota
	setNone
	setOnly
	setAll
)

// None returns the empty set, sent explicitly.
func None() Set { return Set{kind: setNone} }

// All returns the set of everything the agent has.
func All() Set { return Set{kind: setAll} }

// Only returns the set of the given names, in this order. Only() is the same as None().
func Only(names ...string) Set {
	if len(names) == 0 {
		return None()
	}
	return Set{kind: setOnly, names: slices.Clone(names)}
}

// IsDefault reports whether the agent chooses: the zero Set.
func (s Set) IsDefault() bool { return s.kind == setDefault }

// IsNone reports whether the set is explicitly empty.
func (s Set) IsNone() bool { return s.kind == setNone }

// IsAll reports whether the set is everything.
func (s Set) IsAll() bool { return s.kind == setAll }

// IsZero is the same as IsDefault. The omitzero tag of encoding/json uses it.
func (s Set) IsZero() bool { return s.IsDefault() }

// Names returns a copy of the names that Only was given, in their order. It is nil for every other set.
func (s Set) Names() []string { return slices.Clone(s.names) }

// Has reports whether the set is known to contain name. It is false for the zero Set, because only the agent knows its
// default.
func (s Set) Has(name string) bool { return s.kind == setAll || slices.Contains(s.names, name) }

// String returns "default", "none", "all" or the names, joined by commas.
func (s Set) String() string {
	switch s.kind {
	case setNone:
		return "none"
	case setAll:
		return "all"
	case setOnly:
		return strings.Join(s.names, ",")
	default:
		return "default"
	}
}

// encoded is the set as plain data: nil, []string or "all".
func (s Set) encoded() any {
	switch s.kind {
	case setNone:
		return []string{}
	case setAll:
		return "all"
	case setOnly:
		return s.names
	default:
		return nil
	}
}

var errSetShape = errors.New(`session: a set is null, "all" or a list of names`)

// MarshalJSON encodes the set as null, [], "all" or a list of names.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.encoded()) }

// UnmarshalJSON decodes null, [], "all", a list of names, or an object of type preset.
func (s *Set) UnmarshalJSON(b []byte) error {
	return s.decode(func(v any) error { return json.Unmarshal(b, v) })
}

// MarshalYAML encodes the set as null, [], "all" or a list of names.
func (s Set) MarshalYAML() (any, error) { return s.encoded(), nil }

// UnmarshalYAML decodes the same forms as UnmarshalJSON.
func (s *Set) UnmarshalYAML(unmarshal func(any) error) error { return s.decode(unmarshal) }

func (s *Set) decode(into func(any) error) error {
	var v any
	if err := into(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		*s = Set{}
		return nil
	case string:
		if v == "all" {
			*s = All()
			return nil
		}
	case map[string]any: // {"type":"preset"}, as the vendors' SDKs write all
		if v["type"] == "preset" {
			*s = All()
			return nil
		}
	case []any:
		names := make([]string, len(v))
		for i, name := range v {
			text, ok := name.(string)
			if !ok {
				return errSetShape
			}
			names[i] = text
		}
		*s = Only(names...)
		return nil
	}
	return errSetShape
}
