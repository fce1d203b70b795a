package transcript

import "github.com/agent-troupe/troupe/base/jsonscan"

// members walks the members of a valid object.
type members struct {
	c          jsonscan.Cursor
	key, value []byte
}

func membersOf(object []byte) members { return members{c: jsonscan.Object(object, 0)} }

func (m *members) next() bool {
	key, value, ok := m.c.Member()
	if ok {
		m.key, m.value = m.c.Bytes(key), m.c.Bytes(value)
		m.key = m.key[1 : len(m.key)-1]
	}
	return ok
}

// elements walks the elements of a valid array.
type elements struct {
	c     jsonscan.Cursor
	value []byte
}

func elementsOf(array []byte) elements { return elements{c: jsonscan.Array(array, 0)} }

func (e *elements) next() bool {
	value, ok := e.c.Element()
	e.value = e.c.Bytes(value)
	return ok
}

// walk walks the members of a valid object without knowing where the current value ends:
// it finds the end only when it continues. So a caller that has found what it wants
// never reads a long value.
type walk struct {
	b     []byte
	i     int // of the value, or of the object before the first call
	began bool
	key   []byte
}

func (w *walk) next() bool {
	i := w.i
	if !w.began {
		w.began = true
		i = jsonscan.Space(w.b, i) + 1 // the bracket
	} else if i = jsonscan.Value(w.b, i); i < 0 {
		return false
	} else if i = jsonscan.Space(w.b, i); i >= len(w.b) || w.b[i] != ',' {
		return false
	} else {
		i++
	}
	i = jsonscan.Space(w.b, i)
	if i >= len(w.b) || w.b[i] != '"' {
		return false
	}
	end := jsonscan.String(w.b, i)
	if end < 0 {
		return false
	}
	w.key = w.b[i+1 : end-1]
	i = jsonscan.Space(w.b, end)
	w.i = jsonscan.Space(w.b, i+1) // the colon
	return w.i < len(w.b)
}

// value returns the current value.
func (w *walk) value() []byte {
	end := jsonscan.Value(w.b, w.i)
	if end < 0 {
		return nil
	}
	return w.b[w.i:end:end]
}

// get returns the value of a member of a valid object, or nil. As in JavaScript, the
// last member of a name counts.
func get(object []byte, name string) []byte { return jsonscan.Get(object, name) }

// unquote decodes a JSON string; it is not ok for any other value.
func unquote(v []byte) (text string, ok bool) { return jsonscan.Text(v), isString(v) }

// text decodes a JSON string; "" for any other value.
func text(v []byte) string { return jsonscan.Text(v) }

func isTrue(v []byte) bool   { return len(v) == 4 && v[0] == 't' }
func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }
func isArray(v []byte) bool  { return len(v) > 0 && v[0] == '[' }
func isString(v []byte) bool { return len(v) > 1 && v[0] == '"' }
