package protocol

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Most structs of the protocol have texts and raw JSON in them. Such an object is decoded
// member by member after one scan. encoding/json reads each byte three times, and
// BenchmarkRequest in bench takes 2.4 times as long with it.

// place says where a field of a struct is, and what it takes.
type place struct {
	path []int // see [reflect.Value.FieldByIndex]
	kind placeKind
}

type placeKind int

const (
	other placeKind = iota // what encoding/json alone decodes
	text                   // a string
	raw                    // a json.RawMessage
	bound                  // encoding/json alone, with the struct around it
)

func placeOf(f reflect.StructField, above []int) *place {
	at := &place{path: append(slices.Clip(above), f.Index...)}
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	pointer := reflect.PointerTo(f.Type)
	switch {
	case slices.Contains(strings.Split(options, ","), "string"):
		at.kind = bound
	case f.Type == reflect.TypeFor[json.RawMessage]():
		at.kind = raw
	case f.Type.Kind() == reflect.String && f.Type != reflect.TypeFor[json.Number]() &&
		!pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) && !pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		at.kind = text
	}
	return at
}

// Bounds of what decode takes: with more it would gain nothing.
const (
	maxMembers = 16 // that have a field
	maxOthers  = 1  // of them, those that are neither texts nor raw
)

// decode decodes an object into the struct that v points to as [Unmarshal] does. It
// reports false for what it leaves to encoding/json, such as all errors; then v is
// unchanged, or has in some fields what encoding/json gives them, too.
func (s *shape) decode(data []byte, v any) bool {
	if s == nil || s.fields == nil {
		return false
	}
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() || to.Elem().Kind() != reflect.Struct {
		return false
	}
	var found [maxMembers]struct {
		place *place
		shape *shape
		value []byte
	}
	n, others, seen := 0, 0, seenFields{}
	c := jsonscan.StrictObject(data)
	for key, value := range c.Members() {
		f, known := s.fields[string(jsonscan.Unescaped(c.Bytes(key)))]
		if !known {
			continue
		}
		m := &found[min(n, maxMembers-1)]
		m.place, m.shape, m.value = f.place, f.shape, c.Bytes(value)
		isText := m.value[0] == '"' || m.value[0] == 'n'
		if m.place.kind == other {
			others++
		}
		if n++; n > maxMembers || others > maxOthers || seen.add(f.index) || m.place.kind == bound || m.place.kind == text && !isText {
			return false
		}
	}
	if !c.Whole() {
		return false
	}
	for i := range found[:n] {
		m := &found[i]
		field, err := to.Elem().FieldByIndexErr(m.place.path)
		if err != nil {
			return false // in a struct that is not there
		}
		switch m.place.kind {
		case raw:
			to := field.Addr().Interface().(*json.RawMessage)
			*to = append((*to)[:0], m.value...)
		case text:
			if m.value[0] == '"' {
				field.SetString(string(jsonscan.Unescaped(m.value)))
			}
		default:
			if json.Unmarshal(exact(m.value, m.shape), field.Addr().Interface()) != nil {
				return false
			}
		}
	}
	return true
}
