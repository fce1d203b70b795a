package dialect

import (
	"encoding/json"
	"time"
)

// Identifiers under which initialize names the callbacks that are no hooks
// (observed on the Qoder SDK 1.0.39).
const (
	MemoryCallbackID    = "memory_should_generate_0"
	EvolutionCallbackID = "skill_evolution_should_review_0"
)

// Memory turns on Qoder's memory. An empty Memory sends nothing.
type Memory struct {
	// Mode is native (the agent's own way) or custom (as Generation and Consumption say); empty: the agent's default.
	Mode string `json:"mode,omitempty"`
	// ProjectScope keeps memories with the project; absent: the agent's default.
	ProjectScope Opt[bool] `json:"projectScope,omitzero"`
	// Generation is when memories are made, and how.
	Generation *MemoryGeneration `json:"generation,omitempty"`
	// Consumption is what the model is given of them.
	Consumption *MemoryConsumption `json:"consumption,omitempty"`
	// HasShouldGenerate: the host answers memory_should_generate requests.
	HasShouldGenerate bool `json:"-"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// MemoryGeneration is when memories are made, and how.
type MemoryGeneration struct {
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Prompt replaces the agent's instruction for making a memory.
	Prompt string `json:"prompt,omitempty"`
	// TurnComplete makes memories at the end of a turn.
	TurnComplete *TurnComplete `json:"turnComplete,omitempty"`
}

// TurnComplete is work at the end of a turn.
type TurnComplete struct {
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Timeout bounds the callback that decides, here and, in milliseconds, in the agent; 0: 60 s here, and the
	// agent's default there.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// MemoryConsumption is what the model is given of the memories.
type MemoryConsumption struct {
	Enabled Opt[bool]    `json:"enabled,omitzero"`
	Files   []MemoryFile `json:"files,omitempty"`
	// MaxTokens bounds it all; absent: the agent's default.
	MaxTokens Opt[int] `json:"maxTokens,omitzero"`
}

// MemoryFile is a file of memories.
type MemoryFile struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	Required Opt[bool] `json:"required,omitzero"`
}

// Evolution turns on Qoder's evolution of skills. An empty Evolution sends nothing.
type Evolution struct {
	Skill *SkillEvolution `json:"skill,omitempty"`
	// HasShouldReview: the host answers skill_evolution_should_review requests.
	HasShouldReview bool `json:"-"`
}

// SkillEvolution is how skills evolve.
type SkillEvolution struct {
	// Mode is native or custom; empty: the agent's default.
	Mode string `json:"mode,omitempty"`
	// Generation is when skills are reviewed.
	Generation *SkillGeneration `json:"generation,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// SkillGeneration is when skills are reviewed, and how.
type SkillGeneration struct {
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// Prompt replaces the agent's instruction for the review.
	Prompt string `json:"prompt,omitempty"`
	// TurnComplete reviews skills at the end of a turn.
	TurnComplete *TurnComplete `json:"turnComplete,omitempty"`
}
