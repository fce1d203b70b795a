package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	syntax "text/template/parse"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/optionfile"
)

// rowTemplate makes a task from a row: its prompt by --template, and other keys by --set.
type rowTemplate struct {
	prompt *template.Template
	sets   []keyTemplate // in the order of the arguments
	used   map[string]bool
}

// keyTemplate sets a key of the task, such as workspace.from.
type keyTemplate struct {
	key  string
	text *template.Template // nil: the key is left alone, whatever column has its name
}

// newRowTemplate reads the values of --template and --set.
func newRowTemplate(prompt string, sets []string) (*rowTemplate, error) {
	if prompt == "" {
		return nil, &usageError{"--set is for --template", "give the prompt of every task with --template"}
	}
	r := &rowTemplate{used: map[string]bool{}}
	var err error
	if r.prompt, err = r.parse("--template", prompt); err != nil {
		return nil, err
	}
	for _, s := range sets {
		key, text, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("--set: %q is not KEY=TEMPLATE, such as workspace.from='{{.repo}}'", s)
		}
		if err := settable(key); err != nil {
			return nil, err
		}
		k := keyTemplate{key: key}
		if text != "" {
			if k.text, err = r.parse("--set "+key, text); err != nil {
				return nil, err
			}
		}
		r.sets = append(r.sets, k)
	}
	return r, nil
}

func (r *rowTemplate) parse(name, text string) (*template.Template, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "template: "))
	}
	fieldsOf(t.Root, r.used)
	return t, nil
}

// fieldsOf notes the fields of a row that a template reads.
func fieldsOf(n syntax.Node, used map[string]bool) {
	v := reflect.ValueOf(n)
	if n == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return
	}
	switch n := n.(type) {
	case *syntax.FieldNode:
		used[n.Ident[0]] = true
	case *syntax.VariableNode: // $.name
		if len(n.Ident) > 1 && n.Ident[0] == "$" {
			used[n.Ident[1]] = true
		}
	case *syntax.StringNode: // index . "name"
		used[n.Text] = true
	case *syntax.ChainNode:
		fieldsOf(n.Node, used)
	case *syntax.ListNode:
		for _, c := range n.Nodes {
			fieldsOf(c, used)
		}
	case *syntax.ActionNode:
		fieldsOf(n.Pipe, used)
	case *syntax.PipeNode:
		for _, c := range n.Cmds {
			for _, a := range c.Args {
				fieldsOf(a, used)
			}
		}
	case *syntax.IfNode:
		branch(&n.BranchNode, used)
	case *syntax.RangeNode:
		branch(&n.BranchNode, used)
	case *syntax.WithNode:
		branch(&n.BranchNode, used)
	}
}

func branch(n *syntax.BranchNode, used map[string]bool) {
	fieldsOf(n.Pipe, used)
	fieldsOf(n.List, used)
	fieldsOf(n.ElseList, used)
}

// taskKeys are the keys of a task in a file, and those within workspace, verify and budget.
func taskKeys() map[string]bool {
	keys := map[string]bool{}
	var walk func(t reflect.Type, at string)
	walk = func(t reflect.Type, at string) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			keys[at+name] = true
			for f.Type.Kind() == reflect.Pointer {
				f.Type = f.Type.Elem()
			}
			if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == t.PkgPath() {
				walk(f.Type, at+name+".")
			}
		}
	}
	walk(reflect.TypeFor[fleet.Task](), "")
	return keys
}

func settable(key string) error {
	keys := taskKeys()
	if keys[key] && key != "prompt" {
		return nil
	}
	delete(keys, "prompt")
	fix := "use a key such as workspace.from, tags, verify, budget or timeout"
	if near := nearest(key, slices.Sorted(maps.Keys(keys))); near != "" {
		fix = "did you mean " + near + "?"
	}
	return &usageError{fmt.Sprintf("--set: a task has no key %q", key), fix}
}

