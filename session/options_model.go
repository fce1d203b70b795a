package session

import (
	"encoding/json"
	"errors"

	"github.com/agent-troupe/troupe/protocol"
)

// Thinking sets the model's extended thinking.
type Thinking struct {
	// Type is ThinkingAdaptive, ThinkingEnabled or ThinkingDisabled.
	Type string `json:"type"`
	// BudgetTokens limits thinking of type ThinkingEnabled, in tokens; absent: the model decides, as with
	// ThinkingAdaptive. With another type it has no effect, which is a Warning.
	BudgetTokens Opt[int] `json:"budgetTokens,omitzero"`
	// Display is how thinking appears in messages: summarized or omitted; empty: the agent's default.
	Display string `json:"display,omitempty"`
}

// Values of Thinking.Type.
const (
	ThinkingAdaptive = "adaptive"
	ThinkingEnabled  = "enabled"
	ThinkingDisabled = "disabled"
)

// OutputFormat asks the model for an answer of a given shape.
type OutputFormat struct {
	// Type must be json_schema.
	Type string `json:"type"`
	// Schema is a JSON Schema object.
	Schema json.RawMessage `json:"schema"`
}

var errSystemPromptShape = errors.New(`session: a system prompt is a string, a list of strings, or an object of type "preset", "custom" or "file"`)

// SystemPrompt replaces the agent's system prompt (Blocks or File), or keeps and extends it (Preset). The zero value
// means "not given". In JSON it is a string, a list of strings, or an object of type preset, custom or file, as the
// vendors write them.
type SystemPrompt struct {
	// Blocks are the whole prompt; the agent joins them. A block that is DynamicBoundary separates the blocks before it,
	// which may be cached, from those after it, which change. An empty prompt is one empty block. Qoder accepts one
	// block.
	Blocks []string
	// Append is added to the agent's own prompt. Needs Preset.
	Append string
	// Preset keeps the agent's own prompt.
	Preset bool
	// ExcludeDynamicSections moves the parts that differ between machines out of the cached prompt. Needs Preset. Claude.
	ExcludeDynamicSections bool
	// Snapshot makes the agent record the prompt at the first request and use the recorded prompt for all later ones.
	// Absent: the agent's default (true on Claude Code 2.1.329). Claude.
	Snapshot Opt[bool]
	// File is the path of a file with the whole prompt, relative to Cwd: {"type":"file","path":…} in JSON. Package sdk
	// reads it when the session is made, so that it works the same on every backend.
	File string
}

// DynamicBoundary is the block that separates the static from the dynamic blocks of a system prompt. Claude.
const DynamicBoundary = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"

// IsZero reports whether no prompt was given.
func (p SystemPrompt) IsZero() bool {
	return p.Blocks == nil && !p.Preset && p.Append == "" && !p.ExcludeDynamicSections && p.Snapshot.IsZero() && p.File == ""
}

// systemPromptJSON is the vendors' object form.
type systemPromptJSON struct {
	Type                   string    `json:"type"`
	Preset                 string    `json:"preset,omitempty"`
	Prompt                 textList  `json:"prompt,omitempty"`
	Append                 string    `json:"append,omitempty"`
	ExcludeDynamicSections bool      `json:"excludeDynamicSections,omitempty"`
	Snapshot               Opt[bool] `json:"snapshot,omitzero"`
	Path                   string    `json:"path,omitempty"`
}

// textList is a list of strings that may be written as one string.
type textList []string

func (l *textList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = textList{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// MarshalJSON encodes null, a string, a list, or the object form.
func (p SystemPrompt) MarshalJSON() ([]byte, error) {
	switch {
	case p.IsZero():
		return []byte("null"), nil
	case p.Preset:
		return protocol.Marshal(systemPromptJSON{Type: "preset", Append: p.Append,
			ExcludeDynamicSections: p.ExcludeDynamicSections, Snapshot: p.Snapshot})
	case p.File != "":
		return protocol.Marshal(systemPromptJSON{Type: "file", Path: p.File, Snapshot: p.Snapshot})
	case !p.Snapshot.IsZero():
		return protocol.Marshal(systemPromptJSON{Type: "custom", Prompt: p.Blocks, Snapshot: p.Snapshot})
	case len(p.Blocks) == 1:
		return protocol.Marshal(p.Blocks[0])
	default:
		return protocol.Marshal(p.Blocks)
	}
}

// UnmarshalJSON decodes null, a string, a list, or the object form. The name of a preset is ignored, because each
// agent has only one.
func (p *SystemPrompt) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*p = SystemPrompt{}
		return nil
	}
	var blocks textList
	if json.Unmarshal(b, &blocks) == nil {
		*p = SystemPrompt{Blocks: blocks}
		return nil
	}
	var o systemPromptJSON
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	switch o.Type {
	case "preset":
		*p = SystemPrompt{Preset: true, Append: o.Append, ExcludeDynamicSections: o.ExcludeDynamicSections, Snapshot: o.Snapshot}
	case "file":
		*p = SystemPrompt{File: o.Path, Snapshot: o.Snapshot}
	case "custom":
		*p = SystemPrompt{Blocks: o.Prompt, Snapshot: o.Snapshot}
	default:
		return errSystemPromptShape
	}
	return nil
}

// ToolConfig configures built-in tools.
type ToolConfig struct {
	// AskUserQuestion configures the tool with which the model asks the person questions.
	AskUserQuestion AskUserQuestionConfig `json:"askUserQuestion,omitzero"`
}

// AskUserQuestionConfig configures the AskUserQuestion tool.
type AskUserQuestionConfig struct {
	// PreviewFormat is the format of an option's preview: markdown or html; empty: the agent's default. Claude.
	PreviewFormat string `json:"previewFormat,omitempty"`
}
