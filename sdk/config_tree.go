package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// configNode is a value of a configuration, whatever it was written in.
type configNode struct {
	kind         configKind
	text         string // of a text, a number (as JSON writes it) or a boolean
	list         []*configNode
	pairs        []configPair
	expanded     bool // the text is one that {"$env": …} made, and may stand for another kind
	line, column int
}

// shown is the text for an error. What a variable of the environment holds may
// be a secret.
func (n *configNode) shown() string {
	if n.expanded {
		return "another value"
	}
	return n.text
}

// under is the value of a key, or n itself if it has none.
func (n *configNode) under(key string) *configNode {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return n
}

type configPair struct {
	key   *configNode // a text
	value *configNode
}

type configKind int

const (
	configNull configKind = iota
	configBool
	configNumber
	configText
	configList
	configObject
)

func (k configKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a text", "a list", "an object"}[k]
}

// maxConfigDepth bounds how deep lists and objects may stand in each other.
const maxConfigDepth = 100

// parse reads JSON or YAML; nil if there is nothing to read, or only mistakes.
func (r *configReader) parse(raw []byte) *configNode {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(raw) {
		r.notText(raw)
		return nil
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if most := 10 * maxConfigDepth; depth(raw) > most { // the parser of YAML would take all of the stack
		r.fail(nil, "", fmt.Sprintf("has brackets or dashes more than %d deep", most), "make it flatter")
		return nil
	}
	if raw[0] == '{' && json.Valid(raw) { // YAML does not take all of JSON: tabs, surrogates
		d := &jsonTree{dec: json.NewDecoder(bytes.NewReader(raw)), raw: raw}
		d.dec.UseNumber()
		n, err := d.value()
		if err != nil {
			r.fail(nil, "", err.Error(), "")
			return nil
		}
		return n
	}
	file, err := parser.ParseBytes(raw, 0, parser.AllowDuplicateMapKey()) // which are reported with everything else
	if err != nil {
		r.syntax(err)
		return nil
	}
	var root *configNode
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

// notText reports the first byte that is no UTF-8.
func (r *configReader) notText(raw []byte) {
	at := &configNode{line: 1, column: 1}
	for len(raw) > 0 {
		c, size := utf8.DecodeRune(raw)
		if c == utf8.RuneError && size == 1 {
			break
		}
		if at.column++; c == '\n' {
			at.line, at.column = at.line+1, 1
		}
		raw = raw[size:]
	}
	r.fail(at, "", "is not UTF-8", "save the file as UTF-8")
}

// depth is how deep brackets stand in each other at most, or the lists and keys
// with which a line begins. Those in texts count as well, since only YAML knows
// which they are.
func depth(raw []byte) int {
	depth, most, dashes, begins := 0, 0, 0, true
	for _, c := range raw {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth = max(0, depth-1)
		case '-', '?':
			dashes++
		}
		switch c {
		case '\n', '\r':
			dashes, begins = 0, true
		case '-', '?', ' ', '\t':
		default:
			begins = false
		}
		if most = max(most, depth); begins {
			most = max(most, dashes)
		}
	}
	return most
}

func (r *configReader) syntax(err error) {
	e := &LoadError{File: r.file, Problem: err.Error(), Fix: "write YAML or JSON"}
	var at yaml.Error
	if errors.As(err, &at) {
		e.Problem = at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
		if strings.Contains(e.Problem, "'\t'") {
			e.Fix = "indent with spaces, or write JSON"
		}
	}
	r.errs = append(r.errs, e)
}

// jsonTree reads a valid JSON document.
type jsonTree struct {
	dec *json.Decoder
	raw []byte
	// line and column are those of offset, from 0.
	offset, line, column int
}

// place is where the next token stands.
func (d *jsonTree) place() (line, column int) {
	at := int(d.dec.InputOffset())
	for at < len(d.raw) && bytes.IndexByte([]byte(" \t\r\n,:"), d.raw[at]) >= 0 {
		at++
	}
	for ; d.offset < at; d.offset++ {
		switch c := d.raw[d.offset]; {
		case c == '\n':
			d.line, d.column = d.line+1, 0
		case c&0xC0 != 0x80: // the first byte of a character
			d.column++
		}
	}
	return d.line + 1, d.column + 1
}

func (d *jsonTree) value() (*configNode, error) {
	n := &configNode{}
	n.line, n.column = d.place()
	t, err := d.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
	case bool:
		n.kind, n.text = configBool, fmt.Sprint(t)
	case json.Number:
		n.kind, n.text = configNumber, t.String()
	case string:
		n.kind, n.text = configText, t
	case json.Delim:
		n.kind = configList
		if t == '{' {
			n.kind = configObject
		}
		for d.dec.More() {
			var p configPair
			if t == '{' {
				if p.key, err = d.value(); err != nil {
					return nil, err
				}
			}
			if p.value, err = d.value(); err != nil {
				return nil, err
			}
			if t == '{' {
				n.pairs = append(n.pairs, p)
			} else {
				n.list = append(n.list, p.value)
			}
		}
		_, err = d.dec.Token()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return n, nil
}

// yaml turns a node of YAML into one of ours; nil for nothing, and for what is
// reported.
func (r *configReader) yaml(node ast.Node, depth int) *configNode {
	if node == nil {
		return nil
	}
	n := configPlace(node)
	if depth > maxConfigDepth {
		r.fail(n, "", fmt.Sprintf("is more than %d deep", maxConfigDepth), "make it flatter")
		return nil
	}
	switch node := node.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		n.kind, n.text = configBool, fmt.Sprint(node.Value)
	case *ast.IntegerNode:
		n.kind, n.text = configNumber, yamlNumber(node.GetToken(), node.Value)
	case *ast.FloatNode:
		n.kind, n.text = configNumber, yamlNumber(node.GetToken(), node.Value)
	case *ast.StringNode:
		n.kind, n.text = configText, node.Value
		if t := node.GetToken(); t != nil && t.Type == token.StringType && json.Valid([]byte(node.Value)) {
			n.kind = configNumber // 1e2, which the parser takes for a text
		}
	case *ast.LiteralNode:
		n.kind, n.text = configText, node.Value.Value
	case *ast.SequenceNode:
		n.kind = configList
		for _, item := range node.Values {
			if v := r.yaml(item, depth+1); v != nil {
				n.list = append(n.list, v)
			}
		}
	case *ast.MappingNode:
		n.kind = configObject
		for _, pair := range node.Values {
			r.yamlPair(n, pair, depth)
		}
	case *ast.MappingValueNode:
		n.kind = configObject
		r.yamlPair(n, node, depth)
	case *ast.CommentGroupNode:
		return nil
	default:
		what := strings.ToLower(node.Type().String())
		article := "a "
		if strings.ContainsAny(what[:1], "aeiou") {
			article = "an "
		}
		r.fail(n, "", "is "+article+what+", which a configuration cannot have",
			"write texts, numbers, booleans, lists and objects, without anchors, aliases, tags and merge keys")
		return nil
	}
	return n
}

