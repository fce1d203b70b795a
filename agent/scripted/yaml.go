package scripted

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Error is an error of a script and its place.
type Error struct {
	File         string // path of the script's file; "" for [Parse]
	Line, Column int    // from 1; 0 if unknown
	Problem      string
}

// Error implements error.
func (e *Error) Error() string {
	where := "script"
	if e.File != "" {
		where = e.File
	}
	if e.Line > 0 {
		where += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	return where + ": " + e.Problem
}

// Load reads a script from a file.
func Load(path string) (*Script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load a script: %w", err)
	}
	s, err := Parse(b)
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.File = path
	}
	return s, err
}

// Parse reads a script from YAML. Unknown keys, wrong types and invalid steps are errors
// of type *[Error].
func Parse(b []byte) (*Script, error) {
	s := &Script{}
	if err := yaml.UnmarshalWithOptions(b, s, yaml.Strict()); err != nil {
		return nil, placed(err, nil)
	}
	return s, nil
}

// placed turns err into an *Error, at node when it says no place itself.
func placed(err error, node ast.Node) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return done
	}
	out := &Error{Problem: err.Error()}
	var at yaml.Error
	switch {
	case errors.As(err, &at):
		out.Problem = at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			out.Line, out.Column = t.Position.Line, t.Position.Column
		}
	case node != nil:
		return problem(node, "%v", err)
	}
	if i := strings.Index(out.Problem, " into Go "); i >= 0 { // the reader writes YAML, not Go
		if j := strings.LastIndex(out.Problem, " of type "); j > i {
			out.Problem = out.Problem[:i] + ", want " + out.Problem[j+len(" of type "):]
		}
	}
	return out
}

// problem is an error at a node.
func problem(node ast.Node, format string, a ...any) error {
	e := &Error{Problem: fmt.Sprintf(format, a...)}
	t := node.GetToken()
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		t = m.Values[0].Key.GetToken() // not the colon
	}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// decode reads node into v, which is a pointer to a struct, key by key, so that
// every error has a place.
func decode(node ast.Node, v any) error {
	pairs, ok := mapping(node)
	if !ok {
		if node.Type() == ast.NullType {
			return nil
		}
		return problem(node, "want a mapping, got %s", kindOf(node))
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		key := keyOf(pair)
		if seen[key] {
			return problem(pair.Key, "duplicate key %q", key)
		}
		seen[key] = true
		one := ast.Mapping(pair.Start, false, pair)
		if err := yaml.NodeToValue(one, v, yaml.Strict()); err != nil {
			return placed(err, pair.Value)
		}
	}
	return nil
}

func mapping(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func keyOf(pair *ast.MappingValueNode) string {
	if s, ok := pair.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return pair.Key.String()
}

func kindOf(node ast.Node) string { return strings.ToLower(node.Type().String()) }

// UnmarshalYAML reads a list of steps.
func (s *Steps) UnmarshalYAML(node ast.Node) error {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return problem(node, "want a list of steps, got %s", kindOf(node))
	}
	*s = Steps{}
	for _, item := range list.Values {
		step, err := decodeStep(item)
		if err != nil {
			return err
		}
		*s = append(*s, step)
	}
	return nil
}

// decodeStep reads a mapping with one key, the kind.
func decodeStep(node ast.Node) (Step, error) {
	pairs, ok := mapping(node)
	if !ok || len(pairs) != 1 {
		return nil, problem(node, "a step is a mapping with one key, its kind: one of %s", kinds())
	}
	key, value := keyOf(pairs[0]), pairs[0].Value
	kind, ok := stepKinds()[key]
	if !ok {
		return nil, problem(pairs[0].Key, "unknown step %q: want one of %s", key, kinds())
	}
	step, err := decodeAs(kind, value)
	if err != nil {
		return nil, placed(err, value)
	}
	if v, ok := step.(interface{ check() error }); ok {
		if err := v.check(); err != nil {
			return nil, placed(err, pairs[0].Key)
		}
	}
	return step, nil
}

func kinds() string { return strings.Join(slices.Sorted(maps.Keys(stepKinds())), ", ") }

