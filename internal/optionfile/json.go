package optionfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/base/spell"
	"github.com/agent-troupe/troupe/internal/textfile"
)

// CheckJSON finds what a program that reads strict JSON, with the types of s, does not
// read or drops: syntax, keys that are twice in an object, values of another type or
// range, and keys that s does not have and whose name is close to one that it has.
// Mistakes are in the order of the document; those under unknown are keys that s does not
// know. The document may begin with a byte order mark, be UTF-16 with one, or be empty.
func (s *Schema) CheckJSON(raw []byte) (mistakes, unknown []Mistake) {
	r := &reader{schema: &s.root, elsewhere: "leave it out"}
	root := r.strictJSON(raw)
	if root == nil {
		return r.mistakes, nil
	}
	others := &reader{schema: &s.root}
	r.names(&s.root, root, "", others)
	r.check(&s.root, root, "")
	return r.sorted(), others.sorted()
}

// ReadJSON reads a document as [Schema.CheckJSON] does; nil when there is nothing in it, or
// it is not JSON.
func ReadJSON(raw []byte) *Node { return (&reader{}).strictJSON(raw) }

// Sort puts mistakes into the order of the document.
func Sort(mistakes []Mistake) {
	slices.SortStableFunc(mistakes, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Mistake is a mistake at n.
func (n *Node) Mistake(key, problem, fix string) Mistake {
	return Mistake{Line: n.line, Column: n.column, Key: key, Problem: problem, Fix: fix}
}

// strictJSON reads a document; nil when there is nothing in it, or a mistake.
func (r *reader) strictJSON(raw []byte) *Node {
	raw, ok := r.decode(raw)
	if !ok || len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if m := SyntaxOfJSON(raw); m != nil {
		r.mistakes = append(r.mistakes, *m)
		return nil
	}
	root, err := ParseJSON(raw)
	if err != nil {
		r.fail(nil, "", err.Error(), "")
		return nil
	}
	return root
}

// SyntaxOfJSON says where a document stops being JSON, or returns nil.
func SyntaxOfJSON(raw []byte) *Mistake {
	var doc json.RawMessage
	err := json.Unmarshal(raw, &doc)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return &Mistake{Problem: "is not JSON: " + err.Error()}
	}
	at := max(int(syntax.Offset)-1, 0) // of the byte that does not fit
	m := &Mistake{Problem: "is not JSON: " + syntax.Error(), Fix: "correct it"}
	if at >= len(raw)-1 && len(raw) > 0 && syntax.Error() == "unexpected end of JSON input" {
		at = len(raw)
		m.Problem, m.Fix = "is not JSON: the text ends too early", "close its brackets and quotes"
	} else if at < len(raw) {
		before := bytes.TrimRight(raw[:at], " \t\r\n")
		switch c := raw[at]; {
		case c == '/' || c == '#':
			m.Problem, m.Fix = "is a comment, which JSON does not have", "take it out"
		case (c == '}' || c == ']') && bytes.HasSuffix(before, []byte(",")):
			at = len(before) - 1
			m.Problem, m.Fix = fmt.Sprintf("is a comma before %q, which JSON does not allow", c), "take it out"
		case c == '\'':
			m.Problem, m.Fix = "is a single quote, and JSON has double quotes", `write "`
		}
	}
	m.Line, m.Column = textfile.Position(raw, at)
	return m
}

// names reports the keys of an object that are twice in it, and those that s does not
// have: close to one of its names as a mistake, and otherwise to others.
func (r *reader) names(s *schema, n *Node, at string, others *reader) {
	r.dropDuplicates(n, at)
	forms := r.alternatives(s)
	for i, item := range n.List {
		for _, form := range forms {
			if form.Items != nil {
				r.names(form.Items, item, fmt.Sprintf("%s[%d]", at, i), others)
			}
		}
	}
	for _, p := range n.Pairs {
		path := join(at, p.Key.Text)
		for _, form := range forms {
			prop := form.Properties[p.Key.Text]
			switch {
			case prop != nil:
				r.names(prop, p.Value, path, others)
			case form.AdditionalProperties != nil && form.AdditionalProperties.schema != nil:
				r.names(form.AdditionalProperties.schema, p.Value, path, others)
			case form.AdditionalProperties != nil || len(form.Properties) == 0:
				// check reports it, or any name will do
			case nearest(form, p.Key.Text) != "":
				r.fail(p.Key, path, "is not known", "did you mean "+nearest(form, p.Key.Text)+"?")
			default:
				others.fail(p.Key, path, "is not known", "")
			}
		}
	}
}

// nearest is the property of s that key is probably meant to be; "": none.
func nearest(s *schema, key string) string {
	best, least := "", 3
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if d := spell.Distance(plain(name), plain(key)); d < least && d < (len(name)+1)/2 {
			best, least = name, d
		}
	}
	return best
}
