package sparse

import (
	"fmt"
	"math"
	"reflect"
	"time"
)

// Struct is a copy of a T. What pointers, slices, maps and functions refer to is shared
// with the original. It is never changed, and so safe for concurrent use.
type Struct[T any] struct {
	at    []byte // of each field that is not zero, in order: how many zero ones are before it
	words []int64
	texts []string
	times []time.Time
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
		for ; zeros >= skip; zeros -= skip {
			s.at = append(s.at, skip)
		}
		s.at = append(s.at, byte(zeros))
		zeros = 0
		switch {
		case f.CanInt():
			s.words = append(s.words, f.Int())
		case f.Kind() == reflect.Bool:
		case f.Kind() == reflect.String:
			s.texts = append(s.texts, f.String())
		case f.Type() == reflect.TypeFor[time.Time]():
			s.times = append(s.times, f.Interface().(time.Time))
		default:
			s.rest = append(s.rest, f.Interface())
		}
	})
	return &Struct[T]{at: clip(s.at), words: clip(s.words), texts: clip(s.texts), times: clip(s.times), rest: clip(s.rest)}
}

// skip stands for that many zero fields, and none after them.
const skip = math.MaxUint8

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
		zeros = left.zeros()
		switch {
		case f.CanInt():
			f.SetInt(next(&left.words))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.String:
			f.SetString(next(&left.texts))
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(next(&left.times)))
		default:
			f.Set(reflect.ValueOf(next(&left.rest)))
		}
	})
	return v
}

// zeros is how many zero fields come before the next one that is not.
func (s *Struct[T]) zeros() (n int) {
	for len(s.at) > 0 {
		step := next(&s.at)
		n += int(step)
		if step != skip {
			return n
		}
	}
	return math.MaxInt
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
