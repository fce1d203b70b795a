package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// EnterWorktreeInput moves the session into a git worktree.
type EnterWorktreeInput struct {
	Name  string `json:"name,omitempty"` // of a new one; at most 64 characters; "": the agent finds one
	Path  string `json:"path,omitempty"` // of one that exists; "": a new one is made
	Extra `json:"-"`
}

// Tool implements [Input].
func (*EnterWorktreeInput) Tool() string { return "EnterWorktree" }

// EnterWorktreeOutput is the worktree. The fields after Message are of Qoder's
// document, which its SDK calls wrong.
type EnterWorktreeOutput struct {
	WorktreePath   string `json:"worktreePath,omitempty"`   // absolute
	WorktreeBranch string `json:"worktreeBranch,omitempty"` // "": not said
	Message        string `json:"message,omitempty"`        // for the model

	Path    string `json:"worktree_path,omitempty"` // as WorktreePath
	Branch  string `json:"branch_name,omitempty"`   // as WorktreeBranch
	Success bool   `json:"success,omitempty"`       // of Qoder's document
	Error   string `json:"error,omitempty"`         // of Qoder's document
}

func (*EnterWorktreeOutput) isOutput() {}

// ExitWorktreeInput leaves the worktree.
type ExitWorktreeInput struct {
	Action string `json:"action"` // keep, remove; remove also deletes the branch
	// DiscardChanges removes a worktree with changes that are nowhere else.
	DiscardChanges bool `json:"discard_changes,omitempty"`
	Extra          `json:"-"`
}

// Tool implements [Input].
func (*ExitWorktreeInput) Tool() string { return "ExitWorktree" }

// ExitWorktreeOutput is the worktree that was left. The fields from Success on
// are of Qoder's document, which its SDK calls wrong.
type ExitWorktreeOutput struct {
	Action           string `json:"action,omitempty"`           // of the input
	OriginalCwd      string `json:"originalCwd,omitempty"`      // where the session was before it entered
	WorktreePath     string `json:"worktreePath,omitempty"`     // absolute
	WorktreeBranch   string `json:"worktreeBranch,omitempty"`   // "": not said
	TmuxSessionName  string `json:"tmuxSessionName,omitempty"`  // of the worktree; "": none
	DiscardedFiles   int    `json:"discardedFiles,omitempty"`   // uncommitted files that were lost
	DiscardedCommits int    `json:"discardedCommits,omitempty"` // commits that were lost
	Message          string `json:"message,omitempty"`          // for the model
	// RestoredCwd is where the session is now (observed on Claude Code 2.1.329).
	RestoredCwd        string `json:"restoredCwd,omitempty"`
	OriginalCwdMissing bool   `json:"originalCwdMissing,omitempty"` // OriginalCwd does not exist any more

	Success          bool     `json:"success,omitempty"`           // of Qoder's document
	Error            string   `json:"error,omitempty"`             // of Qoder's document
	UncommittedFiles []string `json:"uncommitted_files,omitempty"` // why the worktree was not removed
	UnmergedCommits  []string `json:"unmerged_commits,omitempty"`  // why the worktree was not removed
}

func (*ExitWorktreeOutput) isOutput() {}

// CronCreateInput has a prompt run at given times.
type CronCreateInput struct {
	Cron   string `json:"cron"`   // five fields, local time; 0 9 * * 1-5
	Prompt string `json:"prompt"` // of the turn that each firing starts
	// Recurring nil is true: again and again, not once.
	Recurring *bool `json:"recurring,omitempty"`
	// Durable outlives the session.
	Durable bool `json:"durable,omitempty"`
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*CronCreateInput) Tool() string { return "CronCreate" }

// CronJob is a job as the Cron tools report it. NextFireAt is milliseconds
// since the Unix epoch.
type CronJob struct {
	ID            string  `json:"id"`                      // for [CronDeleteInput]
	Cron          string  `json:"cron,omitempty"`          // as in [CronCreateInput]
	HumanSchedule string  `json:"humanSchedule,omitempty"` // Cron in words
	Prompt        string  `json:"prompt,omitempty"`        // of the turn that each firing starts
	Recurring     bool    `json:"recurring,omitempty"`     // false: once
	Durable       bool    `json:"durable,omitempty"`       // kept after the session
	NextFireAt    float64 `json:"nextFireAt,omitempty"`    // 0: not said
}

