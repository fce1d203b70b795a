package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Unmarshal is like [json.Unmarshal] with exact names, as JavaScript reads JSON: a key
// matches a field only if it is spelled exactly like the field's name, and if a key occurs
// twice, the whole last value counts. encoding/json would accept Tool_Name for tool_name
// and merge two objects of one key, and so return another value than the agent uses.
//
// This applies to all structs in v, also in slices, maps and pointers. A type with its own
// UnmarshalJSON decodes itself.
func Unmarshal(data []byte, v any) error {
	s := shapeOf(reflect.TypeOf(v))
	if s.decode(data, v) {
		return nil
	}
	return json.Unmarshal(exact(data, s), v)
}

// Decode is like [Unmarshal], for a tool's input and other JSON in a callback. It also
// returns an error if a struct of v has an exported field without a name in a json tag.
// Such a field would only match the Go spelling of its name: struct{ Command string }
// would be empty for {"command":"rm"}, and a gate would not see the command.
func Decode(data []byte, v any) error {
	if field := shapeOf(reflect.TypeOf(v)).unnamed(nil); field != "" {
		name := strings.ToLower(field[strings.LastIndexByte(field, '.')+1:])
		return fmt.Errorf("protocol: decode into %T: field %s has no name; give it one, as in `json:%q`", v, field, name)
	}
	return Unmarshal(data, v)
}

// exact returns data with other names in place of the keys that encoding/json would
// take for a field of the shape, and should not: those that differ in case, and all but
// the last of those that are the same. Without such keys, or if data is not JSON, it
// returns data itself.
func exact(data []byte, s *shape) []byte {
	if s == nil {
		return data
	}
	w := exactWalk{b: data}
	if w.value(jsonscan.Space(data, 0), s, 0) < 0 || w.changed == nil {
		return data
	}
	return w.changed
}

// exactWalk walks JSON together with the shape that it is decoded into.
type exactWalk struct {
	b       []byte
	changed []byte // a copy of b; nil while nothing is changed
}

// value walks the value at i and returns the index after it; negative without a value,
// or if it is nested deeper than encoding/json reads.
func (w *exactWalk) value(i int, s *shape, depth int) int {
	if s == nil || i >= len(w.b) {
		return jsonscan.Value(w.b, i)
	}
	isList := w.b[i] == '['
	if depth > maxDepth || !isList && w.b[i] != '{' || isList == (s.list == nil) || !isList && s.fields == nil && s.values == nil {
		return jsonscan.Value(w.b, i)
	}
	closing := byte('}')
	if isList {
		closing = ']'
	}
	from, seen := i, seenFields{}
	i = jsonscan.Space(w.b, i+1)
	if i < len(w.b) && w.b[i] == closing {
		return i + 1
	}
	for {
		inner := s.values
		switch {
		case isList:
			inner = s.list
		default:
			if i >= len(w.b) || w.b[i] != '"' {
				return -1
			}
			end := jsonscan.String(w.b, i)
			if end < 0 {
				return -1
			}
			if s.fields != nil {
				inner = w.key(s, jsonscan.Span{Lo: uint32(i), Hi: uint32(end)}, from, &seen)
			}
			if i = jsonscan.Space(w.b, end); i >= len(w.b) || w.b[i] != ':' {
				return -1
			}
			i = jsonscan.Space(w.b, i+1)
		}
		if i = w.value(i, inner, depth+1); i < 0 {
			return -1
		}
		if i = jsonscan.Space(w.b, i); i >= len(w.b) {
			return -1
		}
		switch w.b[i] {
		case closing:
			return i + 1
		case ',':
			i = jsonscan.Space(w.b, i+1)
		default:
			return -1
		}
	}
}

// seenFields are the fields that an object had so far.
type seenFields struct {
	few  [2]uint64
	more map[int]bool
}

// add reports whether the field is there already.
func (s *seenFields) add(i int) (twice bool) {
	if i < 64*len(s.few) {
		bit := uint64(1) << (i % 64)
		twice = s.few[i/64]&bit != 0
		s.few[i/64] |= bit
		return twice
	}
	if s.more == nil {
		s.more = make(map[int]bool)
	}
	twice, s.more[i] = s.more[i], true
	return twice
}

// key looks at a key of the object that begins at from, and returns the shape of
// its value.
func (w *exactWalk) key(s *shape, quoted jsonscan.Span, from int, seen *seenFields) *shape {
	name := jsonscan.Unescaped(quoted.Of(w.b))
	f, known := s.fields[string(name)]
	switch {
	case known:
		if seen.add(f.index) {
			w.blankBefore(from, quoted, name)
		}
		return f.shape
	case s.folds(name):
		w.blank(quoted)
	}
	return nil
}

// blank overwrites a key with one that no field has.
func (w *exactWalk) blank(quoted jsonscan.Span) {
	if w.changed == nil {
		w.changed = slices.Clone(w.b)
	}
	inside := w.changed[quoted.Lo+1 : quoted.Hi-1]
	for i := range inside {
		inside[i] = '?'
	}
}

