package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// tool is one of the agent's own tools.
type tool struct {
	name, about string
	params      []param
	// beside reports whether the call can run beside others: one that only reads. nil: yes.
	beside func(h *hands, in agent.Object) bool
	// path is the parameter that names a file, which the gate looks at; "": none does.
	path string
	// check looks whether the call can work at all, as a task. nil if there is nothing to check.
	check func(h *hands, in agent.Object) string
	// run does the work, as a task.
	run func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult
	// look is check on the strand, for what the engine knows; act is run on it, for a tool
	// that does more than one piece of work. nil: check and run are used.
	look func(l *agent.Lane, in agent.Object) string
	act  func(t *talk, l *agent.Lane, s *agent.Strand, id string, in agent.Object) (agent.ToolResult, error)
	old  string // a name that the tool had
	free bool   // it runs without a question
}

// param is a parameter of a tool. kind is a type of JSON schema.
type param struct {
	name, kind, about string
	required          bool
	alias             string // another name that models use
}

// toolbox are the tools, in the order in which the model sees them.
// background says whether commands can run in the background.
func toolbox(background bool) []*tool {
	return []*tool{bash(background), edit(), read(), taskStop(), write()}
}

// toolNames are the names of the tools.
func toolNames() []string {
	var names []string
	for _, t := range toolbox(true) {
		names = append(names, t.name)
	}
	return names
}

// schema is the JSON schema of the tool's input.
func (t *tool) schema() json.RawMessage {
	type property struct {
		Type  string `json:"type"`
		About string `json:"description,omitempty"`
	}
	b := []byte(`{"type":"object","properties":{`)
	required := []string{}
	for i, p := range t.params {
		if i > 0 {
			b = append(b, ',')
		}
		one, _ := json.Marshal(property{p.kind, p.about}) // strings
		b = append(append(strconv.AppendQuote(b, p.name), ':'), one...)
		if p.required {
			required = append(required, p.name)
		}
	}
	list, _ := json.Marshal(required) // strings
	b = append(append(b, `},"required":`...), list...)
	return append(b, `,"additionalProperties":false}`...)
}

