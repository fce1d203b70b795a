package optionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/textfile"
)

const (
	// MaxSize is the most bytes of a file.
	MaxSize = 4 << 20
	// MaxMistakes is how many mistakes are reported one by one.
	MaxMistakes = 1000
	// maxDepth is how deep lists and objects may be nested.
	maxDepth = 100
)

// Mistake is what is wrong in a file, and where.
type Mistake struct {
	Line, Column int    // from 1; 0 when it is about the whole
	Key          string // path of the key, such as mcpServers.db.command; may be ""
	Problem      string // what is wrong
	Fix          string // what to do; may be ""
}

// Schema describes a file. It may be used by several goroutines.
type Schema struct{ root schema }

// ParseSchema reads a JSON schema. It knows the keywords that the schema of
// options uses, and passes over all others.
func ParseSchema(raw []byte) (*Schema, error) {
	s := &Schema{}
	if err := json.Unmarshal(raw, &s.root); err != nil {
		return nil, fmt.Errorf("read the schema of options: %w", err)
	}
	return s, nil
}

// Read reads a file that s describes, and returns it as JSON; nil if there is a
// mistake. Mistakes are in the order of the file. lookup finds the variables of
// the environment that values ask for.
func (s *Schema) Read(raw []byte, lookup func(name string) (string, bool)) ([]byte, []Mistake) {
	r := &reader{schema: &s.root, lookup: lookup, env: regexp.MustCompile(envTemplate)}
	doc := []byte("{}")
	if root := r.parse(raw); root != nil {
		if root = r.check(r.schema, r.expand(root, ""), ""); root != nil {
			r.rewrite(root)
			r.literal(root)
			doc = root.JSON()
		}
	}
	if len(r.mistakes) > 0 {
		return nil, r.sorted()
	}
	return doc, nil
}

// reader reads one file.
type reader struct {
	schema   *schema // of the whole file
	lookup   func(string) (string, bool)
	env      *regexp.Regexp
	mistakes []Mistake
	more     int // mistakes above MaxMistakes
	// elsewhere is what to do about a key that the schema does not have; "": that of options.
	elsewhere string
	hint      func(key string) string // about one at the top; nil: none
	// Of a list: the most tokens (0: maxTokens) and the nodes of its anchors (nil: anchors are not
	// allowed).
	most     int
	anchors  map[string]ast.Node
	aliasing bool // the value of an alias is read
	aliased  int  // values of aliases
	merged   []merged
}

// fail reports a problem at n, which may be nil.
func (r *reader) fail(n *Node, key, problem, fix string) {
	if r.full() {
		r.more++
		return
	}
	m := Mistake{Key: key, Problem: problem, Fix: fix}
	if n != nil {
		m.Line, m.Column = n.line, n.column
	}
	r.mistakes = append(r.mistakes, m)
}

// full reports whether further mistakes are only counted.
func (r *reader) full() bool { return len(r.mistakes) >= MaxMistakes }

func (r *reader) sorted() []Mistake {
	Sort(r.mistakes)
	if r.more > 0 {
		r.mistakes = append(r.mistakes, Mistake{Problem: shown.Count(r.more, "more mistake"), Fix: "fix those above first"})
	}
	return r.mistakes
}

// parse reads JSON or YAML; nil if there is nothing to read, or only mistakes.
func (r *reader) parse(raw []byte) *Node {
	if len(raw) > MaxSize {
		r.fail(nil, "", fmt.Sprintf("is longer than %d bytes", MaxSize), "move documents to files of their own")
		return nil
	}
	raw, ok := r.decode(raw)
	if !ok {
		return nil
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if raw[0] == '{' && json.Valid(raw) { // YAML does not take all of JSON: tabs, surrogates
		n, err := ParseJSON(raw)
		if err != nil {
			r.fail(nil, "", err.Error(), "")
		}
		return n
	}
	return r.parseYAML(string(raw))
}

// decode makes UTF-8 of the file.
func (r *reader) decode(raw []byte) ([]byte, bool) {
	text, err := textfile.Decode(raw)
	var wrong *textfile.Error
	if errors.As(err, &wrong) {
		r.fail(&Node{line: wrong.Line, column: wrong.Column}, "", wrong.Problem, wrong.Fix)
	}
	return text, err == nil
}

// envTemplate finds ${NAME} and ${NAME:-default}.
const envTemplate = `\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`

// expand replaces each object {"$env": "…"} by its text, and reports keys that
// an object has twice. at is the path of n.
func (r *reader) expand(n *Node, at string) *Node {
	if n.Kind == Object && len(n.Pairs) == 1 && n.Pairs[0].Key.Text == "$env" {
		return r.variable(n, n.Pairs[0].Value, at)
	}
	for i, item := range n.List {
		n.List[i] = r.expand(item, fmt.Sprintf("%s[%d]", at, i))
	}
	r.dropDuplicates(n, at)
	for i, p := range n.Pairs {
		n.Pairs[i].Value = r.expand(p.Value, join(at, p.Key.Text))
	}
	return n
}

func (r *reader) dropDuplicates(n *Node, at string) {
	seen := make(map[string]bool, len(n.Pairs))
	n.Pairs = slices.DeleteFunc(n.Pairs, func(p Pair) bool {
		twice := seen[p.Key.Text]
		if seen[p.Key.Text] = true; twice {
			r.fail(p.Key, join(at, p.Key.Text), "is a duplicate key", "leave one of them out")
		}
		return twice
	})
}

// variable is the text that the object n asks for.
func (r *reader) variable(n, value *Node, at string) *Node {
	out := &Node{Kind: Text, expanded: true, line: n.line, column: n.column}
	if value.Kind != Text {
		r.fail(value, at, "$env is "+value.Kind.String()+", and has to be a text", `write {"$env": "${NAME}"}`)
		return out
	}
	if !r.env.MatchString(value.Text) {
		r.fail(value, at, "$env names no variable", `write {"$env": "${NAME}"}`)
		return out
	}
	out.Text = r.env.ReplaceAllStringFunc(value.Text, func(ref string) string {
		m := r.env.FindStringSubmatch(ref)
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

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
