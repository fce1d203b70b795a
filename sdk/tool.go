package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/jsonshape"
	"github.com/agent-troupe/troupe/protocol"
)

// Tool is a tool of an in-process MCP server. Make one with [NewTool] or [RawTool];
// [NewMCPServer] rejects the zero Tool. A tool may belong to several servers, which then
// share its [MaxConcurrent].
type Tool struct{ def *toolDef }

type toolDef struct {
	name, description string
	schema            *jsonshape.Schema
	annotations       toolAnnotations
	meta              map[string]any
	timeout           time.Duration
	semaphore         *mcp.Semaphore // nil: no limit
	run               func(context.Context, *jsonshape.Value) (*ToolResult, error)
	problems          []problem
}

// problem is something that keeps a tool from being used.
type problem struct{ what, fix string }

// toolAnnotations go out only where they were given, in the order of their
// keys.
type toolAnnotations struct {
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Title       string `json:"title,omitempty"`
}

// NewTool makes a tool from a function. The agent calls it mcp__<server>__<name>.
// description tells the model when to use the tool, what it does and what it returns.
// [NewMCPServer] reports mistakes in a tool.
//
// The JSON schema of the arguments is derived from In, which must be a struct or a map
// with string keys. Tags describe a field:
//
//   - json: its name. With omitempty or omitzero the field is optional.
//   - jsonschema: its description.
//   - enum: its allowed values, as in `enum:"docs,tickets"`, for strings and numbers.
//     On a list or a map they are the allowed values of the elements.
//
// A pointer field also accepts null. The schema of []byte is a base64 string, that of a
// type with UnmarshalText a string, and that of a type with UnmarshalJSON any value. A
// type that contains itself has no schema; use [RawTool].
//
// h is called only with arguments that fit the schema. Otherwise the model reads which
// field is wrong and what was expected. Calls run concurrently; see [MaxConcurrent] and
// [MCPServer.Sequential]. h's context ends when the agent cancels the call, when the
// call exceeds its time limit, and when the session ends. An error of h, a panic, and a
// nil or empty result reach the model as a result that is marked as an error.
func NewTool[In any](name, description string, h func(context.Context, In) (*ToolResult, error), o ...ToolOption) Tool {
	schema, err := schemaOf(reflect.TypeFor[In]())
	def := newToolDef(name, description, schema, err, o)
	def.needs(h != nil)
	def.run = func(ctx context.Context, a *jsonshape.Value) (*ToolResult, error) {
		var in In
		if err := protocol.Unmarshal(a.Plain, &in); err != nil {
			return nil, misfit(err, a.Plain, func(b []byte) error { return protocol.Unmarshal(b, new(In)) })
		}
		return h(ctx, in)
	}
	return Tool{def}
}

// RawTool is like [NewTool] with your own JSON schema, which must have type object, in
// draft 2020-12 or draft-07. h gets the arguments as the agent sent them, if they fit the
// schema. If the agent sent no arguments, h gets {}.
func RawTool(name, description string, schema json.RawMessage, h func(context.Context, json.RawMessage) (*ToolResult, error), o ...ToolOption) Tool {
	parsed, err := jsonshape.Parse(schema)
	def := newToolDef(name, description, parsed, err, o)
	def.needs(h != nil)
	def.run = func(ctx context.Context, a *jsonshape.Value) (*ToolResult, error) { return h(ctx, a.Given) }
	return Tool{def}
}

func newToolDef(name, description string, schema *jsonshape.Schema, schemaErr error, options []ToolOption) *toolDef {
	def := &toolDef{name: name, description: description, schema: schema, meta: map[string]any{}}
	if name == "" {
		def.problem("the tool has no name", "name it")
	}
	if description == "" {
		def.problem("the tool has no description", "tell the model when to use it and what it returns")
	}
	if schemaErr != nil {
		def.problem("the schema of its arguments: "+schemaErr.Error(), "use a struct or a map that JSON can hold, or RawTool with a schema of your own")
	}
	for _, o := range options {
		o(def)
	}
	return def
}

func (d *toolDef) problem(what, fix string) { d.problems = append(d.problems, problem{what, fix}) }

func (d *toolDef) needs(handler bool) {
	if !handler {
		d.problem("the tool has no handler", "pass a function")
	}
}