// toolList is the encoded list of tools: those of the agent, and of the host's MCP servers.
// It is encoded again only when it has changed.
func (t *talk) toolList(l *agent.Lane) []byte {
	names := l.Tools()
	if t.tools != nil && slices.Equal(names, t.named) {
		return t.tools
	}
	var list []model.Tool
	for _, own := range t.box {
		if slices.Contains(names, own.name) {
			list = append(list, model.Tool{Name: own.name, Description: own.about, Schema: own.schema()})
		}
	}
	for _, s := range l.MCPTools() {
		var in struct {
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"inputSchema"`
		}
		_ = protocol.Unmarshal(s.Tool, &in) // the engine has read it
		list = append(list, model.Tool{Name: l.MCPToolName(s.Server, s.Name), Description: in.Description, Schema: in.Schema})
	}
	t.named, t.tools = names, t.shared.tools(t.cfg.Model.Codec().Tools(list))
	return t.tools
}

// useTools runs the calls of an answer. The engine says their results, in the order in which
// they come.
func (t *talk) useTools(turn *agent.Turn, uses []*model.Block) error {
	var calls []agent.ToolCall
	t.compile(turn.Permissions())
	for i, b := range uses {
		if slices.ContainsFunc(uses[:i], func(o *model.Block) bool { return o.ID == b.ID }) {
			continue // the second of an id is dropped, as observed
		}
		calls = append(calls, t.prepare(turn, b))
	}
	return turn.RunTools(calls...)
}

// prepare makes the engine's call of a block.
func (t *talk) prepare(turn *agent.Turn, b *model.Block) agent.ToolCall {
	c := agent.ToolCall{ID: b.ID, Name: b.Name}
	var in agent.Object
	if protocol.Unmarshal(b.Input, &in) != nil || in == nil {
		in = agent.Object{}
	}
	c.Input = in
	if server, name, mine := turn.MCPTool(b.Name); mine {
		c.Unknown = name == ""
		c.Alone = true
		c.Judge = t.judgeMCP(b.Name)
		c.Run = func(s *agent.Strand, in agent.Object) (agent.ToolResult, error) {
			return s.CallMCP(server, name, b.ID, in, 0)
		}
		return c
	}
	i := slices.IndexFunc(t.box, func(own *tool) bool { return own.name == b.Name || own.old == b.Name && own.old != "" })
	if i < 0 || !slices.Contains(turn.Tools(), t.box[i].name) {
		c.Unknown = true
		c.Judge = func(agent.Permissions, agent.Object) agent.Verdict { return agent.Verdict{} }
		return c
	}
	own := t.box[i]
	c.Name = own.name
	if b.BadInput != "" {
		in, c.Invalid = unparsed(own.name, b.BadInput)
	}
	if c.Invalid == "" {
		c.Invalid = own.coerce(in)
	}
	c.Input = in
	c.Judge = t.judge(own)
	c.Alone = own.beside != nil && !own.beside(t.hands, in)
	if own.look != nil {
		c.Check = func(*agent.Strand) (string, error) { return own.look(turn.Lane, in), nil }
	}
	if own.check != nil {
		c.Check = func(s *agent.Strand) (text string, err error) {
			err = s.Do(func(context.Context) error {
				text = own.check(t.hands, in)
				return nil
			})
			return text, err
		}
	}
	c.Run = func(s *agent.Strand, in agent.Object) (r agent.ToolResult, err error) {
		if own.act != nil {
			return own.act(t, turn.Lane, s, b.ID, in)
		}
		err = s.Do(func(ctx context.Context) error {
			r = own.run(ctx, t.hands, in)
			return nil
		})
		return r, err
	}
	return c
}

// unparsed is what the model reads if its input is not a JSON object. A list is an object
// with its indices for keys, as observed.
func unparsed(name, bad string) (agent.Object, string) {
	var list []any
	if protocol.Unmarshal([]byte(bad), &list) == nil {
		o := agent.Object{}
		for i, v := range list {
			o[strconv.Itoa(i)] = v
		}
		return o, ""
	}
	const most = 200
	return agent.Object{}, fmt.Sprintf("InputValidationError: %s was called with input that could not be parsed as JSON.\nYou sent (first %d of %d bytes): %s\nCommon causes: unescaped backslashes in file paths (use / or \\\\), unescaped control characters, or truncated output. Retry with valid JSON.",
		name, min(len(bad), most), len(bad), bad[:min(len(bad), most)])
}

// coerce takes the input as the parameters want it, where that is safe, and returns what is
// wrong with it in the words of Claude Code 2.1.329 (observed).
func (t *tool) coerce(in agent.Object) string {
	var missing, unexpected, wrong []string
	for _, p := range t.params {
		if v, ok := in[p.alias]; ok && p.alias != "" {
			if _, both := in[p.name]; !both {
				in[p.name] = v
			}
			delete(in, p.alias)
		}
		v, given := in[p.name]
		if !given {
			if p.required {
				missing = append(missing, "The required parameter `"+p.name+"` is missing")
			}
			continue
		}
		taken, ok := p.take(v)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("The parameter `%s` type is expected as `%s` but provided as `%s`", p.name, p.shown(v), kindOf(v)))
			continue
		}
		in[p.name] = taken
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.ContainsFunc(t.params, func(p param) bool { return p.name == name }) {
			unexpected = append(unexpected, "An unexpected parameter `"+name+"` was provided")
		}
	}
	all := slices.Concat(missing, unexpected, wrong)
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "InputValidationError: " + t.name + " failed due to the following issue:\n" + all[0]
	}
	return "InputValidationError: " + t.name + " failed due to the following issues:\n" + strings.Join(all, "\n")
}

// shown is the kind as errors call it.
func (p *param) shown(given any) string {
	if _, number := given.(float64); p.kind == "integer" && number {
		return "int"
	} else if p.kind == "integer" {
		return "number"
	}
	return p.kind
}

// take takes a value of the parameter's kind, and the text of one.
func (p *param) take(v any) (any, bool) {
	switch p.kind {
	case "string":
		s, ok := v.(string)
		return s, ok
	case "boolean":
		switch s := v.(type) {
		case bool:
			return s, true
		case string:
			return s == "true", s == "true" || s == "false"
		}
		return nil, false
	}
	n, ok := v.(float64)
	if s, isText := v.(string); isText {
		var err error
		n, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
		ok = err == nil
	}
	if p.kind == "integer" && n != math.Trunc(n) {
		return nil, false
	}
	return n, ok
}

// kindOf is the kind of a value, as errors call it.
func kindOf(v any) string {
	switch v.(type) {
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

// failure is a result that is an error.
func failure(format string, args ...any) agent.ToolResult {
	return agent.ToolResult{IsError: true, Content: fmt.Sprintf(format, args...)}
}
