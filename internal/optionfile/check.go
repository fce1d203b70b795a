package optionfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// check returns n in the form of s, or nil when it has reported why n does not
// fit. at is the path of n.
func (r *reader) check(s *schema, n *Node, at string) *Node {
	all := r.alternatives(s)
	fitting := slices.DeleteFunc(slices.Clone(all), func(s *schema) bool { return !s.takes(n) })
	if len(all) == 1 && len(all[0].Enum) > 0 && len(fitting) == 0 && n.Kind == Text {
		r.notAmong(all[0].Enum, n, at)
		return nil
	}
	if len(fitting) == 0 {
		r.mismatch(all, n, at)
		return nil
	}
	if fits := fitting[0]; n.Kind != Object || len(fitting) == 1 {
		return r.value(fits, n, at)
	}
	var kinds []any // of objects that tell what they are
	for _, s := range fitting {
		if slices.Contains(s.Properties["type"].Enum, any(n.under("type").Text)) {
			return r.value(s, n, at)
		}
		kinds = append(kinds, s.Properties["type"].Enum...)
	}
	r.fail(n.under("type"), join(at, "type"), "is not known", "use "+choice(kinds))
	return nil
}

// value returns n, which is of a kind that s takes, in the form of s.
func (r *reader) value(s *schema, n *Node, at string) *Node {
	out := *n
	switch {
	case n.Kind == Null:
	case n.Kind == List && s.Items != nil:
		out.List = nil
		for i, item := range n.List {
			v := r.item(s.Items, item, fmt.Sprintf("%s[%d]", at, i))
			if v != nil {
				out.List = append(out.List, split(v, r.alternatives(s.Items))...)
			}
		}
	case n.Kind == Object:
		return r.object(s, n, at)
	case slices.Contains(s.Type, "boolean"):
		b, _ := strconv.ParseBool(n.Text) // takes has done so
		out.Kind, out.Text = Bool, strconv.FormatBool(b)
	case slices.Contains(s.Type, "integer"):
		i, err := whole(n.Text)
		if err != nil {
			r.fail(n, at, "is "+n.shown()+", and has to be a whole number", "")
			return nil
		}
		if !r.within(s, n, float64(i), at) {
			return nil
		}
		out.Kind, out.Text = Number, strconv.FormatInt(i, 10)
	case slices.Contains(s.Type, "number"):
		f, err := strconv.ParseFloat(n.Text, 64)
		if err != nil {
			r.fail(n, at, "is "+n.shown()+", which is out of range", "give a smaller number")
			return nil
		}
		if !r.within(s, n, f, at) {
			return nil
		}
		out.Kind, out.Text = Number, strconv.FormatFloat(f, 'g', -1, 64)
	case n.Text == "" && s.MinLength > 0:
		r.fail(n, at, "is empty", "give it")
		return nil
	case s.Pattern != nil && !s.Pattern.MatchString(n.Text):
		r.fail(n, at, "is "+strconv.Quote(n.shown())+", and has to be "+s.Title, "")
		return nil
	}
	return &out
}

// within reports whether a number is in the range of s, or reports the mistake.
func (r *reader) within(s *schema, n *Node, f float64, at string) bool {
	var fix string
	switch {
	case s.Minimum != nil && f < *s.Minimum:
		fix = fmt.Sprintf("give %v or more", *s.Minimum)
	case s.ExclusiveMinimum != nil && f <= *s.ExclusiveMinimum:
		fix = fmt.Sprintf("give more than %v", *s.ExclusiveMinimum)
	case s.Maximum != nil && f > *s.Maximum:
		fix = fmt.Sprintf("give %v or less", *s.Maximum)
	default:
		return true
	}
	r.fail(n, at, "is "+n.shown()+", which is out of range", fix)
	return false
}

// split makes one object of each key where an item is a name or an object under
// its name, so that they keep their order.
func split(item *Node, all []*schema) []*Node {
	named := slices.ContainsFunc(all, func(s *schema) bool { return slices.Contains(s.Type, "string") })
	if item.Kind != Object || !named || len(item.Pairs) < 2 {
		return []*Node{item}
	}
	var each []*Node
	for _, p := range item.Pairs {
		each = append(each, &Node{Kind: Object, Pairs: []Pair{p}})
	}
	return each
}

// notAmong reports a text that is not one of values.
func (r *reader) notAmong(values []any, n *Node, at string) {
	if n.Text == "sdk" && slices.Contains(values, any("stdio")) {
		r.fail(n, at, "is a server that runs in the host", "make it in Go, and give it in Options.SDKMCPServers")
		return
	}
	r.fail(n, at, "is not known", "use "+choice(values))
}

// item checks a value of a list or under a name of the user's. Unlike an option it
// cannot be left open.
func (r *reader) item(s *schema, n *Node, at string) *Node {
	if n.Kind == Null && !slices.ContainsFunc(r.alternatives(s), func(s *schema) bool { return s.takes(n) }) {
		r.fail(n, at, "is null", "leave it out")
		return nil
	}
	return r.check(s, n, at)
}

// whole reads a number without a fraction, however it is written: 3, 3.0 and 3e0.
func whole(text string) (int64, error) {
	i, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return i, nil
	}
	const exact = 1 << 53 // a float has no more digits
	if f, wrong := strconv.ParseFloat(text, 64); wrong == nil && f == math.Trunc(f) && math.Abs(f) < exact {
		return int64(f), nil
	}
	return 0, err
}