// stepKinds are the kinds of steps by their keys in YAML, each with its zero value.
func stepKinds() map[string]Step {
	return map[string]Step{
		"text":         Text(""),
		"thinking":     Thinking(""),
		"raw":          Raw(""),
		"stderr":       Stderr(""),
		"delay":        Delay(0),
		"parallel":     Parallel(nil),
		"partial":      &Partial{},
		"tool_use":     &ToolUse{},
		"mcp_call":     &MCPCall{},
		"agent":        &SubAgent{},
		"shell":        &Shell{},
		"hook":         &Hook{},
		"request":      &Request{},
		"elicitation":  &Elicitation{},
		"dialog":       &Dialog{},
		"model_policy": &ModelPolicy{},
		"api_retry":    &APIRetry{},
		"system":       &System{},
		"message":      &Message{},
		"compact":      &Compact{},
		"answer":       &Answer{},
		"cancel":       &Cancel{},
		"result":       &Result{},
		"exit":         &Exit{},
		"flood":        &Flood{},
		"huge":         &Huge{},
		"spawn":        &Spawn{},
	}
}

// kindOfStep is the key of a step's kind.
func kindOfStep(s Step) string {
	t := reflect.TypeOf(s)
	for key, kind := range stepKinds() {
		if reflect.TypeOf(kind) == t {
			return key
		}
	}
	return t.String()
}

// decodeAs reads a step of a kind.
func decodeAs(kind Step, node ast.Node) (Step, error) {
	switch kind.(type) {
	case Delay:
		return decodeDelay(node)
	case Parallel:
		return decodeParallel(node)
	}
	t := reflect.TypeOf(kind)
	if t.Kind() == reflect.Pointer {
		v := reflect.New(t.Elem())
		return v.Interface().(Step), decode(node, v.Interface())
	}
	var v string
	if node.Type() == ast.MappingType || node.Type() == ast.SequenceType {
		return nil, problem(node, "want text, got %s", kindOf(node))
	}
	if err := yaml.NodeToValue(node, &v); err != nil {
		return nil, err
	}
	return reflect.ValueOf(v).Convert(t).Interface().(Step), nil
}

func decodeDelay(node ast.Node) (Step, error) {
	var d time.Duration
	err := yaml.NodeToValue(node, &d)
	return Delay(d), err
}

func decodeParallel(node ast.Node) (Step, error) {
	var steps Steps
	if err := steps.UnmarshalYAML(node); err != nil {
		return nil, err
	}
	for _, s := range steps {
		if _, ok := s.(caller); !ok {
			return nil, problem(node, "parallel takes tool_use, mcp_call, agent and shell steps only")
		}
	}
	return Parallel(steps), nil
}

// UnmarshalYAML reads a script.
func (s *Script) UnmarshalYAML(node ast.Node) error {
	type plain Script // without this method
	if err := decode(node, (*plain)(s)); err != nil {
		return err
	}
	return placed(s.check(), node)
}

// UnmarshalYAML reads a turn.
func (t *Turn) UnmarshalYAML(node ast.Node) error {
	type plain Turn
	if err := decode(node, (*plain)(t)); err != nil {
		return err
	}
	return placed(t.check(), node)
}

// UnmarshalYAML reads a misbehaviour.
func (m *Misbehaviour) UnmarshalYAML(node ast.Node) error {
	type plain Misbehaviour
	if err := decode(node, (*plain)(m)); err != nil {
		return err
	}
	return placed(m.check(), node)
}

// Size is a number of bytes: in YAML a number, or a number and KiB or MiB.
type Size int

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(node ast.Node) error {
	text, unit := strings.Trim(node.String(), `"' `), 1
	if rest, ok := strings.CutSuffix(text, "KiB"); ok {
		text, unit = strings.TrimSpace(rest), 1<<10
	} else if rest, ok := strings.CutSuffix(text, "MiB"); ok {
		text, unit = strings.TrimSpace(rest), 1<<20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return problem(node, "want a size such as 4096, 64KiB or 8MiB, got %s", node.String())
	}
	*s = Size(n * unit)
	return nil
}
