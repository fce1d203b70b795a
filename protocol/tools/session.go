package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// EnterWorktreeInput moves the session into a git worktree.
type EnterWorktreeInput struct {
	Name  string `json:"name,omitempty"` // of a new one
	Path  string `json:"path,omitempty"` // of one that exists
	Extra `json:"-"`
}

// Tool implements [Input].
func (*EnterWorktreeInput) Tool() string { return EnterWorktree }

// EnterWorktreeOutput is the worktree. The fields after Message are of Qoder's
// document, which its SDK calls wrong.
type EnterWorktreeOutput struct {
	WorktreePath   string `json:"worktreePath,omitempty"`
	WorktreeBranch string `json:"worktreeBranch,omitempty"`
	Message        string `json:"message,omitempty"`

	Path    string `json:"worktree_path,omitempty"`
	Branch  string `json:"branch_name,omitempty"`
	Success bool   `json:"success,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (*EnterWorktreeOutput) isOutput() {}

// ExitWorktreeInput leaves the worktree.
type ExitWorktreeInput struct {
	Action string `json:"action"` // keep, remove
	// DiscardChanges removes a worktree with changes that are nowhere else.
	DiscardChanges bool `json:"discard_changes,omitempty"`
	Extra          `json:"-"`
}

// Tool implements [Input].
func (*ExitWorktreeInput) Tool() string { return ExitWorktree }

// ExitWorktreeOutput is the worktree that was left. The fields from Success on
// are of Qoder's document, which its SDK calls wrong.
type ExitWorktreeOutput struct {
	Action           string `json:"action,omitempty"`
	OriginalCwd      string `json:"originalCwd,omitempty"`
	WorktreePath     string `json:"worktreePath,omitempty"`
	WorktreeBranch   string `json:"worktreeBranch,omitempty"`
	TmuxSessionName  string `json:"tmuxSessionName,omitempty"`
	DiscardedFiles   int    `json:"discardedFiles,omitempty"`
	DiscardedCommits int    `json:"discardedCommits,omitempty"`
	Message          string `json:"message,omitempty"`
	// RestoredCwd is where the session is now (observed on Claude Code 2.1.329).
	RestoredCwd        string `json:"restoredCwd,omitempty"`
	OriginalCwdMissing bool   `json:"originalCwdMissing,omitempty"`

	Success          bool     `json:"success,omitempty"`
	Error            string   `json:"error,omitempty"`
	UncommittedFiles []string `json:"uncommitted_files,omitempty"`
	UnmergedCommits  []string `json:"unmerged_commits,omitempty"`
}

func (*ExitWorktreeOutput) isOutput() {}

// CronCreateInput has a prompt run at given times.
type CronCreateInput struct {
	Cron   string `json:"cron"` // five fields, local time
	Prompt string `json:"prompt"`
	// Recurring nil is true: again and again, not once.
	Recurring *bool `json:"recurring,omitempty"`
	// Durable outlives the session.
	Durable bool `json:"durable,omitempty"`
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*CronCreateInput) Tool() string { return CronCreate }

// CronJob is a job as the Cron tools report it. NextFireAt is milliseconds
// since the Unix epoch.
type CronJob struct {
	ID            string  `json:"id"`
	Cron          string  `json:"cron,omitempty"`
	HumanSchedule string  `json:"humanSchedule,omitempty"`
	Prompt        string  `json:"prompt,omitempty"`
	Recurring     bool    `json:"recurring,omitempty"`
	Durable       bool    `json:"durable,omitempty"`
	NextFireAt    float64 `json:"nextFireAt,omitempty"`
}

// CronCreateOutput is the job that was created.
type CronCreateOutput struct {
	CronJob
	OtherOneShots []CronJob `json:"otherOneShots,omitempty"`
}

func (*CronCreateOutput) isOutput() {}

// CronDeleteInput deletes a job.
type CronDeleteInput struct {
	ID    string `json:"id"`
	Extra `json:"-"`
}

// Tool implements [Input].
func (*CronDeleteInput) Tool() string { return CronDelete }

// CronDeleteOutput is the job that was deleted.
type CronDeleteOutput struct {
	ID              string `json:"id"`
	EndedLoopWakeup bool   `json:"endedLoopWakeup,omitempty"`
}

func (*CronDeleteOutput) isOutput() {}

// CronListInput asks for all jobs.
type CronListInput struct {
	Extra `json:"-"`
}

// Tool implements [Input].
func (*CronListInput) Tool() string { return CronList }

// CronListOutput is all jobs.
type CronListOutput struct {
	Jobs []CronJob `json:"jobs"`
}

func (*CronListOutput) isOutput() {}

// ScheduleWakeupInput has the session woken up once, with a prompt.
type ScheduleWakeupInput struct {
	DelaySeconds float64 `json:"delaySeconds,omitempty"`
	Reason       string  `json:"reason,omitempty"`
	Prompt       string  `json:"prompt,omitempty"`
	Stop         bool    `json:"stop,omitempty"`
	Noop         bool    `json:"noop,omitempty"`
	Extra        `json:"-"`
}

// Tool implements [Input].
func (*ScheduleWakeupInput) Tool() string { return ScheduleWakeup }

// ScheduleWakeupOutput is when. ScheduledFor is milliseconds since the Unix
// epoch.
type ScheduleWakeupOutput struct {
	ScheduledFor        float64 `json:"scheduledFor"`
	ClampedDelaySeconds float64 `json:"clampedDelaySeconds"`
	WasClamped          bool    `json:"wasClamped"`
	Stopped             bool    `json:"stopped,omitempty"`
	CancelledWakeups    int     `json:"cancelledWakeups,omitempty"`
}

func (*ScheduleWakeupOutput) isOutput() {}

// GetGoalInput asks for the session's goal. Qoder's.
type GetGoalInput struct {
	Extra `json:"-"`
}

// Tool implements [Input].
func (*GetGoalInput) Tool() string { return GetGoal }

// CreateGoalInput sets a goal. Qoder's.
type CreateGoalInput struct {
	Objective string `json:"objective"`
	MaxTurns  int    `json:"max_turns,omitempty"`
	Extra     `json:"-"`
}

// Tool implements [Input].
func (*CreateGoalInput) Tool() string { return CreateGoal }

// UpdateGoalInput says that the goal was reached, or cannot be. Qoder's.
type UpdateGoalInput struct {
	Status string `json:"status"` // complete, blocked
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*UpdateGoalInput) Tool() string { return UpdateGoal }

// ImageGenInput makes an image. Qoder's.
type ImageGenInput struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
	Size   string `json:"size,omitempty"` // such as 1024x1024
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*ImageGenInput) Tool() string { return ImageGen }

// ImageGenOutput is where the image is, on the agent's host. Qoder's.
type ImageGenOutput struct {
	FilePath  string `json:"filePath"`
	RequestID string `json:"requestId"`
}

func (*ImageGenOutput) isOutput() {}

// VideoGenInput makes a video. Qoder's.
type VideoGenInput struct {
	Name            string      `json:"name"`
	Mode            string      `json:"mode"` // text_to_video, first_frame_to_video, reference_to_video
	Prompt          string      `json:"prompt"`
	Media           *VideoMedia `json:"media,omitempty"`
	Size            string      `json:"size,omitempty"`
	DurationSeconds int         `json:"duration_seconds,omitempty"` // 2 to 30
	Extra           `json:"-"`
}

// Tool implements [Input].
func (*VideoGenInput) Tool() string { return VideoGen }

// VideoMedia is what a video starts from.
type VideoMedia struct {
	FirstFrame *VideoSource  `json:"first_frame,omitempty"`
	References []VideoSource `json:"references,omitempty"`
}

// VideoSource is an image.
type VideoSource struct {
	Source string `json:"source"`
	Type   string `json:"type"` // image
}

// VideoGenOutput is a video that is being made, or is there. Qoder's.
type VideoGenOutput struct {
	TaskID    string `json:"taskId"`
	Status    string `json:"status"`
	RequestID string `json:"requestId"`
	FilePath  string `json:"filePath,omitempty"`
}

func (*VideoGenOutput) isOutput() {}

// VideoGenRetrieveInput asks for a video. Qoder's.
type VideoGenRetrieveInput struct {
	VideoID string `json:"video_id"`
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*VideoGenRetrieveInput) Tool() string { return VideoGenRetrieve }

// ListAgentsInput asks for the agents that a message can be sent to.
type ListAgentsInput struct {
	Channel string `json:"channel,omitempty"`
	Query   string `json:"q,omitempty"`
	Cursor  string `json:"cursor,omitempty"`
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*ListAgentsInput) Tool() string { return ListAgents }

// ListAgentsOutput is the agents, as a text for the model.
type ListAgentsOutput struct {
	Listing string `json:"listing"`
	// Sections and Notes were empty whenever they were seen.
	Sections  []json.RawMessage `json:"sections,omitempty"`
	Notes     []json.RawMessage `json:"notes,omitempty"`
	PeerCount int               `json:"peerCount,omitempty"` // Qoder's
}

func (*ListAgentsOutput) isOutput() {}

// ReportFindingsInput reports the findings of a review.
type ReportFindingsInput struct {
	Level    protocol.Effort `json:"level,omitempty"`
	Findings []Finding       `json:"findings"`
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*ReportFindingsInput) Tool() string { return ReportFindings }

// Finding is one finding of a review.
type Finding struct {
	File            string `json:"file"`
	Line            int    `json:"line,omitempty"` // from 1
	Summary         string `json:"summary"`
	ShortSummary    string `json:"short_summary,omitempty"`
	FailureScenario string `json:"failure_scenario"`
	Category        string `json:"category,omitempty"`
	Severity        string `json:"severity,omitempty"` // important, pre_existing, nit
	Verdict         string `json:"verdict,omitempty"`  // CONFIRMED, PLAUSIBLE
	Outcome         string `json:"outcome,omitempty"`  // fixed, skipped, no_change_needed
}

// ReportFindingsOutput is the findings that were reported.
type ReportFindingsOutput struct {
	Count    int             `json:"count"`
	Level    protocol.Effort `json:"level,omitempty"`
	Findings []Finding       `json:"findings"`
}

func (*ReportFindingsOutput) isOutput() {}