// object returns n in the form of s: without keys that are null, with each key
// under one name, and with what is under extra among the keys.
func (r *reader) object(s *schema, n *Node, at string) *Node {
	out := &Node{Kind: Object, line: n.line, column: n.column}
	given := map[string]string{} // keys as they are written, by name
	for _, p := range n.Pairs {
		key, path := p.Key.Text, join(at, p.Key.Text)
		name, prop := canonical(s, key, at), s.Properties[key]
		value := p.Value
		switch {
		case prop == nil && s.AdditionalProperties == nil:
		case prop == nil && s.AdditionalProperties.schema == nil:
			r.unknown(s, p.Key, at)
			continue
		case prop == nil:
			value = r.item(s.AdditionalProperties.schema, value, path)
		case given[name] != "":
			r.fail(p.Key, path, "says the same as "+given[name], "leave one of them out")
			continue
		case value.Kind == Null && slices.Contains(s.Required, key):
			continue // reported below
		case value.Kind == Null:
			r.check(prop, value, path)
			continue
		default:
			given[name] = key
			if value = r.property(s, name, key, value, path); key == "extra" && value != nil {
				for _, more := range value.Pairs {
					if s.Properties[more.Key.Text] != nil {
						r.fail(more.Key, join(path, more.Key.Text), "is a key of its own", "move it out of extra")
					}
				}
				out.Pairs = append(out.Pairs, value.Pairs...)
				continue
			}
		}
		if value != nil {
			out.Pairs = append(out.Pairs, Pair{&Node{Kind: Text, Text: name, line: p.Key.line, column: p.Key.column}, value})
		}
	}
	for _, name := range s.Required {
		if given[name] == "" {
			r.fail(n, join(at, name), "is missing", "give it")
		}
	}
	return out
}

// canonical is the name of a key that may be written in several ways.
func canonical(s *schema, key, at string) string {
	if name, ms := strings.CutSuffix(key, "Ms"); ms && s.Properties[name] != nil {
		return name
	}
	if at == "" && slices.Contains([]string{"pathToClaudeCodeExecutable", "pathToQoderCLIExecutable", "cliPath"}, key) {
		return "pathToExecutable"
	}
	return key
}

// property checks the value of a key. A value that may be in milliseconds is a
// duration, and becomes a number of nanoseconds.
func (r *reader) property(s *schema, name, key string, n *Node, at string) *Node {
	if name == key && s.Properties[name+"Ms"] == nil || name == "pathToExecutable" {
		return r.check(s.Properties[key], n, at)
	}
	d, err := time.ParseDuration(n.Text)
	if name != key {
		v := r.check(s.Properties[key], n, at)
		if v == nil {
			return nil
		}
		ms, _ := strconv.ParseFloat(v.Text, 64) // check has done so
		ns := ms * float64(time.Millisecond)
		if ns >= 1<<63 || ns < -1<<63 {
			r.fail(n, at, "is "+n.shown()+", which is out of range", "give a smaller number")
			return nil
		}
		d = time.Duration(ns)
	} else if n.Kind != Text || err != nil {
		r.fail(n, at, "is not a duration", "write 90s, 1m30s or 500ms")
		return nil
	}
	return &Node{Kind: Number, Text: strconv.FormatInt(int64(d), 10)}
}

// mismatch reports that n is of no kind that one of the schemas takes.
func (r *reader) mismatch(all []*schema, n *Node, at string) {
	want, fix := expectation(all), ""
	for _, s := range all {
		if len(s.Examples) > 0 {
			var b bytes.Buffer
			_ = json.Compact(&b, s.Examples[0]) // it was decoded from JSON
			fix = "write " + b.String()
		}
	}
	if fix == "" && strings.HasPrefix(want, Text.String()) && (n.Kind == Number || n.Kind == Bool) {
		fix = "put it in quotes"
	}
	r.fail(n, at, fmt.Sprintf("is %s, and has to be %s", n.Kind, want), fix)
}

// unknown reports a key that s does not have.
func (r *reader) unknown(s *schema, key *Node, at string) {
	path := join(at, key.Text)
	switch {
	case r.full():
		r.more++
		return
	case at == "" && r.hint != nil && r.hint(key.Text) != "":
		r.fail(key, path, "is not known", r.hint(key.Text))
		return
	case at == "" && r.elsewhere == "" && callback(key.Text):
		r.fail(key, path, "is not data", "set it in Go")
		return
	}
	fix := cmp.Or(r.elsewhere, "look for it in the documentation of sdk.Options")
	if best := nearest(s, key.Text); best != "" {
		fix = "did you mean " + best + "?"
	}
	r.fail(key, path, "is not known", fix)
}

// plain is a key without what its writers differ in: the vendors' SDKs for
// Python write max_turns, that for TypeScript maxTurns.
func plain(key string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' {
			return -1
		}
		return unicode.ToLower(c)
	}, key)
}

// callback reports whether key is an option of the vendors' SDKs, or of ours,
// that is a function or an object of a program.
func callback(key string) bool {
	return slices.Contains([]string{"abortController", "backend", "runtime", "spawner", "canUseTool", "hooks", "resolveModel",
		"onElicitation", "onUserDialog", "onAuthExpired", "onEvent", "stderr", "sessionStore", "spawnQoderCLIProcess",
		"spawnClaudeCodeProcess", "limits", "graces"}, key)
}
