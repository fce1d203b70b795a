package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// AgentInput starts a subagent.
type AgentInput struct {
	Description  string `json:"description"`             // three to five words, for people
	Prompt       string `json:"prompt"`                  // the whole prompt of the subagent
	SubagentType string `json:"subagent_type,omitempty"` // name of a definition; "": general-purpose
	// RunInBackground nil leaves it to the agent: Claude Code 2.1.329 then
	// runs the subagent in the background, 2.1.197 in the foreground (observed).
	RunInBackground *bool  `json:"run_in_background,omitempty"`
	Model           string `json:"model,omitempty"`  // sonnet, opus, haiku, …
	Effort          string `json:"effort,omitempty"` // low, medium, high, xhigh, max; "": that of the definition
	Name            string `json:"name,omitempty"`   // what [SendMessageInput] can address; "": none
	// TeamName is ignored by agents of today.
	TeamName  string                  `json:"team_name,omitempty"`
	Mode      protocol.PermissionMode `json:"mode,omitempty"`      // ignored by Claude Code 2.1.329
	Isolation string                  `json:"isolation,omitempty"` // worktree, remote; Qoder's: default
	// Resume (the id of the agent to resume) and MaxTurns (the limit of its turns) are from
	// older releases.
	Resume   string `json:"resume,omitempty"`
	MaxTurns int    `json:"max_turns,omitempty"` // model calls; 0: not given
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*AgentInput) Tool() string { return "Agent" }

// AgentOutput is the output of an Agent call: the subagent has ended (completed), or runs
// in the background (async_launched, remote_launched).
type AgentOutput struct {
	Status string `json:"status,omitempty"` // completed, async_launched, remote_launched; "" from qodercli
	// AgentID is the subagent, and its task id.
	AgentID       string   `json:"agentId,omitempty"`
	AgentType     string   `json:"agentType,omitempty"`     // name of the definition
	Description   string   `json:"description,omitempty"`   // of the input
	Prompt        string   `json:"prompt,omitempty"`        // of the input
	ResolvedModel string   `json:"resolvedModel,omitempty"` // full id
	ModelsUsed    []string `json:"modelsUsed,omitempty"`    // full ids in order, if the model changed

	// Of a subagent that has ended.
	Content           protocol.Content `json:"content,omitzero"`            // the subagent's last message
	TotalDurationMS   protocol.Millis  `json:"totalDurationMs,omitempty"`   // milliseconds
	TotalTokens       int64            `json:"totalTokens,omitempty"`       // input and output
	TotalToolUseCount int64            `json:"totalToolUseCount,omitempty"` // tool calls
	Usage             *protocol.Usage  `json:"usage,omitempty"`             // as the API counted; nil: not said
	ToolStats         *AgentToolStats  `json:"toolStats,omitempty"`         // nil: not said
	ToolsUsed         []string         `json:"toolsUsed,omitempty"`         // names
	WorktreePath      string           `json:"worktreePath,omitempty"`      // with isolation worktree, if files were changed there
	WorktreeBranch    string           `json:"worktreeBranch,omitempty"`    // as git names it
	// The harness fields say which blocks of Content the agent added itself:
	// so many at the front, so many at the end (observed on Claude Code 2.1.329).
	HarnessNoteCount   int    `json:"harnessNoteCount,omitempty"`
	HarnessTailCount   int    `json:"harnessTailCount,omitempty"`   // blocks at the end
	HarnessSectionHash string `json:"harnessSectionHash,omitempty"` // observed, meaning not documented
	Handback           string `json:"handback,omitempty"`           // how the report reached the caller; "": the subagent has no such tool

	// Of a subagent in the background. OutputFile is a path on the agent's host.
	IsAsync           bool   `json:"isAsync,omitempty"`           // it runs in the background
	OutputFile        string `json:"outputFile,omitempty"`        // the subagent's output so far
	CanReadOutputFile bool   `json:"canReadOutputFile,omitempty"` // the caller has tools to read OutputFile
	CanContinueAgent  bool   `json:"canContinueAgent,omitempty"`  // the caller can send it a further message
	TaskID            string `json:"taskId,omitempty"`            // of a remote one
	SessionURL        string `json:"sessionUrl,omitempty"`        // of a remote one, in a browser

	// Qoder's, for a subagent that has ended: Kind is agent-result, State is
	// running, completed, error or cancelled.
	Kind            string `json:"kind,omitempty"`
	State           string `json:"state,omitempty"`           // see Kind
	APIError        string `json:"apiError,omitempty"`        // of the model's API, with State error
	TerminateReason string `json:"terminateReason,omitempty"` // why it ended; the set is not documented
	// TerminationDetails are the limit that was reached.
	TerminationDetails *AgentTermination `json:"terminationDetails,omitempty"`
	OutputPath         string            `json:"outputPath,omitempty"`      // a file with its output
	TranscriptPath     string            `json:"transcriptPath,omitempty"`  // a file with its transcript
	RemoteContextID    string            `json:"remoteContextId,omitempty"` // of a remote one
	RemoteTaskID       string            `json:"remoteTaskId,omitempty"`    // of a remote one

	// Qoder's, for a teammate.
	Teammate
}

