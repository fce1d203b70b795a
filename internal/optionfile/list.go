package optionfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

const (
	// listTokens bounds a list in YAML, whose objects are small.
	listTokens = 2_000_000
	// maxAliased is how many values the aliases of a document may add.
	maxAliased = 200_000
)

// ParseList reads a document of YAML or JSON, which is UTF-8, as values with their places.
// Unlike an options file it may have anchors, aliases and merge keys; their expansion is
// bounded. It returns nil for an empty document, or with a mistake.
func ParseList(text []byte) (*Node, []Mistake) {
	r := &reader{most: listTokens, anchors: map[string]ast.Node{}}
	if json.Valid(text) {
		root, err := ParseJSON(text)
		if err != nil {
			r.fail(nil, "", err.Error(), "")
		}
		return root, r.mistakes
	}
	root := r.parseYAML(string(text))
	if len(r.mistakes) > 0 {
		return nil, r.sorted()
	}
	return root, nil
}

// ParseLine reads the JSON value of a line.
func ParseLine(text []byte, line int) (*Node, *Mistake) {
	if m := SyntaxOfJSON(text); m != nil {
		m.Line = line
		return nil, m
	}
	d := &jsonReader{dec: json.NewDecoder(bytes.NewReader(text)), at: place{raw: text, line: line - 1}}
	d.dec.UseNumber()
	n, err := d.value()
	if err != nil {
		return nil, &Mistake{Line: line, Problem: err.Error()}
	}
	return n, nil
}

// NewText is a text at a place.
func NewText(text string, line, column int) *Node {
	return &Node{Kind: Text, Text: text, line: line, column: column}
}

// NewObject is an empty object at a place.
func NewObject(line, column int) *Node { return &Node{Kind: Object, line: line, column: column} }

// At puts a value and all in it at the place of another.
func (n *Node) At(other *Node) *Node {
	n.line, n.column = other.line, other.column
	for _, v := range n.List {
		v.At(other)
	}
	for _, p := range n.Pairs {
		p.Key.At(other)
		p.Value.At(other)
	}
	return n
}

// Get is the value of a key; nil: none.
func (n *Node) Get(key string) *Node {
	if v := n.under(key); v != n {
		return v
	}
	return nil
}

// Place is the line and the column of a value, from 1.
func (n *Node) Place() (line, column int) { return n.line, n.column }

// Check returns a value in the form of s; nil if there is a mistake. hint says what to do
// about a key at the top that s does not have; "": nothing is known.
func (s *Schema) Check(n *Node, hint func(key string) string) (*Node, []Mistake) {
	r := &reader{schema: &s.root, elsewhere: "leave it out", hint: hint}
	r.names(&s.root, n, "", &reader{schema: &s.root})
	out := r.check(&s.root, n, "")
	if len(r.mistakes) > 0 {
		return nil, r.sorted()
	}
	return out, nil
}

// Duplicates are the keys that are twice in an object.
func (n *Node) Duplicates() []Mistake {
	r := &reader{}
	r.dropDuplicates(n, "")
	return r.mistakes
}

// alias is the value that an alias stands for.
func (r *reader) alias(name string, at *Node, depth int) *Node {
	node := r.anchors[name]
	if node == nil {
		r.fail(at, "", "is the alias *"+name+", which has no anchor before it", "write the value")
		return nil
	}
	if depth > maxDepth {
		r.fail(at, "", fmt.Sprintf("is more than %d deep", maxDepth), "make it flatter")
		return nil
	}
	before := r.aliasing
	r.aliasing = true
	v := r.yaml(node, depth)
	r.aliasing = before
	return v
}

// counted reports whether one more value of an alias fits, or reports the mistake once.
func (r *reader) counted(n *Node) bool {
	if !r.aliasing {
		return true
	}
	if r.aliased++; r.aliased == maxAliased {
		r.fail(n, "", fmt.Sprintf("has aliases that stand for more than %d values", maxAliased), "write fewer")
	}
	return r.aliased < maxAliased
}

// merge adds what a merge key has to an object: its own keys count.
func (r *reader) merge(n *Node, value ast.Node, depth int) {
	from := r.yaml(value, depth+1)
	if from == nil {
		return
	}
	all := []*Node{from}
	if from.Kind == List {
		all = from.List
	}
	for _, o := range all {
		if o.Kind != Object {
			r.fail(o, "<<", "is "+o.Kind.String()+", and has to be an object", "")
			continue
		}
		for _, p := range o.Pairs {
			if n.Get(p.Key.Text) == nil {
				r.merged = append(r.merged, merged{n, p})
			}
		}
	}
}

// merged is a pair of a merge key, which is added when the object's own are known.
type merged struct {
	to   *Node
	pair Pair
}

// settleMerged adds the pairs of merge keys to n.
func (r *reader) settleMerged(n *Node) {
	kept := r.merged[:0]
	for _, m := range r.merged {
		if m.to != n {
			kept = append(kept, m)
		} else if n.Get(m.pair.Key.Text) == nil {
			n.Pairs = append(n.Pairs, m.pair)
		}
	}
	r.merged = kept
}

// anchorName is the name of an anchor or an alias.
func anchorName(node ast.Node) string {
	if node == nil || node.GetToken() == nil {
		return ""
	}
	return strings.TrimSpace(node.GetToken().Value)
}
