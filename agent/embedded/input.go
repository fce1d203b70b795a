package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
)

// param is a parameter of a tool.
type param struct {
	name string
	// kind is string, number, integer, boolean, strings (a list of them) or record.
	kind, about string
	required    bool
	aliases     []string // other names that models use
	more        string   // members of its JSON schema besides type and description, with a comma before
	schema      string   // of the whole parameter in place of type and more
	otherwise   string   // the value, as JSON, if it is not given; "": none
	hidden      bool     // the schema does not list it: the host sets it, or it is another name, or of no use
	// take replaces the rules of kind: it returns the value, or what is wrong with it.
	take func(v any, at []any) (any, []issue)
}

// issue is one thing that is wrong with an input, in the words of Claude Code 2.1.329
// (observed).
type issue struct {
	sort    issueSort
	line    string  // what the model reads
	members members // what tool_use_result has
}

// issueSort is where the model reads the issue.
type issueSort int

const (
	missing issueSort = iota
	unexpected
	mistyped
	other // is read as JSON, if there are only such
	told  // is read in place of all others
)

// MarshalJSON implements [json.Marshaler].
func (i issue) MarshalJSON() ([]byte, error) { return i.members.object() }

// where is a path as the model reads it.
func where(at []any) string {
	var b strings.Builder
	for i, step := range at {
		switch n, isIndex := step.(int); {
		case isIndex:
			fmt.Fprintf(&b, "[%d]", n)
		case i > 0:
			fmt.Fprintf(&b, ".%s", step)
		default:
			fmt.Fprint(&b, step)
		}
	}
	return b.String()
}

// wrongKind is a value that has another kind than expected. given is "undefined" for none.
func wrongKind(at []any, expected, given string) issue {
	i := issue{sort: mistyped, line: "The parameter `" + where(at) + "` type is expected as `" + expected + "` but provided as `" + given + "`"}
	if given == "undefined" {
		i = issue{sort: missing, line: "The required parameter `" + where(at) + "` is missing"}
	}
	i.members = []member{{"expected", expected}, {"code", "invalid_type"}, {"path", at}, {"message", "Invalid input: expected " + expected + ", received " + given}}
	if expected == "int" {
		i.members = slices.Insert(i.members, 1, member{"format", "safeint"})
	}
	return i
}

// notOneOf is a value that is not in a list.
func notOneOf(at []any, values ...string) issue {
	message := `Invalid option: expected one of "` + strings.Join(values, `"|"`) + `"`
	if len(values) == 1 {
		message = `Invalid input: expected "` + values[0] + `"`
	}
	return issue{other, "The parameter `" + where(at) + "` is invalid: " + message, []member{
		{"code", "invalid_value"}, {"values", values}, {"path", at}, {"message", message},
	}}
}

// unknownKeys are members that no parameter has.
func unknownKeys(names []string) []issue {
	if len(names) == 0 {
		return nil
	}
	message := `Unrecognized key: "` + names[0] + `"`
	if len(names) > 1 {
		message = `Unrecognized keys: "` + strings.Join(names, `", "`) + `"`
	}
	first := issue{unexpected, "", []member{{"code", "unrecognized_keys"}, {"keys", names}, {"path", []any{}}, {"message", message}}}
	var lines []string
	for _, n := range names {
		lines = append(lines, "An unexpected parameter `"+n+"` was provided")
	}
	first.line = strings.Join(lines, "\n")
	return []issue{first}
}

// faulty is what the model reads of an input with issues, and what tool_use_result says.
func faulty(tool string, issues []issue) (text, detail string) {
	list, _ := plainJSON(issues) // it has texts and numbers only
	var indented bytes.Buffer
	_ = json.Indent(&indented, list, "", "  ") // it is JSON
	detail = "InputValidationError: " + indented.String()
	var lines []string
	plain := false
	if i := slices.IndexFunc(issues, func(i issue) bool { return i.sort == told }); i >= 0 {
		return "InputValidationError: " + issues[i].line, detail
	}
	for sort := missing; sort <= other; sort++ {
		for _, i := range issues {
			if i.sort == sort {
				lines = append(lines, i.line)
				plain = plain || sort != other
			}
		}
	}
	if !plain {
		return detail, detail
	}
	all, word := strings.Join(lines, "\n"), "issues"
	if !strings.Contains(all, "\n") {
		word = "issue"
	}
	return "InputValidationError: " + tool + " failed due to the following " + word + ":\n" + all, detail
}

// coerce takes the input as the parameters want it, where that is safe, and returns what is
// wrong with it. keys are its members in their order.
func (t *tool) coerce(in agent.Object, keys []string) (issues []issue) {
	var unknown []string
	for i := range t.params {
		p := &t.params[i]
		at := []any{p.name}
		v, given := in[p.name]
		switch {
		case !given && p.required && p.take == nil:
			issues = append(issues, wrongKind(at, p.expects(), "undefined"))
		case given:
			taken, wrong := p.value(v, at)
			if issues = append(issues, wrong...); len(wrong) == 0 {
				in[p.name] = taken
			}
		case p.required:
			_, wrong := p.take(notGiven{}, at)
			issues = append(issues, wrong...)
		}
	}
	for _, name := range keys {
		if _, there := in[name]; there && !t.open && !slices.ContainsFunc(t.params, func(p param) bool { return p.name == name }) {
			unknown = append(unknown, name)
		}
	}
	return append(issues, unknownKeys(unknown)...)
}

// expects is the kind as errors call it.
func (p *param) expects() string {
	switch p.kind {
	case "integer":
		return "number"
	case "strings":
		return "array"
	}
	return p.kind
}