// CronCreateOutput is the job that was created.
type CronCreateOutput struct {
	CronJob
	OtherOneShots []CronJob `json:"otherOneShots,omitempty"` // jobs of this session that fire once and have not yet
}

func (*CronCreateOutput) isOutput() {}

// CronDeleteInput deletes a job.
type CronDeleteInput struct {
	ID    string `json:"id"` // CronJob.ID
	Extra `json:"-"`
}

// Tool implements [Input].
func (*CronDeleteInput) Tool() string { return "CronDelete" }

// CronDeleteOutput is the job that was deleted.
type CronDeleteOutput struct {
	ID              string `json:"id"`                        // CronJob.ID
	EndedLoopWakeup bool   `json:"endedLoopWakeup,omitempty"` // it was the wakeup of a /loop
}

func (*CronDeleteOutput) isOutput() {}

// CronListInput asks for all jobs.
type CronListInput struct {
	Extra `json:"-"`
}

// Tool implements [Input].
func (*CronListInput) Tool() string { return "CronList" }

// CronListOutput is all jobs.
type CronListOutput struct {
	Jobs []CronJob `json:"jobs"` // nil: none
}

func (*CronListOutput) isOutput() {}

// ScheduleWakeupInput has the session woken up once, with a prompt.
type ScheduleWakeupInput struct {
	DelaySeconds float64 `json:"delaySeconds,omitempty"` // from now: 60 to 3,600; others are moved into the range
	Reason       string  `json:"reason,omitempty"`       // one sentence for people
	Prompt       string  `json:"prompt,omitempty"`       // of the turn that the wakeup starts
	Stop         bool    `json:"stop,omitempty"`         // ends the loop instead; the other fields are ignored
	Noop         bool    `json:"noop,omitempty"`         // there was nothing to report this time
	Extra        `json:"-"`
}

// Tool implements [Input].
func (*ScheduleWakeupInput) Tool() string { return "ScheduleWakeup" }

// ScheduleWakeupOutput is when. ScheduledFor is milliseconds since the Unix
// epoch.
type ScheduleWakeupOutput struct {
	ScheduledFor        float64 `json:"scheduledFor"`               // 0 with Stopped
	ClampedDelaySeconds float64 `json:"clampedDelaySeconds"`        // the delay in effect
	WasClamped          bool    `json:"wasClamped"`                 // DelaySeconds was out of range
	Stopped             bool    `json:"stopped,omitempty"`          // the loop has ended
	CancelledWakeups    int     `json:"cancelledWakeups,omitempty"` // wakeups that Stop took back
}

func (*ScheduleWakeupOutput) isOutput() {}

// GetGoalInput asks for the session's goal. Qoder's.
type GetGoalInput struct {
	Extra `json:"-"`
}

// Tool implements [Input].
func (*GetGoalInput) Tool() string { return "GetGoal" }

// CreateGoalInput sets a goal. Qoder's.
type CreateGoalInput struct {
	Objective string `json:"objective"`           // in words
	MaxTurns  int    `json:"max_turns,omitempty"` // turns to spend on it; 0: the agent's default
	Extra     `json:"-"`
}

// Tool implements [Input].
func (*CreateGoalInput) Tool() string { return "CreateGoal" }

// UpdateGoalInput says that the goal was reached, or cannot be. Qoder's.
type UpdateGoalInput struct {
	Status string `json:"status"` // complete, blocked
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*UpdateGoalInput) Tool() string { return "UpdateGoal" }

// ImageGenInput makes an image. Qoder's.
type ImageGenInput struct {
	Name   string `json:"name"`           // of the image file
	Prompt string `json:"prompt"`         // what to show
	Size   string `json:"size,omitempty"` // such as 1024x1024
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*ImageGenInput) Tool() string { return "ImageGen" }

// ImageGenOutput is where the image is, on the agent's host. Qoder's.
type ImageGenOutput struct {
	FilePath  string `json:"filePath"`  // of the image
	RequestID string `json:"requestId"` // of the model request
}

