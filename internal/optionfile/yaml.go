package optionfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxTokens bounds a YAML document: the parser takes time with the square of
	// the keys of an object (half a second for 5,000).
	maxTokens = 20_000
	// maxOpen is how deep the parser may recurse. The reader refuses more than
	// maxDepth, with the place, when the parser is done.
	maxOpen = 10 * maxDepth
)

// parseYAML reads a YAML document; nil if there is nothing in it, or only mistakes.
func (r *reader) parseYAML(raw string) *Node {
	var tokens token.Tokens
	run := longRun(raw)
	if run == 0 {
		tokens = lexer.Tokenize(raw)
	}
	if strings.IndexByte("[{-?", run) >= 0 || deep(tokens) {
		r.fail(nil, "", fmt.Sprintf("has brackets or dashes more than %d deep", maxOpen), "make it flatter")
		return nil
	}
	if run != 0 {
		r.fail(nil, "", fmt.Sprintf("has more than %d times %q in a row, which is too much for YAML", maxOpen, run), "write it as JSON")
		return nil
	}
	if most := cmp.Or(r.most, maxTokens); len(tokens) > most {
		r.fail(nil, "", fmt.Sprintf("has more than %d words, which is too much for YAML", most), "write it as JSON")
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // which are reported with everything else
	if err != nil {
		r.syntax(err)
		return nil
	}
	var root *Node
	for _, doc := range file.Docs {
		n := r.yaml(doc.Body, 0)
		if n == nil {
			continue
		}
		if root != nil {
			r.fail(n, "", "begins a second document", "give one document")
			break
		}
		root = n
	}
	return root
}

// longRun is a sign of which more than maxOpen are in a row; 0 for none. The lexer
// takes time with the square of some of them (minutes for 400 KiB of <), and each
// may be a token.
func longRun(raw string) byte {
	length := 0
	for i := 1; i < len(raw); i++ {
		if length++; raw[i] != raw[i-1] {
			length = 0
		}
		if c := rune(raw[i]); length >= maxOpen && c < unicode.MaxASCII && (unicode.IsPunct(c) || unicode.IsSymbol(c)) {
			return raw[i]
		}
	}
	return 0
}

// deep reports whether the brackets are nested, or the dashes and question marks
// of one line, deeper than the parser may recurse.
func deep(tokens token.Tokens) bool {
	open, marks, line := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Line != line {
				marks, line = 0, t.Position.Line
			}
			marks++
		}
		if max(open, marks) > maxOpen {
			return true
		}
	}
	return false
}

// syntax reports an error of the parser. Its Error method prints the document
// around the place, which takes time with the square of the tokens.
func (r *reader) syntax(err error) {
	m := Mistake{Problem: "is not YAML", Fix: "write YAML or JSON"}
	var at yaml.Error
	if errors.As(err, &at) {
		m.Problem = at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			m.Line, m.Column = t.Position.Line, t.Position.Column
		}
		if strings.Contains(m.Problem, "'\t'") {
			m.Fix = "indent with spaces, or write JSON"
		}
	}
	r.mistakes = append(r.mistakes, m)
}

// yaml converts a node of YAML; nil for nothing, and for what is reported.
func (r *reader) yaml(node ast.Node, depth int) *Node {
	if node == nil {
		return nil
	}
	n := placeOf(node)
	if depth > maxDepth {
		r.fail(n, "", fmt.Sprintf("is more than %d deep", maxDepth), "make it flatter")
		return nil
	}
	if !r.counted(n) {
		return nil
	}
	switch node := node.(type) {
	case *ast.NullNode:
	case *ast.AnchorNode:
		if r.anchors == nil {
			return r.notData(n, node)
		}
		v := r.yaml(node.Value, depth)
		r.anchors[anchorName(node.Name)] = node.Value // after it: a value cannot hold itself
		return v
	case *ast.AliasNode:
		if r.anchors == nil {
			return r.notData(n, node)
		}
		return r.alias(anchorName(node.Value), n, depth)
	case *ast.BoolNode:
		n.Kind, n.Text = Bool, fmt.Sprint(node.Value)
	case *ast.IntegerNode:
		n.Kind, n.Text = Number, number(node.GetToken(), node.Value)
	case *ast.FloatNode:
		n.Kind, n.Text = Number, number(node.GetToken(), node.Value)
	case *ast.StringNode:
		n.Kind, n.Text = Text, node.Value
		if t := node.GetToken(); t != nil && t.Type == token.StringType && json.Valid([]byte(node.Value)) {
			n.Kind = Number // 1e2, which the parser takes for a text
		}
	case *ast.LiteralNode:
		n.Kind, n.Text = Text, node.Value.Value
	case *ast.SequenceNode:
		n.Kind = List
		for _, item := range node.Values {
			if v := r.yaml(item, depth+1); v != nil {
				n.List = append(n.List, v)
			}
		}
	case *ast.MappingNode:
		n.Kind = Object
		for _, pair := range node.Values {
			r.yamlPair(n, pair, depth)
		}
		r.settleMerged(n)
	case *ast.MappingValueNode:
		n.Kind = Object
		r.yamlPair(n, node, depth)
		r.settleMerged(n)
	case *ast.CommentGroupNode:
		return nil
	default:
		return r.notData(n, node)
	}
	return n
}

// notData reports a value that a configuration cannot have.
func (r *reader) notData(n *Node, node ast.Node) *Node {
	what := strings.ToLower(node.Type().String())
	article := "a "
	if strings.ContainsAny(what[:1], "aeiou") {
		article = "an "
	}
	r.fail(n, "", "is "+article+what+", which a configuration cannot have",
		"write texts, numbers, booleans, lists and objects, without anchors, aliases, tags and merge keys")
	return nil
}

func (r *reader) yamlPair(n *Node, pair *ast.MappingValueNode, depth int) {
	key := placeOf(pair.Key)
	key.Kind = Text
	if _, ok := pair.Key.(*ast.MergeKeyNode); ok && r.anchors != nil {
		r.merge(n, pair.Value, depth)
		return
	}
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		key.Text = k.Value
	case *ast.MergeKeyNode, *ast.AliasNode, *ast.AnchorNode, *ast.TagNode, *ast.MappingKeyNode:
		r.fail(key, "", "is not a text, and a key has to be one", "write the keys themselves")
		return
	default: // 1: or true: as a key
		key.Text = pair.Key.GetToken().Value
	}
	if v := r.yaml(pair.Value, depth+1); v != nil {
		n.Pairs = append(n.Pairs, Pair{key, v})
	}
}

// placeOf is an empty node with the line and column of node.
func placeOf(node ast.Node) *Node {
	t := node.GetToken()
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		t = m.Values[0].Key.GetToken() // not the colon
	}
	if m, ok := node.(*ast.MappingValueNode); ok {
		t = m.Key.GetToken()
	}
	n := &Node{}
	if t != nil && t.Position != nil {
		n.line, n.column = t.Position.Line, t.Position.Column
	}
	return n
}

// number is a number as JSON writes it: with all its digits where YAML has it
// in the same way.
func number(t *token.Token, value any) string {
	if t != nil && json.Valid([]byte(t.Value)) {
		return t.Value
	}
	out, err := json.Marshal(value)
	if err != nil {
		return "0"
	}
	return string(out)
}
