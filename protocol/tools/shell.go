package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// BashInput runs a shell command.
type BashInput struct {
	Command string `json:"command"` // for the shell, as the model wrote it
	// TimeoutMS is at most 600,000; 0 is the agent's default.
	TimeoutMS                 protocol.Millis `json:"timeout,omitempty"`
	Description               string          `json:"description,omitempty"`               // for people
	RunInBackground           *bool           `json:"run_in_background,omitempty"`         // nil is false
	DangerouslyDisableSandbox bool            `json:"dangerouslyDisableSandbox,omitempty"` // asks to run outside of the sandbox
	DirPath                   string          `json:"dir_path,omitempty"`                  // Qoder's: the directory to run in
	Extra                     `json:"-"`
}

// Tool implements [Input].
func (*BashInput) Tool() string { return "Bash" }

// BashOutput is the output of a command. On Claude Code the output of a command that fails
// is a *[Text] that begins with "Error: Exit code" (observed on 2.1.329).
type BashOutput struct {
	Stdout      string `json:"stdout"`      // long output is cut, see PersistedOutputPath
	Stderr      string `json:"stderr"`      // "" in every recording of Claude Code 2.1.329
	Interrupted bool   `json:"interrupted"` // a person or a limit ended it
	// IsImage says that Stdout is an image, as a data URL.
	IsImage          bool `json:"isImage,omitempty"`
	NoOutputExpected bool `json:"noOutputExpected,omitempty"` // a command such as mv, which prints nothing
	// ReturnCodeInterpretation is the meaning of a non-zero exit code that is not a failure.
	ReturnCodeInterpretation  string `json:"returnCodeInterpretation,omitempty"`
	DangerouslyDisableSandbox bool   `json:"dangerouslyDisableSandbox,omitempty"` // it ran outside of the sandbox
	// TimedOutAfterMS is the timeout, in milliseconds, that moved the command to
	// the background; 0: none did.
	TimedOutAfterMS protocol.Millis `json:"timedOutAfterMs,omitempty"`

	// BackgroundTaskID is set on a command that runs on in the background.
	BackgroundTaskID                string `json:"backgroundTaskId,omitempty"`
	BackgroundedByUser              bool   `json:"backgroundedByUser,omitempty"`              // a person moved it there
	AssistantAutoBackgrounded       bool   `json:"assistantAutoBackgrounded,omitempty"`       // the agent moved it there
	BackgroundCwdHint               string `json:"backgroundCwdHint,omitempty"`               // for the model: a cd in the background changes nothing
	BackgroundEndsWithFinalResponse bool   `json:"backgroundEndsWithFinalResponse,omitempty"` // the task ends with the agent that started it
	BackgroundWakesOwner            bool   `json:"backgroundWakesOwner,omitempty"`            // the subagent that started it waits for it

	// Where long output went, on the agent's host; the size is in bytes.
	RawOutputPath       string `json:"rawOutputPath,omitempty"`       // of an MCP tool's output
	PersistedOutputPath string `json:"persistedOutputPath,omitempty"` // of the whole output
	PersistedOutputSize int64  `json:"persistedOutputSize,omitempty"` // of the whole output

	StructuredContent      []json.RawMessage `json:"structuredContent,omitempty"`      // content blocks; nil: none
	StaleReadFileStateHint string            `json:"staleReadFileStateHint,omitempty"` // for the model: files that it has read were changed
	GHRateLimitHint        string            `json:"ghRateLimitHint,omitempty"`        // for the model: GitHub refuses further calls
	GitOperation           *GitOperation     `json:"gitOperation,omitempty"`           // nil if the command was not recognized as one

	// Qoder's.
	ExitCode *int `json:"exitCode,omitempty"` // nil: not said
	BashBackground
}

func (*BashOutput) isOutput() {}

// BashBackground is a command that Qoder moved to the background.
type BashBackground struct {
	Kind             string `json:"kind,omitempty"`             // backgrounded
	PID              int    `json:"pid,omitempty"`              // of the command
	TaskID           string `json:"taskId,omitempty"`           // as in protocol.TaskStartedMessage
	OutputFile       string `json:"outputFile,omitempty"`       // on the agent's machine
	Command          string `json:"command,omitempty"`          // of the input
	InitialOutput    string `json:"initialOutput,omitempty"`    // what it wrote until then
	BackgroundReason string `json:"backgroundReason,omitempty"` // user, model, timeout, auto
	// TelemetryExecutionID is of no use to a host.
	TelemetryExecutionID string `json:"telemetryExecutionId,omitempty"`
	TotalLines           int64  `json:"totalLines,omitempty"` // of the output until then
	TotalBytes           int64  `json:"totalBytes,omitempty"` // of the output until then
}

// GitOperation is the effect of a command on a repository, as the agent understood it.
type GitOperation struct {
	Commit *GitCommit `json:"commit,omitempty"` // nil: none
	Push   *GitPush   `json:"push,omitempty"`   // nil: none
	Branch *GitBranch `json:"branch,omitempty"` // nil: none
	PR     *GitPR     `json:"pr,omitempty"`     // nil: none
}

// GitCommit is a commit that was made.
type GitCommit struct {
	SHA    string `json:"sha"`              // may be abbreviated
	Kind   string `json:"kind"`             // committed, amended, cherry-picked
	Branch string `json:"branch,omitempty"` // "": not said
}

// GitPush is a branch that was pushed.
type GitPush struct {
	Branch string `json:"branch"` // as git names it
}

// GitBranch is a branch that was merged or rebased.
type GitBranch struct {
	Ref    string `json:"ref"`    // as git names it
	Action string `json:"action"` // merged, rebased
}

// GitPR is a pull request that was acted on.
type GitPR struct {
	Number int    `json:"number"`        // of the pull request
	URL    string `json:"url,omitempty"` // "": not said
	Action string `json:"action"`        // created, edited, merged, closed, …
}

// MonitorInput watches a command or a web socket in the background.
type MonitorInput struct {
	Description string            `json:"description"`          // for people
	TimeoutMS   protocol.Millis   `json:"timeout_ms,omitempty"` // 300,000 by default, at most 1,800,000
	Command     string            `json:"command,omitempty"`    // each line of its stdout is an event
	WS          *MonitorWebSocket `json:"ws,omitempty"`         // in place of Command
	Persistent  bool              `json:"persistent,omitempty"` // no timeout
	Extra       `json:"-"`
}

// Tool implements [Input].
func (*MonitorInput) Tool() string { return "Monitor" }

// MonitorWebSocket is a web socket to watch.
type MonitorWebSocket struct {
	URL       string   `json:"url"`                 // ws or wss
	Protocols []string `json:"protocols,omitempty"` // WebSocket subprotocols; nil: none
}

// MonitorOutput is a watch that was started.
type MonitorOutput struct {
	TaskID               string          `json:"taskId"`                         // as in protocol.TaskStartedMessage
	TimeoutMS            protocol.Millis `json:"timeoutMs"`                      // in effect; 0: none
	Persistent           bool            `json:"persistent,omitempty"`           // no timeout
	KeptInSandboxByCheck bool            `json:"keptInSandboxByCheck,omitempty"` // it runs in the sandbox because its permission depended on that
}

func (*MonitorOutput) isOutput() {}