func (*AgentOutput) isOutput() {}

// Teammate is an agent that works in parallel with the agent that started it. Qoder's.
type Teammate struct {
	TeammateID       string `json:"teammate_id,omitempty"`        // who it is among its team
	TeammateAgentID  string `json:"agent_id,omitempty"`           // as AgentOutput.AgentID
	TeammateType     string `json:"agent_type,omitempty"`         // name of the definition
	Model            string `json:"model,omitempty"`              // as it was asked for, or resolved; not documented
	Name             string `json:"name,omitempty"`               // what [SendMessageInput] can address
	Color            string `json:"color,omitempty"`              // for the display
	TmuxSessionName  string `json:"tmux_session_name,omitempty"`  // where it is shown, with IsSplitPane or in its own window
	TmuxWindowName   string `json:"tmux_window_name,omitempty"`   // see TmuxSessionName
	TmuxPaneID       string `json:"tmux_pane_id,omitempty"`       // see TmuxSessionName
	TeamName         string `json:"team_name,omitempty"`          // the team that it works with
	IsSplitPane      bool   `json:"is_splitpane,omitempty"`       // shown in a part of the starter's window
	PlanModeRequired bool   `json:"plan_mode_required,omitempty"` // it has to have a plan approved first
}

// AgentTermination is the limit that ended a subagent.
type AgentTermination struct {
	MaxTurns int `json:"maxTurns,omitempty"` // the limit of model calls that was reached; 0: another limit
}

// AgentToolStats counts what a subagent did.
type AgentToolStats struct {
	ReadCount      int64 `json:"readCount"`            // files read
	SearchCount    int64 `json:"searchCount"`          // searches
	BashCount      int64 `json:"bashCount"`            // shell commands
	EditFileCount  int64 `json:"editFileCount"`        // files edited or written
	LinesAdded     int64 `json:"linesAdded"`           // by the edits
	LinesRemoved   int64 `json:"linesRemoved"`         // by the edits
	OtherToolCount int64 `json:"otherToolCount"`       // calls of other tools
	FrameCount     int64 `json:"frameCount,omitempty"` // not seen in a recording; meaning not documented
}

// TaskOutputInput waits for the output of a background task, or looks at what
// there is.
type TaskOutputInput struct {
	TaskID string `json:"task_id"`         // as in protocol.TaskStartedMessage
	Block  *bool  `json:"block,omitempty"` // nil is true
	// TimeoutMS bounds the wait.
	TimeoutMS protocol.Millis `json:"timeout,omitempty"`
	// Output is sent to the task, in Qoder's document.
	Output string `json:"output,omitempty"`
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*TaskOutputInput) Tool() string { return "TaskOutput" }

