package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// AgentInput starts a subagent.
type AgentInput struct {
	Description  string `json:"description"`
	Prompt       string `json:"prompt"`
	SubagentType string `json:"subagent_type,omitempty"`
	// RunInBackground nil leaves it to the agent: Claude Code 2.1.329 then
	// runs the subagent in the background, 2.1.197 in the foreground (observed).
	RunInBackground *bool  `json:"run_in_background,omitempty"`
	Model           string `json:"model,omitempty"` // sonnet, opus, haiku, …
	Effort          string `json:"effort,omitempty"`
	Name            string `json:"name,omitempty"`
	// TeamName is ignored by agents of today.
	TeamName  string                  `json:"team_name,omitempty"`
	Mode      protocol.PermissionMode `json:"mode,omitempty"`
	Isolation string                  `json:"isolation,omitempty"` // worktree, remote; Qoder's: default
	// Resume and MaxTurns are of older releases: the agent to go on with, and
	// the limit of its turns.
	Resume   string `json:"resume,omitempty"`
	MaxTurns int    `json:"max_turns,omitempty"`
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*AgentInput) Tool() string { return Agent }

// The values of [AgentOutput.Status].
const (
	AgentCompleted       = "completed"
	AgentAsyncLaunched   = "async_launched"
	AgentRemoteLaunched  = "remote_launched"
	AgentTeammateSpawned = "teammate_spawned" // Qoder's
)

// AgentOutput is what became of a subagent: it has ended (completed), or runs
// in the background (async_launched, remote_launched).
type AgentOutput struct {
	Status string `json:"status,omitempty"`
	// AgentID is the subagent, and its task id.
	AgentID       string   `json:"agentId,omitempty"`
	AgentType     string   `json:"agentType,omitempty"`
	Description   string   `json:"description,omitempty"`
	Prompt        string   `json:"prompt,omitempty"`
	ResolvedModel string   `json:"resolvedModel,omitempty"`
	ModelsUsed    []string `json:"modelsUsed,omitempty"`

	// Of a subagent that has ended.
	Content           protocol.Content `json:"content,omitzero"`
	TotalDurationMS   protocol.Millis  `json:"totalDurationMs,omitempty"`
	TotalTokens       int64            `json:"totalTokens,omitempty"`
	TotalToolUseCount int64            `json:"totalToolUseCount,omitempty"`
	Usage             *protocol.Usage  `json:"usage,omitempty"`
	ToolStats         *AgentToolStats  `json:"toolStats,omitempty"`
	ToolsUsed         []string         `json:"toolsUsed,omitempty"`
	WorktreePath      string           `json:"worktreePath,omitempty"`
	WorktreeBranch    string           `json:"worktreeBranch,omitempty"`
	// The harness fields say which blocks of Content the agent added itself:
	// so many at the front, so many at the end (observed on Claude Code 2.1.329).
	HarnessNoteCount   int    `json:"harnessNoteCount,omitempty"`
	HarnessTailCount   int    `json:"harnessTailCount,omitempty"`
	HarnessSectionHash string `json:"harnessSectionHash,omitempty"`
	Handback           string `json:"handback,omitempty"`

	// Of a subagent in the background. OutputFile is a path on the agent's host.
	IsAsync           bool   `json:"isAsync,omitempty"`
	OutputFile        string `json:"outputFile,omitempty"`
	CanReadOutputFile bool   `json:"canReadOutputFile,omitempty"`
	CanContinueAgent  bool   `json:"canContinueAgent,omitempty"`
	TaskID            string `json:"taskId,omitempty"` // of a remote one
	SessionURL        string `json:"sessionUrl,omitempty"`

	// Qoder's, for a subagent that has ended: Kind is agent-result, State is
	// running, completed, error or cancelled.
	Kind            string `json:"kind,omitempty"`
	State           string `json:"state,omitempty"`
	APIError        string `json:"apiError,omitempty"`
	TerminateReason string `json:"terminateReason,omitempty"`
	// TerminationDetails are the limit that was reached.
	TerminationDetails *AgentTermination `json:"terminationDetails,omitempty"`
	OutputPath         string            `json:"outputPath,omitempty"`
	TranscriptPath     string            `json:"transcriptPath,omitempty"`
	RemoteContextID    string            `json:"remoteContextId,omitempty"`
	RemoteTaskID       string            `json:"remoteTaskId,omitempty"`

	// Qoder's, for a teammate.
	Teammate
}

func (*AgentOutput) isOutput() {}