func (r *configReader) yamlPair(n *configNode, pair *ast.MappingValueNode, depth int) {
	key := configPlace(pair.Key)
	key.kind = configText
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		key.text = k.Value
	case *ast.MergeKeyNode, *ast.AliasNode, *ast.AnchorNode, *ast.TagNode, *ast.MappingKeyNode:
		r.fail(key, "", "a key is a text, and this is none", "write the keys themselves")
		return
	default: // 1: or true: as a key
		key.text = pair.Key.GetToken().Value
	}
	if v := r.yaml(pair.Value, depth+1); v != nil {
		n.pairs = append(n.pairs, configPair{key, v})
	}
}

// configPlace is an empty node where node stands.
func configPlace(node ast.Node) *configNode {
	t := node.GetToken()
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		t = m.Values[0].Key.GetToken() // not the colon
	}
	if m, ok := node.(*ast.MappingValueNode); ok {
		t = m.Key.GetToken()
	}
	n := &configNode{}
	if t != nil && t.Position != nil {
		n.line, n.column = t.Position.Line, t.Position.Column
	}
	return n
}

// yamlNumber is a number as JSON writes it: with all its digits where YAML has it
// in the same way.
func yamlNumber(t *token.Token, value any) string {
	if t != nil && json.Valid([]byte(t.Value)) {
		return t.Value
	}
	out, err := json.Marshal(value)
	if err != nil {
		return "0"
	}
	return string(out)
}

// json is the node as JSON.
func (n *configNode) json(b *bytes.Buffer) {
	switch n.kind {
	case configNull:
		b.WriteString("null")
	case configBool, configNumber:
		b.WriteString(n.text)
	case configText:
		b.Write(quoted(n.text))
	case configList:
		b.WriteByte('[')
		for i, v := range n.list {
			if i > 0 {
				b.WriteByte(',')
			}
			v.json(b)
		}
		b.WriteByte(']')
	case configObject:
		b.WriteByte('{')
		for i, p := range n.pairs {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoted(p.key.text))
			b.WriteByte(':')
			p.value.json(b)
		}
		b.WriteByte('}')
	}
}

// quoted is a text as JSON, without escaping <, > and &.
func quoted(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// envTemplate finds ${NAME} and ${NAME:-default}.
const envTemplate = `\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`

// expand replaces an object {"$env": "…"} by its text.
func (r *configReader) expand(n *configNode, at string) *configNode {
	if n.kind != configObject || len(n.pairs) != 1 || n.pairs[0].key.text != "$env" {
		return n
	}
	out := &configNode{kind: configText, expanded: true, line: n.line, column: n.column}
	value := n.pairs[0].value
	if value.kind != configText {
		r.fail(value, at, "$env is "+value.kind.String()+", and has to be a text", `write {"$env": "${NAME}"}`)
		return out
	}
	names := regexp.MustCompile(envTemplate)
	if !names.MatchString(value.text) {
		r.fail(value, at, "$env names no variable", `write {"$env": "${NAME}"}`)
		return out
	}
	out.text = names.ReplaceAllStringFunc(value.text, func(ref string) string {
		m := names.FindStringSubmatch(ref)
		if v, ok := r.lookup(m[1]); ok && (v != "" || m[2] == "") {
			return v
		}
		if m[2] == "" {
			r.fail(value, at, fmt.Sprintf("needs the environment variable %s, which is not set", m[1]),
				fmt.Sprintf("set it, or give a default: ${%s:-…}", m[1]))
		}
		return m[3]
	})
	return out
}