// misfit says in the model's terms why a Go value could not be made of
// arguments that fit the schema: a number too large for its field, or text that
// its type refuses.
func misfit(err error, args json.RawMessage, decode func([]byte) error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
		return &jsonshape.Misfit{Problems: []string{fmt.Sprintf("%s: expected %v, got %s", t.Field, t.Type, t.Value)}}
	}
	// The type's own error does not name the field; the field alone fails, too.
	var fields map[string]json.RawMessage
	_ = protocol.Unmarshal(args, &fields) // an object, or the schema would not fit
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if alone, e := json.Marshal(map[string]json.RawMessage{name: fields[name]}); e == nil && decode(alone) != nil {
			return &jsonshape.Misfit{Problems: []string{name + ": " + err.Error()}}
		}
	}
	return &jsonshape.Misfit{Problems: []string{err.Error()}}
}

// listing is the tool as tools/list shows it.
func (d *toolDef) listing() (json.RawMessage, error) {
	l := struct { // in the order of the keys
		Meta        map[string]any   `json:"_meta,omitempty"`
		Annotations *toolAnnotations `json:"annotations,omitempty"`
		Description string           `json:"description"`
		InputSchema json.RawMessage  `json:"inputSchema"`
		Name        string           `json:"name"`
	}{Meta: d.meta, Description: d.description, InputSchema: d.schema.Listed, Name: d.name}
	if d.annotations != (toolAnnotations{}) {
		l.Annotations = &d.annotations
	}
	return protocol.Marshal(l)
}

// ToolOption is an option of [NewTool] and [RawTool].
type ToolOption func(*toolDef)

// ReadOnly says that the tool changes nothing. Agents may run read-only tools
// concurrently, also those of a [MCPServer.Sequential] server.
func ReadOnly() ToolOption { return func(d *toolDef) { d.annotations.ReadOnly = true } }

// Destructive says whether the tool may change or delete existing data, or only adds
// data. Without this option MCP assumes that the tool is destructive.
func Destructive(may bool) ToolOption {
	return func(d *toolDef) { d.annotations.Destructive = &may }
}

// Idempotent says that a repeated call of the tool with the same arguments has no
// further effect.
func Idempotent() ToolOption { return func(d *toolDef) { d.annotations.Idempotent = true } }

// OpenWorld says whether the tool uses external systems, such as the web. Without this
// option MCP assumes that it does.
func OpenWorld(open bool) ToolOption {
	return func(d *toolDef) { d.annotations.OpenWorld = &open }
}

// Title sets the name of the tool that people see.
func Title(title string) ToolOption { return func(d *toolDef) { d.annotations.Title = title } }

// MaxResultSizeChars raises the limit, in characters, above which the agent truncates
// the tool's results or moves them to a file.
func MaxResultSizeChars(n int) ToolOption {
	return func(d *toolDef) {
		if n <= 0 {
			d.problem(fmt.Sprintf("MaxResultSizeChars is %d", n), "give a positive number of characters")
		}
		d.meta["anthropic/maxResultSizeChars"] = n
	}
}

// AlwaysLoad keeps the tool in the model's context from the start. Otherwise the model
// may have to find it by tool search (observed on Claude Code 2.1.329).
func AlwaysLoad() ToolOption { return ToolMeta("anthropic/alwaysLoad", true) }

// ToolMeta sets a key of the tool's _meta object, for settings without their own option.
// value must marshal to JSON.
func ToolMeta(key string, value any) ToolOption {
	return func(d *toolDef) {
		if _, err := json.Marshal(value); err != nil {
			d.problem(fmt.Sprintf("_meta %q: %v", key, err), "give a value that JSON can hold")
			return
		}
		d.meta[key] = value
	}
}

// ToolTimeout limits one call of the tool, including the time that it waits for other
// calls. 0: 10 min; negative: no limit. The time starts again at each [Progress]. When it
// has passed, the call fails and the handler's context ends.
func ToolTimeout(d time.Duration) ToolOption { return func(def *toolDef) { def.timeout = d } }

// MaxConcurrent limits how many calls of the tool run at the same time, in all sessions
// that share the tool together. Further calls wait in the order of their arrival. On a
// [MCPServer.Sequential] server the option has no effect on tools that are not
// [ReadOnly], because these run one at a time. Without this option there is no limit.
func MaxConcurrent(n int) ToolOption {
	return func(d *toolDef) {
		if n < 1 {
			d.problem(fmt.Sprintf("MaxConcurrent is %d", n), "give a positive number, or leave the option out")
			return
		}
		d.semaphore = mcp.NewSemaphore(n)
	}
}