// Teammate is an agent that works beside its starter. Qoder's.
type Teammate struct {
	TeammateID       string `json:"teammate_id,omitempty"`
	TeammateAgentID  string `json:"agent_id,omitempty"`
	TeammateType     string `json:"agent_type,omitempty"`
	Model            string `json:"model,omitempty"`
	Name             string `json:"name,omitempty"`
	Color            string `json:"color,omitempty"`
	TmuxSessionName  string `json:"tmux_session_name,omitempty"`
	TmuxWindowName   string `json:"tmux_window_name,omitempty"`
	TmuxPaneID       string `json:"tmux_pane_id,omitempty"`
	TeamName         string `json:"team_name,omitempty"`
	IsSplitPane      bool   `json:"is_splitpane,omitempty"`
	PlanModeRequired bool   `json:"plan_mode_required,omitempty"`
}

// AgentTermination is the limit that ended a subagent.
type AgentTermination struct {
	MaxTurns int `json:"maxTurns,omitempty"`
}

// AgentToolStats counts what a subagent did.
type AgentToolStats struct {
	ReadCount      int64 `json:"readCount"`
	SearchCount    int64 `json:"searchCount"`
	BashCount      int64 `json:"bashCount"`
	EditFileCount  int64 `json:"editFileCount"`
	LinesAdded     int64 `json:"linesAdded"`
	LinesRemoved   int64 `json:"linesRemoved"`
	OtherToolCount int64 `json:"otherToolCount"`
	FrameCount     int64 `json:"frameCount,omitempty"`
}

// TaskOutputInput waits for the output of a background task, or looks at what
// there is.
type TaskOutputInput struct {
	TaskID string `json:"task_id"`
	Block  *bool  `json:"block,omitempty"` // nil is true
	// TimeoutMS bounds the wait.
	TimeoutMS protocol.Millis `json:"timeout,omitempty"`
	// Output is sent to the task, in Qoder's document.
	Output string `json:"output,omitempty"`
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*TaskOutputInput) Tool() string { return TaskOutput }

// TaskOutputOutput is what a task wrote so far. The tool and its shape are of
// Claude Code before 2.1.329.
type TaskOutputOutput struct {
	RetrievalStatus string      `json:"retrieval_status"` // success, timeout, not_ready
	Task            *TaskReport `json:"task,omitempty"`
}

func (*TaskOutputOutput) isOutput() {}

// TaskReport is a background task with its output.
type TaskReport struct {
	TaskID      string `json:"task_id"`
	TaskType    string `json:"task_type,omitempty"` // local_bash, local_agent, remote_agent
	Status      string `json:"status,omitempty"`
	Description string `json:"description,omitempty"`
	Output      string `json:"output,omitempty"`
	ExitCode    *int   `json:"exitCode,omitempty"`
	Prompt      string `json:"prompt,omitempty"`
	Result      string `json:"result,omitempty"`
	Error       string `json:"error,omitempty"`
}

// TaskStopInput stops a background task.
type TaskStopInput struct {
	TaskID  string `json:"task_id,omitempty"`
	ShellID string `json:"shell_id,omitempty"` // TaskID under its older name
	Reason  string `json:"reason,omitempty"`   // Qoder's document
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*TaskStopInput) Tool() string { return TaskStop }

// TaskStopOutput answers a [TaskStopInput].
type TaskStopOutput struct {
	Message  string `json:"message,omitempty"`
	TaskID   string `json:"task_id,omitempty"`
	TaskType string `json:"task_type,omitempty"`
	Command  string `json:"command,omitempty"`
	// Success and Error are of Qoder's document.
	Success bool   `json:"success,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (*TaskStopOutput) isOutput() {}

// WorkflowInput runs a script of subagents.
type WorkflowInput struct {
	Script      string `json:"script,omitempty"`
	ScriptPath  string `json:"scriptPath,omitempty"`
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Args is the script's own value.
	Args            json.RawMessage `json:"args,omitempty"`
	ResumeFromRunID string          `json:"resumeFromRunId,omitempty"`
	Extra           `json:"-"`
}

// Tool implements [Input].
func (*WorkflowInput) Tool() string { return Workflow }

// WorkflowOutput is a workflow that was started.
type WorkflowOutput struct {
	Status        string `json:"status"` // async_launched, remote_launched
	TaskID        string `json:"taskId"`
	TaskType      string `json:"taskType,omitempty"` // local_workflow, remote_agent
	WorkflowName  string `json:"workflowName,omitempty"`
	RunID         string `json:"runId,omitempty"`
	Summary       string `json:"summary,omitempty"`
	TranscriptDir string `json:"transcriptDir,omitempty"`
	ScriptPath    string `json:"scriptPath,omitempty"`
	SessionURL    string `json:"sessionUrl,omitempty"`
	Warning       string `json:"warning,omitempty"`
	Error         string `json:"error,omitempty"`
}

func (*WorkflowOutput) isOutput() {}