// blankBefore blanks the keys of that name in the object that begins at from,
// before the one at last.
func (w *exactWalk) blankBefore(from int, last jsonscan.Span, name []byte) {
	c := jsonscan.Object(w.b, from)
	for key := range c.Members() {
		if key.Lo >= last.Lo {
			return
		}
		if string(jsonscan.Unescaped(key.Of(w.b))) == string(name) {
			w.blank(key)
		}
	}
}

// shape is what encoding/json does with the keys of JSON that it decodes into a
// type. nil: there is no struct in it.
type shape struct {
	fields map[string]field    // of a struct; else nil
	folded map[string]struct{} // their names in lower case
	values *shape              // of a map
	list   *shape              // of a slice or an array
	plain  string              // a field without a json name, or ""
}

type field struct {
	index int // among the fields of the shape
	shape *shape
	place *place
}

// shapes are the shapes by type.
var shapes sync.Map //nolint:gochecknoglobals // a memo: the shape of a type never changes

func shapeOf(t reflect.Type) *shape {
	if t == nil {
		return nil
	}
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	b := shaping{}
	s, _ := shapes.LoadOrStore(t, b.of(t))
	return s.(*shape)
}

// shaping makes shapes; it holds those of the types that are being looked at, as
// types can contain themselves.
type shaping map[reflect.Type]*shape

func (b shaping) of(t reflect.Type) *shape {
	if s, ok := b[t]; ok {
		return s
	}
	switch {
	case t.Implements(reflect.TypeFor[json.Unmarshaler]()), reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil
	case t.Kind() == reflect.Pointer:
		return b.of(t.Elem())
	}
	switch t.Kind() {
	case reflect.Struct:
		s := &shape{}
		b[t] = s
		b.fill(s, t)
		return s
	case reflect.Map, reflect.Slice, reflect.Array:
		s := &shape{}
		b[t] = s
		inner := b.of(t.Elem())
		if inner == nil {
			delete(b, t)
			return nil
		}
		if s.list = inner; t.Kind() == reflect.Map {
			s.list, s.values = nil, inner
		}
		return s
	}
	return nil
}

// candidate is a field that may have a name.
type candidate struct {
	depth  int
	tagged bool
	typ    reflect.Type
	place  *place
}

// fill finds the fields of a struct as encoding/json does: of one name, the least
// deeply embedded, and among those the one with a tag, and none if that leaves
// several.
func (b shaping) fill(s *shape, t reflect.Type) {
	all := map[string][]candidate{}
	var names []string
	b.candidates(t, nil, map[reflect.Type]bool{}, func(name string, c candidate) {
		if all[name] == nil {
			names = append(names, name)
		}
		all[name] = append(all[name], c)
	}, s)
	s.fields, s.folded = make(map[string]field), make(map[string]struct{})
	for _, name := range names {
		c, ok := dominant(all[name])
		if !ok {
			continue
		}
		s.fields[name] = field{index: len(s.fields), shape: b.of(c.typ), place: c.place}
		s.folded[strings.ToLower(name)] = struct{}{}
	}
}

func (b shaping) candidates(t reflect.Type, above []int, within map[reflect.Type]bool, found func(string, candidate), s *shape) {
	if within[t] {
		return
	}
	within[t] = true
	defer delete(within, t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		embedded := f.Anonymous && inner.Kind() == reflect.Struct
		switch {
		case tag == "-", !f.IsExported() && !embedded:
			continue
		case embedded && name == "":
			b.candidates(inner, append(slices.Clip(above), i), within, found, s)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
			if s.plain == "" {
				s.plain = t.String() + "." + name
			}
			found(name, candidate{len(above), false, f.Type, placeOf(f, above)})
		default:
			found(name, candidate{len(above), true, f.Type, placeOf(f, above)})
		}
	}
}

// dominant is the one candidate that encoding/json takes, if there is one.
func dominant(all []candidate) (candidate, bool) {
	best, count := candidate{}, 0
	for _, c := range all {
		switch better := count == 0 || c.depth < best.depth || c.depth == best.depth && c.tagged && !best.tagged; {
		case better:
			best, count = c, 1
		case c.depth == best.depth && c.tagged == best.tagged:
			count++
		}
	}
	return best, count == 1
}

// folds reports whether encoding/json would accept a key that is not a field's exact name.
func (s *shape) folds(name []byte) bool {
	var lower [64]byte
	for i, c := range name {
		switch {
		case c >= 0x80 || i == len(lower): // some characters outside ASCII fold to k and s
			for known := range s.fields {
				if strings.EqualFold(known, string(name)) {
					return true
				}
			}
			return false
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	_, ok := s.folded[string(lower[:len(name)])]
	return ok
}

// unnamed is a field without a json name, in the shape or in one below it, or "".
func (s *shape) unnamed(above []*shape) string {
	if s == nil || slices.Contains(above, s) {
		return ""
	}
	if s.plain != "" {
		return s.plain
	}
	above = append(above, s)
	names := make([]string, 0, len(s.fields))
	for name := range s.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if plain := s.fields[name].shape.unnamed(above); plain != "" {
			return plain
		}
	}
	if plain := s.values.unnamed(above); plain != "" {
		return plain
	}
	return s.list.unnamed(above)
}
