package session

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/internal/wire"
)

// Memory turns on Qoder's memory. An empty Memory sends nothing.
type Memory struct {
	// Mode is native (the agent's own way, with no Generation and no Consumption) or custom (as they say); empty: custom.
	Mode string `json:"mode,omitempty"`
	// ProjectScope keeps memories with the project; absent: true.
	ProjectScope Opt[bool] `json:"projectScope,omitzero"`
	// UserScope keeps memories with the user; absent: true.
	UserScope Opt[bool] `json:"userScope,omitzero"`
	// Generation is when memories are made, and how.
	Generation *MemoryGeneration `json:"generation,omitempty"`
	// Consumption is what the model is given of them.
	Consumption *MemoryConsumption `json:"consumption,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes the options, unknown keys into Extra.
func (m *Memory) UnmarshalJSON(b []byte) error {
	type plain Memory
	return wire.UnmarshalWith(b, (*plain)(m), &m.Extra)
}

// MemoryGeneration is when memories are made, and how.
type MemoryGeneration struct {
	// Enabled: absent: true.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Roots are the directories that memories are kept in; empty: the agent's own.
	Roots []MemoryRoot `json:"roots,omitempty"`
	// Prompt replaces the agent's instruction for making a memory.
	Prompt string `json:"prompt,omitempty"`
	// TurnComplete makes memories at the end of a turn.
	TurnComplete *TurnComplete `json:"turnComplete,omitempty"`
}

// TurnComplete is work at the end of a turn.
type TurnComplete struct {
	// Enabled: absent: true.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// ReviewThreshold is after how many turns skills are reviewed, 1 to 10; absent: the agent's default, 5. For skills.
	ReviewThreshold Opt[int] `json:"reviewThreshold,omitzero"`
	// Timeout bounds the callback that decides, here and, in milliseconds, in the agent; 0: 60 s here, and the
	// agent's default there.
	Timeout time.Duration `json:"timeout,omitempty"`
	// OnGateError is what a callback that fails makes of the turn's work: skip or report_failed; empty: skip.
	OnGateError string `json:"onGateError,omitempty"`
}

// MemoryRoot is a directory of memories.
type MemoryRoot struct {
	// ID is the caller's name for it, unique among the roots.
	ID string `json:"id"`
	// Path is the directory, on the agent's machine.
	Path string `json:"path"`
	// Access is read or read-write; empty: read-write.
	Access string `json:"access,omitempty"`
	// IndexFile is the index's path within the directory; empty: none.
	IndexFile string `json:"indexFile,omitempty"`
}

// MemoryConsumption is what the model is given of the memories.
type MemoryConsumption struct {
	// Enabled: absent: true.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Files are given in this order; empty: the agent's own memories.
	Files []MemoryFile `json:"files,omitempty"`
	// MaxTokens bounds it all; absent: no bound.
	MaxTokens Opt[int] `json:"maxTokens,omitzero"`
	// Overflow is what becomes of more: truncate or fail_query; empty: truncate.
	Overflow string `json:"overflow,omitempty"`
	// FailureMode is what a file that cannot be read does: best_effort or fail_query, which holds for required files; empty:
	// best_effort.
	FailureMode string `json:"failureMode,omitempty"`
}

// MemoryFile is a file of memories.
type MemoryFile struct {
	// ID is the caller's name for it, unique among the files.
	ID string `json:"id"`
	// Path is the file, on the agent's machine.
	Path string `json:"path"`
	// Required: absent: false.
	Required Opt[bool] `json:"required,omitzero"`
}

// Evolution turns on Qoder's evolution of skills. An empty Evolution sends nothing.
type Evolution struct {
	// Skill says how skills evolve; nil: as the agent decides.
	Skill *SkillEvolution `json:"skill,omitempty"`
}

// SkillEvolution is how skills evolve.
type SkillEvolution struct {
	// Mode is native, with no Generation but Enabled and ReviewThreshold, or custom; empty: custom.
	Mode string `json:"mode,omitempty"`
	// Generation is when skills are reviewed.
	Generation *SkillGeneration `json:"generation,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes the options, unknown keys into Extra.
func (s *SkillEvolution) UnmarshalJSON(b []byte) error {
	type plain SkillEvolution
	return wire.UnmarshalWith(b, (*plain)(s), &s.Extra)
}

// SkillGeneration is when skills are reviewed, and how.
type SkillGeneration struct {
	// Enabled: absent: true; false sends nothing.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Prompt replaces the agent's instruction for the review.
	Prompt string `json:"prompt,omitempty"`
	// MaxSuggestions is 1 to 10; absent: the agent's default.
	MaxSuggestions Opt[int] `json:"maxSuggestions,omitzero"`
	// TurnComplete reviews skills at the end of a turn.
	TurnComplete *TurnComplete `json:"turnComplete,omitempty"`
}
