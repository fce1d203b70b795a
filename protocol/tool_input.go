package protocol

// The methods Decode of this file decode the input of a tool call into v, a pointer to
// a struct that names its keys in json tags. Keys are exact, see [Decode]: encoding/json
// ignores case, and would show a gate Command where the tool runs command.
//
// Package protocol/tools has types for the agents' own tools: tools.DecodeInput takes
// the tool's name and its input.

// Decode decodes the tool's input into v, by the exact names of its keys. See [Decode].
func (b *ToolUseBlock) Decode(v any) error { return Decode(b.Input, v) }

// Decode decodes the tool's input into v, by the exact names of its keys. See [Decode].
func (r *CanUseToolRequest) Decode(v any) error { return Decode(r.Input, v) }

// Decode decodes the tool's input into v, by the exact names of its keys. See [Decode].
func (in *PreToolUseInput) Decode(v any) error { return Decode(in.ToolInput, v) }

// Decode decodes the tool's input into v, by the exact names of its keys. See [Decode].
func (in *PostToolUseInput) Decode(v any) error { return Decode(in.ToolInput, v) }

// Decode decodes the tool's input into v, by the exact names of its keys. See [Decode].
func (in *PostToolUseFailureInput) Decode(v any) error { return Decode(in.ToolInput, v) }

// Decode decodes the tool's input into v, by the exact names of its keys. See [Decode].
func (in *PermissionRequestInput) Decode(v any) error { return Decode(in.ToolInput, v) }
