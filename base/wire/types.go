package wire

import "reflect"

// Types has a value of each type that an interface stands for, by its name on the wire.
// The values are pointers, and are only read.
type Types[K comparable, T any] map[K]T

// TypesBy returns the types of all, whose names the values themselves know.
func TypesBy[T any, K comparable](name func(T) K, all ...T) Types[K, T] {
	t := make(Types[K, T], len(all))
	for _, v := range all {
		t[name(v)] = v
	}
	return t
}

// New returns a copy of the value under name, nil if no type has it.
func (t Types[K, T]) New(name K) (v T) {
	of, ok := t[name]
	if !ok {
		return v
	}
	from := reflect.ValueOf(of).Elem()
	to := reflect.New(from.Type())
	to.Elem().Set(from)
	v, _ = to.Interface().(T)
	return v
}