// fill makes the task of a row.
func (r *rowTemplate) fill(row *optionfile.Node) (*optionfile.Node, []optionfile.Mistake) {
	var wrong []optionfile.Mistake
	keys := taskKeys()
	for _, p := range row.Pairs {
		name := p.Key.Text
		if !keys[name] || name == "id" || r.used[name] || slices.ContainsFunc(r.sets, func(k keyTemplate) bool { return k.key == name || strings.HasPrefix(k.key, name+".") }) {
			continue
		}
		flag := fmt.Sprintf("--set %s='{{.%s}}'", name, name)
		if name == "workspace" {
			flag = "--set workspace.from='{{.workspace}}'"
		}
		fix := fmt.Sprintf("add %s to set it, or --set %s= to ignore the column", flag, name)
		if name == "prompt" {
			fix = "write {{.prompt}} in the template, or rename it"
		}
		wrong = append(wrong, p.Key.Mistake(name, "is named like a key of a task, and --template makes the prompt alone", fix))
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	fields := valueOf(row)
	line, column := row.Place()
	task := optionfile.NewObject(line, column)
	execute := func(t *template.Template) (string, bool) {
		var b strings.Builder
		if err := t.Execute(&b, fields); err != nil {
			wrong = append(wrong, row.Mistake("", strings.TrimPrefix(err.Error(), "template: "), "the row has "+strings.Join(names(row), ", ")))
			return "", false
		}
		return b.String(), true
	}
	if id := row.Get("id"); id != nil && id.Kind != optionfile.Null && id.Text != "" {
		put(task, "id", optionfile.NewText(id.Text, line, column))
	}
	if text, ok := execute(r.prompt); ok {
		put(task, "prompt", optionfile.NewText(text, line, column))
	}
	for _, k := range r.sets {
		if k.text == nil {
			continue
		}
		text, ok := execute(k.text)
		if !ok || text == "" {
			continue // an empty cell: the job's
		}
		key := k.key
		switch key { // the plain form of what is usually one value
		case "verify":
			key = "verify.command"
		case "budget":
			key = "budget.usd"
		}
		if strings.HasPrefix(text, "{") {
			key = k.key
		}
		value, m := cell(key, optionfile.NewText(text, line, column))
		if m != nil {
			wrong = append(wrong, *m)
			continue
		}
		put(task, key, value)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return task, nil
}

// put sets a key of a task, such as workspace.from.
func put(to *optionfile.Node, path string, value *optionfile.Node) {
	key, rest, within := strings.Cut(path, ".")
	line, column := value.Place()
	if within {
		inner := to.Get(key)
		if inner == nil {
			inner = optionfile.NewObject(line, column)
			to.Pairs = append(to.Pairs, optionfile.Pair{Key: optionfile.NewText(key, line, column), Value: inner})
		}
		put(inner, rest, value)
		return
	}
	to.Pairs = slices.DeleteFunc(to.Pairs, func(p optionfile.Pair) bool { return p.Key.Text == key })
	to.Pairs = append(to.Pairs, optionfile.Pair{Key: optionfile.NewText(key, line, column), Value: value})
}

func names(row *optionfile.Node) []string {
	var out []string
	for _, p := range row.Pairs {
		out = append(out, p.Key.Text)
	}
	return out
}

// Values of a row as templates see them: numbers as they are written, null as no text, and
// lists and objects as JSON where they are printed.
type (
	rowList   []any
	rowObject map[string]any
)

func (l rowList) String() string   { return asJSON([]any(l)) }
func (o rowObject) String() string { return asJSON(map[string]any(o)) }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func valueOf(n *optionfile.Node) any {
	switch n.Kind {
	case optionfile.Bool:
		return n.Text == "true"
	case optionfile.Number:
		return json.Number(n.Text)
	case optionfile.List:
		list := rowList{}
		for _, v := range n.List {
			list = append(list, valueOf(v))
		}
		return list
	case optionfile.Object:
		object := rowObject{}
		for _, p := range n.Pairs {
			object[p.Key.Text] = valueOf(p.Value)
		}
		return object
	}
	return n.Text // a text, and nothing for null
}
