package session

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/protocol"
)

// Memory turns on Qoder's memory. An empty Memory sends nothing.
type Memory struct {
	// Mode is native (the agent decides; Generation and Consumption must be nil) or custom (Generation and Consumption
	// decide); empty: custom.
	Mode string `json:"mode,omitempty"`
	// ProjectScope keeps memories with the project; absent: true.
	ProjectScope Opt[bool] `json:"projectScope,omitzero"`
	// UserScope keeps memories with the user; absent: true.
	UserScope Opt[bool] `json:"userScope,omitzero"`
	// Generation says when and how memories are made.
	Generation *MemoryGeneration `json:"generation,omitempty"`
	// Consumption says which memories the model gets.
	Consumption *MemoryConsumption `json:"consumption,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes the options. Unknown keys go to Extra.
func (m *Memory) UnmarshalJSON(b []byte) error {
	type plain Memory
	return wire.UnmarshalWith(protocol.Unmarshal, b, (*plain)(m), &m.Extra)
}

// MemoryGeneration says when and how memories are made.
type MemoryGeneration struct {
	// Enabled makes memories; absent: true.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Roots are the directories that memories are kept in; empty: the agent's own.
	Roots []MemoryRoot `json:"roots,omitempty"`
	// Prompt replaces the agent's instruction for making a memory; empty: the agent's.
	Prompt string `json:"prompt,omitempty"`
	// TurnComplete configures the memories that are made at the end of a turn; nil: the agent's defaults.
	TurnComplete *TurnComplete `json:"turnComplete,omitempty"`
}

// TurnComplete configures the work at the end of a turn: making memories, or reviewing skills.
type TurnComplete struct {
	// Enabled turns the work on; absent: true.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// ReviewThreshold is the number of turns after which skills are reviewed, 1 to 10; absent: the agent's default, 5.
	// Only for skills.
	ReviewThreshold Opt[int] `json:"reviewThreshold,omitzero"`
	// Timeout limits the callback that decides about the work. Troupe applies it, and sends it to the agent in
	// milliseconds; 0: Troupe applies 60 s, and the agent its own default.
	Timeout time.Duration `json:"timeout,omitempty"`
	// OnGateError says what happens to the work when the callback fails: skip or report_failed; empty: skip.
	OnGateError string `json:"onGateError,omitempty"`
}

// MemoryRoot is a directory with memories.
type MemoryRoot struct {
	// ID is your name for the directory, unique among the roots.
	ID string `json:"id"`
	// Path is the directory's path on the agent's machine.
	Path string `json:"path"`
	// Access is read or read-write; empty: read-write.
	Access string `json:"access,omitempty"`
	// IndexFile is the path of the index, relative to the directory; empty: no index.
	IndexFile string `json:"indexFile,omitempty"`
}

// MemoryConsumption says which memories the model gets.
type MemoryConsumption struct {
	// Enabled gives memories to the model; absent: true.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Files are given to the model in this order; empty: the agent's own memories.
	Files []MemoryFile `json:"files,omitempty"`
	// MaxTokens limits all files together, in tokens; absent: no limit.
	MaxTokens Opt[int] `json:"maxTokens,omitzero"`
	// Overflow says what happens above MaxTokens: truncate or fail_query; empty: truncate.
	Overflow string `json:"overflow,omitempty"`
	// FailureMode says what happens when a file cannot be read: best_effort skips it, fail_query fails the query if the
	// file is required; empty: best_effort.
	FailureMode string `json:"failureMode,omitempty"`
}

// MemoryFile is a file with memories.
type MemoryFile struct {
	// ID is your name for the file, unique among the files.
	ID string `json:"id"`
	// Path is the file's path on the agent's machine.
	Path string `json:"path"`
	// Required says that FailureMode fail_query applies to this file; absent: false.
	Required Opt[bool] `json:"required,omitzero"`
}

// Evolution turns on Qoder's evolution of skills. An empty Evolution sends nothing.
type Evolution struct {
	// Skill says how skills evolve; nil: the agent decides.
	Skill *SkillEvolution `json:"skill,omitempty"`
}

// SkillEvolution says how skills evolve.
type SkillEvolution struct {
	// Mode is native or custom; empty: custom. With native, Generation may set nothing but Enabled and ReviewThreshold.
	Mode string `json:"mode,omitempty"`
	// Generation says when and how skills are reviewed.
	Generation *SkillGeneration `json:"generation,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes the options. Unknown keys go to Extra.
func (s *SkillEvolution) UnmarshalJSON(b []byte) error {
	type plain SkillEvolution
	return wire.UnmarshalWith(protocol.Unmarshal, b, (*plain)(s), &s.Extra)
}

// SkillGeneration says when and how skills are reviewed.
type SkillGeneration struct {
	// Enabled turns the review on; absent: true. With false nothing is sent.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Prompt replaces the agent's instruction for the review; empty: the agent's.
	Prompt string `json:"prompt,omitempty"`
	// MaxSuggestions limits the suggestions of one review, 1 to 10; absent: the agent's default.
	MaxSuggestions Opt[int] `json:"maxSuggestions,omitzero"`
	// TurnComplete configures the review at the end of a turn; nil: the agent's defaults.
	TurnComplete *TurnComplete `json:"turnComplete,omitempty"`
}