// numeral is a text that is taken for a number.
var numeral = regexp.MustCompile(`^\s*[+-]?\d+(\.\d+)?\s*$`)

// maxInteger is the largest integer that the protocol's numbers have.
const maxInteger = 1<<53 - 1

// value takes a value of the parameter's kind, and the text of one.
func (p *param) value(v any, at []any) (any, []issue) {
	if p.take != nil {
		return p.take(v, at)
	}
	given := v
	if list, isList := v.([]any); isList && p.kind == "integer" && len(list) == 1 {
		v = list[0] // as observed of Read
	}
	switch s, isText := v.(string); {
	case isText && (p.kind == "number" || p.kind == "integer") && numeral.MatchString(s):
		if n, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			v = n
		}
	case isText && p.kind == "boolean" && (s == "true" || s == "false"):
		v = s == "true"
	case isText && p.kind == "strings":
		var list []any
		if protocol.Unmarshal([]byte(s), &list) == nil && list != nil {
			v = list
		}
	}
	var ok bool
	switch p.kind {
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	case "record":
		_, ok = v.(map[string]any)
		if o, isObject := v.(agent.Object); isObject {
			v, ok = map[string]any(o), true
		}
	case "strings":
		var list []any
		if list, ok = v.([]any); ok {
			var wrong []issue
			for i, one := range list {
				if _, isText := one.(string); !isText {
					wrong = append(wrong, wrongKind(append(slices.Clone(at), i), "string", kindOf(one)))
				}
			}
			return v, wrong
		}
	default:
		var n float64
		if n, ok = v.(float64); ok && p.kind == "integer" && n != math.Trunc(n) {
			return nil, []issue{wrongKind(at, "int", "number")}
		} else if ok && p.kind == "integer" && n > maxInteger {
			return nil, []issue{{other, "The parameter `" + where(at) + "` is invalid: Too big: expected int to be <=9007199254740991", []member{
				{"code", "too_big"},
				{"maximum", maxInteger},
				{"note", "Integers must be within the safe integer range."},
				{"origin", "int"},
				{"inclusive", true},
				{"path", at},
				{"message", "Too big: expected int to be <=9007199254740991"},
			}}}
		}
	}
	if !ok {
		return nil, []issue{wrongKind(at, p.expects(), kindOf(given))}
	}
	return v, nil
}

// oneOf takes one of some texts.
func oneOf(values ...string) func(v any, at []any) (any, []issue) {
	return func(v any, at []any) (any, []issue) {
		if s, ok := v.(string); ok && slices.Contains(values, s) {
			return s, nil
		}
		return nil, []issue{notOneOf(at, values...)}
	}
}

// keysOf are the members of an object in the order in which JavaScript has them: indices
// first, then as they are written.
func keysOf(object json.RawMessage) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var indices []int
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return keys
		}
		key, _ := name.(string) // of an object
		if n, err := strconv.Atoi(key); seen[key] {
			// its place is that of the first
		} else if err == nil && n >= 0 && strconv.Itoa(n) == key {
			indices = append(indices, n)
		} else {
			keys = append(keys, key)
		}
		seen[key] = true
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
	}
	slices.Sort(indices)
	var all []string
	for _, n := range indices {
		all = append(all, strconv.Itoa(n))
	}
	return append(all, keys...)
}

// maxIndices is how many elements of a list are taken for members of an object.
const maxIndices = 1000

// unparsed reads an input that is not a JSON object. A list, and a text, is an object with its
// indices for keys, and a number or the like an empty one, as observed. If it is not JSON
// at all, the model reads text, and tool_use_result has detail.
func unparsed(name, bad string) (in json.RawMessage, text, detail string) {
	var v any
	if protocol.Unmarshal([]byte(bad), &v) == nil {
		n := 0
		switch v := v.(type) {
		case []any:
			n = len(v)
		case string:
			n = len(utf16.Encode([]rune(v)))
		}
		var b strings.Builder
		for i := range min(n, maxIndices) {
			fmt.Fprintf(&b, `,"%d":null`, i)
		}
		return json.RawMessage("{" + strings.TrimPrefix(b.String(), ",") + "}"), "", ""
	}
	const most = 200 // UTF-16 units, which the message calls bytes
	units := utf16.Encode([]rune(bad))
	shown := min(len(units), most)
	text = fmt.Sprintf("InputValidationError: %s was called with input that could not be parsed as JSON.\nYou sent (first %d of %d bytes): %s\nCommon causes: unescaped backslashes in file paths (use / or \\\\), unescaped control characters, or truncated output. Retry with valid JSON.",
		name, shown, len(units), string(utf16.Decode(units[:shown])))
	return json.RawMessage("{}"), text, fmt.Sprintf("InputValidationError: JSON parse failed (%d bytes)", len(units))
}

// notGiven is the value of a parameter that is not given.
type notGiven struct{}

// kindOf is the kind of a value, as errors call it.
func kindOf(v any) string {
	switch v.(type) {
	case notGiven:
		return "undefined"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case nil:
		return "null"
	}
	return "object"
}

func str(in agent.Object, name string) string { s, _ := in[name].(string); return s }

// number is a number of the input; none if it is not given.
func number(in agent.Object, name string) (n float64, given bool) {
	n, given = in[name].(float64)
	return n, given
}

// aliased gives parameters the names that they have. An alias counts if it has a text and
// the parameter is not given.
func (t *tool) aliased(in agent.Object) (used []string) {
	for _, p := range t.params {
		for _, alias := range p.aliases {
			v, isText := in[alias].(string)
			if _, both := in[p.name]; isText && !both {
				in[p.name] = v
				delete(in, alias)
				used = append(used, alias)
			}
		}
	}
	return used
}

// plainJSON is a value as JavaScript writes it.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}