// TaskOutputOutput is the output of a task so far. The tool and its shape are from Claude
// Code before 2.1.329.
type TaskOutputOutput struct {
	RetrievalStatus string      `json:"retrieval_status"` // success, timeout, not_ready
	Task            *TaskReport `json:"task,omitempty"`   // nil: there is no such task
}

func (*TaskOutputOutput) isOutput() {}

// TaskReport is a background task with its output.
type TaskReport struct {
	TaskID      string `json:"task_id"`               // as in protocol.TaskStartedMessage
	TaskType    string `json:"task_type,omitempty"`   // local_bash, local_agent, remote_agent
	Status      string `json:"status,omitempty"`      // running, completed, failed, …
	Description string `json:"description,omitempty"` // one line for people
	Output      string `json:"output,omitempty"`      // so far; UTF-8
	ExitCode    *int   `json:"exitCode,omitempty"`    // of a command that has ended
	Prompt      string `json:"prompt,omitempty"`      // of a subagent
	Result      string `json:"result,omitempty"`      // of a subagent that has ended: its last message
	Error       string `json:"error,omitempty"`       // for the model; "": none
}

// TaskStopInput stops a background task.
type TaskStopInput struct {
	TaskID  string `json:"task_id,omitempty"`  // as in protocol.TaskStartedMessage, or a teammate's name
	ShellID string `json:"shell_id,omitempty"` // TaskID under its older name
	Reason  string `json:"reason,omitempty"`   // Qoder's document
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*TaskStopInput) Tool() string { return "TaskStop" }

// TaskStopOutput answers a [TaskStopInput].
type TaskStopOutput struct {
	Message  string `json:"message,omitempty"`   // for the model
	TaskID   string `json:"task_id,omitempty"`   // of the task that was stopped
	TaskType string `json:"task_type,omitempty"` // as BackgroundTask.TaskType
	Command  string `json:"command,omitempty"`   // the task's command, or its description
	// Success and Error are of Qoder's document.
	Success bool   `json:"success,omitempty"`
	Error   string `json:"error,omitempty"` // "": none
}

func (*TaskStopOutput) isOutput() {}

// WorkflowInput runs a script of subagents.
type WorkflowInput struct {
	Script      string `json:"script,omitempty"`      // JavaScript; "": ScriptPath or Name says which
	ScriptPath  string `json:"scriptPath,omitempty"`  // a script that is on disk
	Name        string `json:"name,omitempty"`        // a predefined workflow
	Title       string `json:"title,omitempty"`       // ignored: the script has its own
	Description string `json:"description,omitempty"` // ignored: the script has its own
	// Args is the script's own value.
	Args            json.RawMessage `json:"args,omitempty"`
	ResumeFromRunID string          `json:"resumeFromRunId,omitempty"` // WorkflowOutput.RunID of a run to continue; "": a new run
	Extra           `json:"-"`
}

// Tool implements [Input].
func (*WorkflowInput) Tool() string { return "Workflow" }

// WorkflowOutput is a workflow that was started.
type WorkflowOutput struct {
	Status        string `json:"status"`                  // async_launched, remote_launched
	TaskID        string `json:"taskId"`                  // as in protocol.TaskStartedMessage
	TaskType      string `json:"taskType,omitempty"`      // local_workflow, remote_agent
	WorkflowName  string `json:"workflowName,omitempty"`  // of the script
	RunID         string `json:"runId,omitempty"`         // for ResumeFromRunID; "" for a remote one
	Summary       string `json:"summary,omitempty"`       // one line for people
	TranscriptDir string `json:"transcriptDir,omitempty"` // where its subagents' transcripts are
	ScriptPath    string `json:"scriptPath,omitempty"`    // where the script is kept
	SessionURL    string `json:"sessionUrl,omitempty"`    // of a remote one, in a browser
	Warning       string `json:"warning,omitempty"`       // for people; "": none
	Error         string `json:"error,omitempty"`         // of the script's syntax; "": none
}

func (*WorkflowOutput) isOutput() {}
