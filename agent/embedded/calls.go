package embedded

import (
	"encoding/json"
	"slices"

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
	var given map[string]json.RawMessage
	if i < 0 || protocol.Unmarshal(b.Input, &given) != nil || len(given) == 0 {
		return b.Input
	}
	for _, p := range t.box[i].params {
		if _, there := given[p.name]; p.required && !there {
			return b.Input
		}
	}
	input := b.Input
	for _, p := range t.box[i].params {
		if _, there := given[p.name]; there || p.otherwise == "" {
			continue
		}
		input = append(slices.Clone(input[:len(input)-1]), `,"`+p.name+`":`+p.otherwise+`}`...)
	}
	return input
}
