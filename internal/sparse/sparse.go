package sparse

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// Struct is a copy of a T. What pointers, slices, maps and functions refer to is shared
// with the original. It is never changed, and so safe for concurrent use.
type Struct[T any] struct {
	data  []byte // of each field that is not zero, in order: how many zero ones are before it, and its number if it is one
	texts []string
	rest  []any
}

// Of returns a copy of *v.
func Of[T any](v *T) *Struct[T] {
	s, zeros := &Struct[T]{}, 0
	each(reflect.ValueOf(v).Elem(), func(f reflect.Value) {
		if f.IsZero() {
			zeros++
			return
		}
		s.data = binary.AppendUvarint(s.data, uint64(zeros))
		zeros = 0
		switch {
		case f.CanInt():
			s.data = binary.AppendVarint(s.data, f.Int())
		case f.CanUint():
			s.data = binary.AppendUvarint(s.data, f.Uint())
		case f.Kind() == reflect.Bool:
		case f.Kind() == reflect.String:
			s.texts = append(s.texts, f.String())
		default:
			s.rest = append(s.rest, f.Interface())
		}
	})
	return &Struct[T]{data: clip(s.data), texts: clip(s.texts), rest: clip(s.rest)}
}

// clip is a copy that takes no more memory than it needs.
func clip[E any](s []E) []E {
	if len(s) == 0 {
		return nil
	}
	return append(make([]E, 0, len(s)), s...)
}

// Value returns another copy.
func (s *Struct[T]) Value() *T {
	v, left := new(T), *s
	zeros := left.zeros()
	each(reflect.ValueOf(v).Elem(), func(f reflect.Value) {
		if zeros--; zeros >= 0 {
			return
		}
		defer func() { zeros = left.zeros() }()
		switch {
		case f.CanInt():
			n, size := binary.Varint(left.data)
			left.data = left.data[size:]
			f.SetInt(n)
		case f.CanUint():
			n, size := binary.Uvarint(left.data)
			left.data = left.data[size:]
			f.SetUint(n)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.String:
			f.SetString(next(&left.texts))
		default:
			f.Set(reflect.ValueOf(next(&left.rest)))
		}
	})
	return v
}

// zeros is how many zero fields come before the next one that is not.
func (s *Struct[T]) zeros() int {
	n, size := binary.Uvarint(s.data)
	s.data = s.data[size:]
	if size == 0 {
		return math.MaxInt
	}
	return int(n)
}

func next[E any](s *[]E) E {
	first := (*s)[0]
	*s = (*s)[1:]
	return first
}

// each calls do for the fields of a struct, and, in place of a field that is a struct with
// exported fields alone, for those of that one.
func each(v reflect.Value, do func(field reflect.Value)) {
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			panic(fmt.Sprintf("sparse: %v has the field %s, which nobody else can copy", v.Type(), v.Type().Field(i).Name))
		}
		if f := v.Field(i); open(f.Type()) {
			each(f, do)
		} else {
			do(f)
		}
	}
}

// open reports whether t is a struct with fields, all of them exported.
func open(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.NumField() == 0 {
		return false
	}
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return false
		}
	}
	return true
}
