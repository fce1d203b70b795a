package embedded

import (
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// said is the input of a call as frames and the history have it (observed on Claude Code
// 2.1.329): with the defaults of parameters that are not given, and what could not be parsed
// as an object that says so. The members that the model wrote keep their order.
func (t *talk) said(b *model.Block) json.RawMessage {
	if b.BadInput != "" {
		var list []any
		if protocol.Unmarshal([]byte(b.BadInput), &list) == nil {
			return b.Input // the API takes no list back
		}
		raw, _ := json.Marshal(map[string]any{"__unparsedToolInput": map[string]any{"raw": b.BadInput, "len": len(b.BadInput)}}) // of a text and a number
		return raw
	}
	i := slices.IndexFunc(t.box, func(own *tool) bool { return own.name == b.Name })
	in := agent.Object{}
	if i < 0 || protocol.Unmarshal(b.Input, &in) != nil || len(in) == 0 {
		return b.Input
	}
	return t.box[i].said(b.Input, in)
}

// taken reports whether frames and the history have the value of a parameter that the model put
// between quotes.
func (t *tool) taken(param string) bool {
	return t.name == "Bash" || t.name == "Read" && param == "offset" || t.name == "Edit" && param == "replace_all"
}

// said is an input as frames have it. One with something wrong stays as it is.
func (t *tool) said(raw json.RawMessage, in agent.Object) json.RawMessage {
	keys := keysOf(raw)
	var given map[string]json.RawMessage
	if protocol.Unmarshal(raw, &given) != nil || len(t.coerce(in, keys)) > 0 {
		return raw
	}
	changed := map[string]any{}
	for _, p := range t.params {
		v, there := given[p.name]
		switch {
		case !there && p.otherwise != "":
			keys, changed[p.name] = append(keys, p.name), json.RawMessage(p.otherwise)
		case there && t.taken(p.name) && p.kind != "string" && v[0] == '"':
			changed[p.name] = in[p.name]
		}
	}
	if next := str(in, "new_string"); t.name == "Edit" && strips(str(in, "file_path")) && trailing.MatchString(next) {
		changed["new_string"] = trailing.ReplaceAllString(next, "$1")
	}
	if len(changed) == 0 {
		return raw
	}
	out := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		name, _ := plainJSON(key) // a text
		value := given[key]
		if v, is := changed[key]; is {
			value, _ = plainJSON(v) // a text, a number or a truth
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}')
}
