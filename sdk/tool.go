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
	"github.com/agent-troupe/troupe/protocol"
)

// Tool is a tool of an in-process MCP server, made by [NewTool] or [RawTool].
// [NewMCPServer] refuses the zero Tool. A tool may belong to
// several servers; they share its [MaxConcurrent].
type Tool struct{ def *toolDef }

type toolDef struct {
	name, description string
	schema            *inputSchema
	annotations       toolAnnotations
	meta              map[string]any
	timeout           time.Duration
	semaphore         *mcp.Semaphore // nil: no limit
	run               func(context.Context, *arguments) (*ToolResult, error)
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

// NewTool makes a tool of a function. The agent knows it as
// mcp__<server>__<name>; description tells the model when to use it, what it
// does and what it returns. What is wrong with a tool is found by
// [NewMCPServer].
//
// In, a struct or a map with string keys, gives the JSON schema of the
// arguments. A field is described by its tags:
//
//   - json: its name; with omitempty or omitzero it is optional.
//   - jsonschema: its description.
//   - enum: the values it may have, as in `enum:"docs,tickets"`; on a list or a
//     map, those of the elements. For strings and numbers.
//
// A pointer also takes null. A []byte is a base64 string, a type that unmarshals
// text a string, and one that unmarshals JSON anything. Types that contain
// themselves have no schema; use [RawTool].
//
// h is called only with arguments that fit the schema; otherwise the model is
// told which field is wrong and what was expected. Calls run concurrently; see
// [MaxConcurrent] and [MCPServer.Sequential]. h's context ends when the agent
// cancels the call, the call passes its deadline, or the session ends. An error
// of h, a panic, and a nil or empty result reach the model as a result that is
// marked as an error.
func NewTool[In any](name, description string, h func(context.Context, In) (*ToolResult, error), o ...ToolOption) Tool {
	schema, err := schemaOf(reflect.TypeFor[In]())
	def := newToolDef(name, description, schema, err, o)
	def.needs(h != nil)
	def.run = func(ctx context.Context, a *arguments) (*ToolResult, error) {
		var in In
		if err := protocol.Unmarshal(a.plain, &in); err != nil {
			return nil, misfit(err, a.plain, func(b []byte) error { return protocol.Unmarshal(b, new(In)) })
		}
		return h(ctx, in)
	}
	return Tool{def}
}

// RawTool is [NewTool] with a schema of the caller's own, which must be of type
// object, in draft 2020-12 or draft-07. h gets the arguments as the agent sent
// them, once they fit the schema; {} when it sent none.
func RawTool(name, description string, schema json.RawMessage, h func(context.Context, json.RawMessage) (*ToolResult, error), o ...ToolOption) Tool {
	parsed, err := schemaFrom(schema)
	def := newToolDef(name, description, parsed, err, o)
	def.needs(h != nil)
	def.run = func(ctx context.Context, a *arguments) (*ToolResult, error) { return h(ctx, a.given) }
	return Tool{def}
}

func newToolDef(name, description string, schema *inputSchema, schemaErr error, options []ToolOption) *toolDef {
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
		return &badArguments{[]string{fmt.Sprintf("%s: expected %v, got %s", t.Field, t.Type, t.Value)}}
	}
	// The type's own error does not name the field; the field alone fails, too.
	var fields map[string]json.RawMessage
	_ = protocol.Unmarshal(args, &fields) // an object, or the schema would not fit
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if alone, e := json.Marshal(map[string]json.RawMessage{name: fields[name]}); e == nil && decode(alone) != nil {
			return &badArguments{[]string{name + ": " + err.Error()}}
		}
	}
	return &badArguments{[]string{err.Error()}}
}

// listing is the tool as tools/list shows it.
func (d *toolDef) listing() (json.RawMessage, error) {
	l := struct { // in the order of the keys
		Meta        map[string]any   `json:"_meta,omitempty"`
		Annotations *toolAnnotations `json:"annotations,omitempty"`
		Description string           `json:"description"`
		InputSchema json.RawMessage  `json:"inputSchema"`
		Name        string           `json:"name"`
	}{Meta: d.meta, Description: d.description, InputSchema: d.schema.listed, Name: d.name}
	if d.annotations != (toolAnnotations{}) {
		l.Annotations = &d.annotations
	}
	return protocol.Marshal(l)
}

// ToolOption changes a tool.
type ToolOption func(*toolDef)

// ReadOnly says that the tool changes nothing. Agents may run such tools
// concurrently, and [MCPServer.Sequential] does not hold them.
func ReadOnly() ToolOption { return func(d *toolDef) { d.annotations.ReadOnly = true } }

// Destructive says whether the tool may destroy what is there, rather than only
// add to it. Not given, MCP assumes that it may.
func Destructive(may bool) ToolOption {
	return func(d *toolDef) { d.annotations.Destructive = &may }
}

// Idempotent says that calling the tool again with the same arguments changes
// nothing more.
func Idempotent() ToolOption { return func(d *toolDef) { d.annotations.Idempotent = true } }

// OpenWorld says whether the tool deals with an open world, such as the web.
// Not given, MCP assumes that it does.
func OpenWorld(open bool) ToolOption {
	return func(d *toolDef) { d.annotations.OpenWorld = &open }
}

// Title is the tool's name for people.
func Title(title string) ToolOption { return func(d *toolDef) { d.annotations.Title = title } }

// MaxResultSizeChars raises the limit above which the agent cuts the tool's
// results or moves them to a file.
func MaxResultSizeChars(n int) ToolOption {
	return func(d *toolDef) {
		if n <= 0 {
			d.problem(fmt.Sprintf("MaxResultSizeChars is %d", n), "give a positive number of characters")
		}
		d.meta["anthropic/maxResultSizeChars"] = n
	}
}

// AlwaysLoad keeps the tool in the model's context from the start, instead of
// behind a tool search (observed on Claude Code 2.1.329).
func AlwaysLoad() ToolOption { return ToolMeta("anthropic/alwaysLoad", true) }

// ToolMeta sets a key of the tool's _meta, for what has no option of its own.
// The value must marshal to JSON.
func ToolMeta(key string, value any) ToolOption {
	return func(d *toolDef) {
		if _, err := json.Marshal(value); err != nil {
			d.problem(fmt.Sprintf("_meta %q: %v", key, err), "give a value that JSON can hold")
			return
		}
		d.meta[key] = value
	}
}

// ToolTimeout bounds one call of the tool, the wait for its turn included.
// 0: 10 min; negative: no limit. [Progress] starts it anew. When it passes, the
// model is told and the handler's context ends.
func ToolTimeout(d time.Duration) ToolOption { return func(def *toolDef) { def.timeout = d } }

// MaxConcurrent lets at most n calls of the tool run at a time, those of all
// sessions that share it counted together. Further calls wait, first come,
// first served. Where a server is [MCPServer.Sequential] its order takes the place
// of the limit, for tools that are not [ReadOnly]. Not given: no limit.
func MaxConcurrent(n int) ToolOption {
	return func(d *toolDef) {
		if n < 1 {
			d.problem(fmt.Sprintf("MaxConcurrent is %d", n), "give a positive number, or leave the option out")
			return
		}
		d.semaphore = mcp.NewSemaphore(n)
	}
}
