package protocol

// The messages of this file are Qoder's, in the form that its SDK 1.0.39
// declares; none was observed.

// ModelQueueStatusMessage is system/model_queue_status: the agent waits for the
// model's capacity, or no longer does.
type ModelQueueStatusMessage struct {
	Common
	Status             string `json:"status"` // queued, ready
	RequestID          string `json:"request_id"`
	RequestSetID       string `json:"request_set_id"`
	ModelKey           string `json:"model_key"`
	QueueType          string `json:"queue_type,omitempty"`
	QueueCount         int    `json:"queue_count,omitempty"`
	WaitTimeMS         Millis `json:"wait_time_ms,omitempty"`
	QueueWaitElapsedMS Millis `json:"queue_wait_elapsed_ms,omitempty"`
	QueueMaxWaitMS     Millis `json:"queue_max_wait_ms,omitempty"`
	ServiceAvailable   *bool  `json:"service_available,omitempty"`
}

func (*ModelQueueStatusMessage) wire() (string, string) { return "system", "model_queue_status" }

// MemoryGenerationMessage is system/memory_generation: memories were written,
// or not.
type MemoryGenerationMessage struct {
	Common
	Result MemoryGeneration `json:"result"`
}

func (*MemoryGenerationMessage) wire() (string, string) { return "system", "memory_generation" }

// MemoryGeneration is the outcome of one attempt to write memories.
type MemoryGeneration struct {
	Status         string       `json:"status"` // saved, partial, no_change, skipped, failed
	AttemptID      string       `json:"attemptId"`
	Reason         string       `json:"reason,omitempty"`
	Origin         string       `json:"origin"` // main_session, turn_complete, dream
	SourceRequests []string     `json:"sourceRequestIds,omitempty"`
	ModelRequests  []string     `json:"modelRequestIds,omitempty"`
	WrittenFiles   []MemoryFile `json:"writtenFiles"`
	FailedFiles    []MemoryFile `json:"failedFiles"`
	IndexUpdated   bool         `json:"indexUpdated,omitempty"`
	ContentUpdated bool         `json:"contentUpdated,omitempty"`
	DurationMS     Millis       `json:"durationMs"`
	Usage          *Usage       `json:"usage,omitempty"`
	// Credits is nil if it is not known.
	Credits *float64 `json:"credits,omitempty"`
}

// MemoryFile is a file of memories, below a root. Error says why it was not
// written.
type MemoryFile struct {
	RootID string `json:"rootId"`
	Path   string `json:"path"`
	Error  string `json:"error,omitempty"`
}

// MemoryConsumptionMessage is system/memory_consumption: memories were read.
type MemoryConsumptionMessage struct {
	Common
	Result MemoryConsumption `json:"result"`
}

func (*MemoryConsumptionMessage) wire() (string, string) { return "system", "memory_consumption" }

// MemoryConsumption says which files were read.
type MemoryConsumption struct {
	Status string         `json:"status"` // success, partial, failed
	Files  []MemoryLoaded `json:"files"`
}

// MemoryLoaded is a file of memories that was to be read.
type MemoryLoaded struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Status string `json:"status"` // loaded, missing, failed, truncated
	Error  string `json:"error,omitempty"`
}

// SkillEvolutionMessage is system/skill_evolution: skills were reviewed.
type SkillEvolutionMessage struct {
	Common
	Result SkillEvolution `json:"result"`
}

func (*SkillEvolutionMessage) wire() (string, string) { return "system", "skill_evolution" }

// SkillEvolution is the outcome of a review of skills.
type SkillEvolution struct {
	Status         string            `json:"status"` // suggested, no_change, skipped, failed
	AttemptID      string            `json:"attemptId"`
	Reason         string            `json:"reason,omitempty"`
	Origin         string            `json:"origin"` // turn_complete
	ReviewScore    *float64          `json:"reviewScore,omitempty"`
	SourceRequests []string          `json:"sourceRequestIds,omitempty"`
	ModelRequests  []string          `json:"modelRequestIds,omitempty"`
	Suggestions    []SkillSuggestion `json:"suggestions"`
	DurationMS     Millis            `json:"durationMs"`
	Usage          *Usage            `json:"usage,omitempty"`
}

// SkillSuggestion is a skill to write or to change.
type SkillSuggestion struct {
	SkillName  string  `json:"skillName"`
	Action     string  `json:"action"` // create, update
	Summary    string  `json:"summary"`
	Confidence float64 `json:"confidence"` // 0 to 1
	Rationale  string  `json:"rationale,omitempty"`
}

// ArtifactsUpdateMessage is system/artifacts_update: the files that the session
// has changed or shown, all of them.
type ArtifactsUpdateMessage struct {
	Common
	Artifacts []Artifact `json:"artifacts"`
}

func (*ArtifactsUpdateMessage) wire() (string, string) { return "system", "artifacts_update" }

// Artifact is a file that the session has changed or shown.
type Artifact struct {
	Kind         string         `json:"kind"` // changed, presented
	Path         string         `json:"path"`
	DisplayPath  string         `json:"display_path"`
	Name         string         `json:"name"`
	Group        *ArtifactGroup `json:"group,omitempty"`
	RelativePath string         `json:"relative_path,omitempty"`
	Size         int64          `json:"size,omitempty"` // bytes
	MIME         string         `json:"mime,omitempty"`
	MTime        float64        `json:"mtime,omitempty"` // ms since the Unix epoch
	// Of a changed one: lines.
	Additions int  `json:"additions,omitempty"`
	Deletions int  `json:"deletions,omitempty"`
	IsNew     bool `json:"is_new,omitempty"`
}

// ArtifactGroup puts artifacts together.
type ArtifactGroup struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}
