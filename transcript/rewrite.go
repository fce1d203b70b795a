package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
)

// rewriter writes an object member by member.
type rewriter struct{ b []byte }

func (r *rewriter) member(key, value []byte) {
	if len(r.b) > 0 {
		r.b = append(r.b, ',')
	} else {
		r.b = append(r.b, '{')
	}
	r.b = append(append(append(r.b, '"'), key...), '"', ':')
	r.b = append(r.b, value...)
}

// end returns the object as a line.
func (r *rewriter) end() []byte {
	if len(r.b) == 0 {
		r.b = append(r.b, '{')
	}
	r.b = append(r.b, '}', '\n')
	return r.b
}

// mapMembers returns the object with the values that f returns; nil removes a member.
func mapMembers(object []byte, f func(key string, value []byte) []byte) []byte {
	out := []byte{'{'}
	m := membersOf(object)
	for m.next() {
		v := f(string(m.key), m.value)
		if v == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), m.key...), '"', ':')
		out = append(out, v...)
	}
	return append(out, '}')
}

// mapElements returns the array with the values that f returns.
func mapElements(array []byte, f func([]byte) []byte) []byte {
	out := []byte{'['}
	e := elementsOf(array)
	for e.next() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, f(e.value)...)
	}
	return append(out, ']')
}

// object writes a JSON object of strings: names and values in turn.
func object(members ...string) []byte {
	var r rewriter
	for pair := range slices.Chunk(members, 2) {
		r.member([]byte(pair[0]), quote(pair[1]))
	}
	return append(r.b, '}')
}

// quote writes a JSON string without the escapes that are for HTML.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
