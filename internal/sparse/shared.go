package sparse

import (
	"sync/atomic"
	"weak"
)

// Shared is a Struct whose value is made when somebody needs it, and is the same for all
// until the garbage collector takes it, when nobody has it any more. Nobody may change
// it. Shared is safe for concurrent use.
type Shared[T any] struct {
	kept Struct[T]
	last atomic.Pointer[weak.Pointer[T]] // never nil
}

// Share returns what has v as its first value.
func Share[T any](v *T) *Shared[T] {
	s := &Shared[T]{kept: *Of(v)}
	s.lend(v)
	return s
}

// Value returns the value.
func (s *Shared[T]) Value() *T {
	if v := s.last.Load().Value(); v != nil {
		return v
	}
	v := s.kept.Value()
	s.lend(v)
	return v
}

func (s *Shared[T]) lend(v *T) {
	w := weak.Make(v)
	s.last.Store(&w)
}