func (*ImageGenOutput) isOutput() {}

// VideoGenInput makes a video. Qoder's.
type VideoGenInput struct {
	Name            string      `json:"name"`                       // of the video file
	Mode            string      `json:"mode"`                       // text_to_video, first_frame_to_video, reference_to_video
	Prompt          string      `json:"prompt"`                     // what to show
	Media           *VideoMedia `json:"media,omitempty"`            // nil with text_to_video
	Size            string      `json:"size,omitempty"`             // as in [ImageGenInput]
	DurationSeconds int         `json:"duration_seconds,omitempty"` // 2 to 30
	Extra           `json:"-"`
}

// Tool implements [Input].
func (*VideoGenInput) Tool() string { return "VideoGen" }

// VideoMedia is what a video starts from.
type VideoMedia struct {
	FirstFrame *VideoSource  `json:"first_frame,omitempty"` // with first_frame_to_video
	References []VideoSource `json:"references,omitempty"`  // with reference_to_video
}

// VideoSource is an image.
type VideoSource struct {
	Source string `json:"source"` // where the image is
	Type   string `json:"type"`   // image
}

// VideoGenOutput is a video that is being made, or is there. Qoder's.
type VideoGenOutput struct {
	TaskID    string `json:"taskId"`             // for [VideoGenRetrieveInput]
	Status    string `json:"status"`             // how far it is; the set is not documented
	RequestID string `json:"requestId"`          // of the model request
	FilePath  string `json:"filePath,omitempty"` // "": not there yet
}

func (*VideoGenOutput) isOutput() {}

// VideoGenRetrieveInput asks for a video. Qoder's.
type VideoGenRetrieveInput struct {
	VideoID string `json:"video_id"` // VideoGenOutput.TaskID
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*VideoGenRetrieveInput) Tool() string { return "VideoGenRetrieve" }

// ListAgentsInput asks for the agents that a message can be sent to.
type ListAgentsInput struct {
	Channel string `json:"channel,omitempty"` // observed in the types, meaning not documented
	Query   string `json:"q,omitempty"`       // restricts the list
	Cursor  string `json:"cursor,omitempty"`  // of the page before; "": the first
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*ListAgentsInput) Tool() string { return "ListAgents" }

// ListAgentsOutput is the agents, as a text for the model.
type ListAgentsOutput struct {
	Listing string `json:"listing"` // for the model
	// Sections and Notes were empty whenever they were seen.
	Sections  []json.RawMessage `json:"sections,omitempty"`
	Notes     []json.RawMessage `json:"notes,omitempty"`     // see Sections
	PeerCount int               `json:"peerCount,omitempty"` // Qoder's
}

func (*ListAgentsOutput) isOutput() {}

// ReportFindingsInput reports the findings of a review.
type ReportFindingsInput struct {
	Level    protocol.Effort `json:"level,omitempty"` // the effort of the review
	Findings []Finding       `json:"findings"`        // at most 32, worst first
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*ReportFindingsInput) Tool() string { return "ReportFindings" }

// Finding is one finding of a review.
type Finding struct {
	File            string `json:"file"`                    // relative to the repository
	Line            int    `json:"line,omitempty"`          // from 1
	Summary         string `json:"summary"`                 // what is wrong
	ShortSummary    string `json:"short_summary,omitempty"` // at most 60 characters
	FailureScenario string `json:"failure_scenario"`        // what goes in, and what goes wrong
	Category        string `json:"category,omitempty"`      // such as correctness or test-coverage; "": none
	Severity        string `json:"severity,omitempty"`      // important, pre_existing, nit
	Verdict         string `json:"verdict,omitempty"`       // CONFIRMED, PLAUSIBLE; "": not verified
	Outcome         string `json:"outcome,omitempty"`       // fixed, skipped, no_change_needed
}

// ReportFindingsOutput is the findings that were reported.
type ReportFindingsOutput struct {
	Count    int             `json:"count"`           // length of Findings
	Level    protocol.Effort `json:"level,omitempty"` // of the input
	Findings []Finding       `json:"findings"`        // of the input
}

func (*ReportFindingsOutput) isOutput() {}
