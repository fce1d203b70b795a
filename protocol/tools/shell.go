package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// BashInput runs a shell command.
type BashInput struct {
	Command string `json:"command"`
	// TimeoutMS is at most 600,000; 0 is the agent's default.
	TimeoutMS                 protocol.Millis `json:"timeout,omitempty"`
	Description               string          `json:"description,omitempty"`
	RunInBackground           *bool           `json:"run_in_background,omitempty"`
	DangerouslyDisableSandbox bool            `json:"dangerouslyDisableSandbox,omitempty"`
	DirPath                   string          `json:"dir_path,omitempty"` // Qoder's: the directory to run in
	Extra                     `json:"-"`
}

// Tool implements [Input].
func (*BashInput) Tool() string { return Bash }

// BashOutput is what a command wrote. A command that fails has no such output
// on Claude Code, but a *[Text] that begins with "Error: Exit code" (observed
// on 2.1.329).
type BashOutput struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	Interrupted bool   `json:"interrupted"`
	// IsImage says that Stdout is an image, as a data URL.
	IsImage          bool `json:"isImage,omitempty"`
	NoOutputExpected bool `json:"noOutputExpected,omitempty"`
	// ReturnCodeInterpretation says what an exit code means that is no failure.
	ReturnCodeInterpretation  string          `json:"returnCodeInterpretation,omitempty"`
	DangerouslyDisableSandbox bool            `json:"dangerouslyDisableSandbox,omitempty"`
	TimedOutAfterMS           protocol.Millis `json:"timedOutAfterMs,omitempty"`

	// BackgroundTaskID is set on a command that runs on in the background.
	BackgroundTaskID                string `json:"backgroundTaskId,omitempty"`
	BackgroundedByUser              bool   `json:"backgroundedByUser,omitempty"`
	AssistantAutoBackgrounded       bool   `json:"assistantAutoBackgrounded,omitempty"`
	BackgroundCwdHint               string `json:"backgroundCwdHint,omitempty"`
	BackgroundEndsWithFinalResponse bool   `json:"backgroundEndsWithFinalResponse,omitempty"`
	BackgroundWakesOwner            bool   `json:"backgroundWakesOwner,omitempty"`

	// Where long output went, on the agent's host; the size is in bytes.
	RawOutputPath       string `json:"rawOutputPath,omitempty"`
	PersistedOutputPath string `json:"persistedOutputPath,omitempty"`
	PersistedOutputSize int64  `json:"persistedOutputSize,omitempty"`

	StructuredContent      []json.RawMessage `json:"structuredContent,omitempty"`
	StaleReadFileStateHint string            `json:"staleReadFileStateHint,omitempty"`
	GHRateLimitHint        string            `json:"ghRateLimitHint,omitempty"`
	GitOperation           *GitOperation     `json:"gitOperation,omitempty"`

	// Qoder's.
	ExitCode *int `json:"exitCode,omitempty"`
	BashBackground
}

func (*BashOutput) isOutput() {}

// BashBackground is a command that Qoder moved to the background.
type BashBackground struct {
	Kind             string `json:"kind,omitempty"` // backgrounded
	PID              int    `json:"pid,omitempty"`
	TaskID           string `json:"taskId,omitempty"`
	OutputFile       string `json:"outputFile,omitempty"`
	Command          string `json:"command,omitempty"`
	InitialOutput    string `json:"initialOutput,omitempty"`
	BackgroundReason string `json:"backgroundReason,omitempty"` // user, model, timeout, auto
	// TelemetryExecutionID is of no use to a host.
	TelemetryExecutionID string `json:"telemetryExecutionId,omitempty"`
	TotalLines           int64  `json:"totalLines,omitempty"`
	TotalBytes           int64  `json:"totalBytes,omitempty"`
}

// GitOperation is what a command did to a repository, as the agent understood it.
type GitOperation struct {
	Commit *GitCommit `json:"commit,omitempty"`
	Push   *GitPush   `json:"push,omitempty"`
	Branch *GitBranch `json:"branch,omitempty"`
	PR     *GitPR     `json:"pr,omitempty"`
}

// GitCommit is a commit that was made.
type GitCommit struct {
	SHA    string `json:"sha"`
	Kind   string `json:"kind"` // committed, amended, cherry-picked
	Branch string `json:"branch,omitempty"`
}

// GitPush is a branch that was pushed.
type GitPush struct {
	Branch string `json:"branch"`
}

// GitBranch is a branch that was merged or rebased.
type GitBranch struct {
	Ref    string `json:"ref"`
	Action string `json:"action"` // merged, rebased
}

// GitPR is a pull request that was acted on.
type GitPR struct {
	Number int    `json:"number"`
	URL    string `json:"url,omitempty"`
	Action string `json:"action"` // created, edited, merged, closed, …
}

// MonitorInput watches a command or a web socket in the background.
type MonitorInput struct {
	Description string            `json:"description"`
	TimeoutMS   protocol.Millis   `json:"timeout_ms,omitempty"`
	Command     string            `json:"command,omitempty"`
	WS          *MonitorWebSocket `json:"ws,omitempty"`
	Persistent  bool              `json:"persistent,omitempty"`
	Extra       `json:"-"`
}

// Tool implements [Input].
func (*MonitorInput) Tool() string { return Monitor }

// MonitorWebSocket is a web socket to watch.
type MonitorWebSocket struct {
	URL       string   `json:"url"`
	Protocols []string `json:"protocols,omitempty"`
}

// MonitorOutput is a watch that was started.
type MonitorOutput struct {
	TaskID               string          `json:"taskId"`
	TimeoutMS            protocol.Millis `json:"timeoutMs"`
	Persistent           bool            `json:"persistent,omitempty"`
	KeptInSandboxByCheck bool            `json:"keptInSandboxByCheck,omitempty"`
}

func (*MonitorOutput) isOutput() {}
