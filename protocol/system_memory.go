package protocol

// The messages of this file are Qoder's, in the form that its SDK 1.0.39
// declares; none was observed.

// ModelQueueStatusMessage is system/model_queue_status: the agent waits for the
// model's capacity, or no longer does.
type ModelQueueStatusMessage struct {
	Common
	Status             string `json:"status"`                          // queued, ready
	RequestID          string `json:"request_id"`                      // the waiting model request
	RequestSetID       string `json:"request_set_id"`                  // shared by the requests of one step; meaning not documented
	ModelKey           string `json:"model_key"`                       // the model that is waited for
	QueueType          string `json:"queue_type,omitempty"`            // which queue; the set is not documented
	QueueCount         int    `json:"queue_count,omitempty"`           // requests in the queue; 0: not sent
	WaitTimeMS         Millis `json:"wait_time_ms,omitempty"`          // expected, in milliseconds; 0: not sent
	QueueWaitElapsedMS Millis `json:"queue_wait_elapsed_ms,omitempty"` // so far, in milliseconds
	QueueMaxWaitMS     Millis `json:"queue_max_wait_ms,omitempty"`     // then the agent gives up, in milliseconds; 0: not sent
	ServiceAvailable   *bool  `json:"service_available,omitempty"`     // nil: not sent
}

func (*ModelQueueStatusMessage) wire() (string, string) { return "system", "model_queue_status" }

// MemoryGenerationMessage is system/memory_generation: memories were written,
// or not.
type MemoryGenerationMessage struct {
	Common
	Result MemoryGeneration `json:"result"` // of one attempt
}

func (*MemoryGenerationMessage) wire() (string, string) { return "system", "memory_generation" }

// MemoryGeneration is the outcome of one attempt to write memories.
type MemoryGeneration struct {
	Status         string       `json:"status"`                     // saved, partial, no_change, skipped, failed
	AttemptID      string       `json:"attemptId"`                  // the same in every message about the attempt
	Reason         string       `json:"reason,omitempty"`           // for people; "": none
	Origin         string       `json:"origin"`                     // main_session, turn_complete, dream
	SourceRequests []string     `json:"sourceRequestIds,omitempty"` // model requests of the turn that the memories are about
	ModelRequests  []string     `json:"modelRequestIds,omitempty"`  // model requests that wrote the memories
	WrittenFiles   []MemoryFile `json:"writtenFiles"`               // nil: none
	FailedFiles    []MemoryFile `json:"failedFiles"`                // nil: none
	IndexUpdated   bool         `json:"indexUpdated,omitempty"`     // a file that lists memories has changed
	ContentUpdated bool         `json:"contentUpdated,omitempty"`   // a file of memories has changed
	DurationMS     Millis       `json:"durationMs"`                 // milliseconds
	Usage          *Usage       `json:"usage,omitempty"`            // tokens of ModelRequests; nil: not sent
	// Credits is nil if it is not known.
	Credits *float64 `json:"credits,omitempty"`
}

// MemoryFile is a file of memories, below a root. Error says why it was not
// written.
type MemoryFile struct {
	RootID string `json:"rootId"`          // which of the configured roots
	Path   string `json:"path"`            // relative to the root
	Error  string `json:"error,omitempty"` // "" for a written file
}

// MemoryConsumptionMessage is system/memory_consumption: memories were read.
type MemoryConsumptionMessage struct {
	Common
	Result MemoryConsumption `json:"result"` // of one reading
}

func (*MemoryConsumptionMessage) wire() (string, string) { return "system", "memory_consumption" }

// MemoryConsumption says which files were read.
type MemoryConsumption struct {
	Status string         `json:"status"` // success, partial, failed
	Files  []MemoryLoaded `json:"files"`  // in the order in which they were read
}

// MemoryLoaded is a file of memories that was to be read.
type MemoryLoaded struct {
	ID     string `json:"id"`              // the id that the host gave the file
	Path   string `json:"path"`            // on the agent's machine
	Status string `json:"status"`          // loaded, missing, failed, truncated
	Error  string `json:"error,omitempty"` // for people, with status failed
}

// SkillEvolutionMessage is system/skill_evolution: skills were reviewed.
type SkillEvolutionMessage struct {
	Common
	Result SkillEvolution `json:"result"` // of one review
}

func (*SkillEvolutionMessage) wire() (string, string) { return "system", "skill_evolution" }

// SkillEvolution is the outcome of a review of skills.
type SkillEvolution struct {
	Status         string            `json:"status"`                     // suggested, no_change, skipped, failed
	AttemptID      string            `json:"attemptId"`                  // the same in every message about the review
	Reason         string            `json:"reason,omitempty"`           // for people; "": none
	Origin         string            `json:"origin"`                     // turn_complete
	ReviewScore    *float64          `json:"reviewScore,omitempty"`      // nil: not sent; the scale is not documented
	SourceRequests []string          `json:"sourceRequestIds,omitempty"` // model requests of the turn that was reviewed
	ModelRequests  []string          `json:"modelRequestIds,omitempty"`  // model requests of the review
	Suggestions    []SkillSuggestion `json:"suggestions"`                // nil: none
	DurationMS     Millis            `json:"durationMs"`                 // milliseconds
	Usage          *Usage            `json:"usage,omitempty"`            // tokens of ModelRequests; nil: not sent
}

// SkillSuggestion is a skill to write or to change.
type SkillSuggestion struct {
	SkillName  string  `json:"skillName"`           // of the skill to write or to change
	Action     string  `json:"action"`              // create, update
	Summary    string  `json:"summary"`             // for people
	Confidence float64 `json:"confidence"`          // 0 to 1
	Rationale  string  `json:"rationale,omitempty"` // for people; "": none
}

// ArtifactsUpdateMessage is system/artifacts_update: the files that the session
// has changed or shown, all of them.
type ArtifactsUpdateMessage struct {
	Common
	Artifacts []Artifact `json:"artifacts"` // they replace those known before
}

func (*ArtifactsUpdateMessage) wire() (string, string) { return "system", "artifacts_update" }

// Artifact is a file that the session has changed or shown.
type Artifact struct {
	Kind         string         `json:"kind"`                    // changed, presented
	Path         string         `json:"path"`                    // on the agent's machine
	DisplayPath  string         `json:"display_path"`            // for people
	Name         string         `json:"name"`                    // for people
	Group        *ArtifactGroup `json:"group,omitempty"`         // nil: none
	RelativePath string         `json:"relative_path,omitempty"` // to the working directory; "": not below it
	Size         int64          `json:"size,omitempty"`          // bytes
	MIME         string         `json:"mime,omitempty"`          // media type; "": not sent
	MTime        float64        `json:"mtime,omitempty"`         // ms since the Unix epoch
	// Of a changed one: lines.
	Additions int  `json:"additions,omitempty"` // added
	Deletions int  `json:"deletions,omitempty"` // removed
	IsNew     bool `json:"is_new,omitempty"`    // the session created the file
}

// ArtifactGroup puts artifacts together.
type ArtifactGroup struct {
	Key  string `json:"key"`  // the same for all artifacts of the group
	Name string `json:"name"` // for people
}
