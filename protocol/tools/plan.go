package tools

import (
	"encoding/json"
)

// The states of a [ListEntry] and of a [TodoTask].
const (
	StatusPending    = "pending"
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"
	// StatusDeleted removes a task, in [TaskUpdateInput].
	StatusDeleted = "deleted"
	// StatusCancelled and StatusBlocked are Qoder's.
	StatusCancelled = "cancelled"
	StatusBlocked   = "blocked"
)

// ListEntry is an entry of the list that [TodoWriteInput] replaces.
type ListEntry struct {
	Content string `json:"content,omitempty"` // what is to be done
	// Description is Content as qodercli 1.1.52 declares it to the model; its
	// document has Content.
	Description string `json:"description,omitempty"`
	Status      string `json:"status"` // pending, in_progress, completed
	// ActiveForm is the text while the entry is in progress. Claude's.
	ActiveForm string `json:"activeForm,omitempty"`
	ID         string `json:"id,omitempty"`       // Qoder's
	Priority   string `json:"priority,omitempty"` // low, medium, high; Qoder's
}

// Text returns the text of the entry, whichever field has it.
func (t ListEntry) Text() string {
	if t.Content != "" {
		return t.Content
	}
	return t.Description
}

// TodoWriteInput replaces the whole list of what is to be done.
type TodoWriteInput struct {
	Todos []ListEntry `json:"todos"` // the whole list from now on
	Extra `json:"-"`
}

// Tool implements [Input].
func (*TodoWriteInput) Tool() string { return "TodoWrite" }

// TodoWriteOutput is the list before and after. Todos, Success and Error are of
// Qoder's document; its CLI declares the lists, with an empty one before, and
// an empty one after when all is completed.
type TodoWriteOutput struct {
	OldTodos []ListEntry `json:"oldTodos,omitempty"` // before
	NewTodos []ListEntry `json:"newTodos,omitempty"` // after
	Todos    []ListEntry `json:"todos,omitempty"`    // after
	Success  bool        `json:"success,omitempty"`  // of Qoder's document
	Error    string      `json:"error,omitempty"`    // of Qoder's document
}

func (*TodoWriteOutput) isOutput() {}

// TaskCreateInput adds a task to the plan. Its id comes with the output.
type TaskCreateInput struct {
	Subject     string `json:"subject"`              // one line
	Description string `json:"description"`          // what is to be done
	ActiveForm  string `json:"activeForm,omitempty"` // shown while the task is in progress; "": Subject
	// Metadata is an object of the model's own.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*TaskCreateInput) Tool() string { return "TaskCreate" }

// TodoTask is an entry of the list of tasks, as the Task tools report it. Not every one of
// them sets every field.
type TodoTask struct {
	ID          string   `json:"id"`                    // made by the agent
	Subject     string   `json:"subject"`               // one line
	Description string   `json:"description,omitempty"` // "": not said
	Status      string   `json:"status,omitempty"`      // pending, in_progress, completed; "": not said
	Owner       string   `json:"owner,omitempty"`       // name of the agent that works on it; "": no owner
	Blocks      []string `json:"blocks,omitempty"`      // ids
	BlockedBy   []string `json:"blockedBy,omitempty"`   // ids
}

// TaskCreateOutput is the task that was created.
type TaskCreateOutput struct {
	Task TodoTask `json:"task"` // with ID and Subject
}

func (*TaskCreateOutput) isOutput() {}

// TaskGetInput asks for a task.
type TaskGetInput struct {
	TaskID string `json:"taskId"` // TodoTask.ID
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*TaskGetInput) Tool() string { return "TaskGet" }

// TaskGetOutput is the task, or nil.
type TaskGetOutput struct {
	Task *TodoTask `json:"task"` // the whole task
}

func (*TaskGetOutput) isOutput() {}

// TaskUpdateInput changes a task. Empty fields stay unchanged.
type TaskUpdateInput struct {
	TaskID       string          `json:"taskId"`                 // TodoTask.ID
	Subject      string          `json:"subject,omitempty"`      // one line
	Description  string          `json:"description,omitempty"`  // what is to be done
	ActiveForm   string          `json:"activeForm,omitempty"`   // shown while the task is in progress
	Status       string          `json:"status,omitempty"`       // pending, in_progress, completed, deleted
	AddBlocks    []string        `json:"addBlocks,omitempty"`    // ids of tasks that wait for this one
	AddBlockedBy []string        `json:"addBlockedBy,omitempty"` // ids of tasks that this one waits for
	Owner        string          `json:"owner,omitempty"`        // name of the agent that works on it
	Metadata     json.RawMessage `json:"metadata,omitempty"`     // an object to merge; a null value removes its key
	Extra        `json:"-"`
}

// Tool implements [Input].
func (*TaskUpdateInput) Tool() string { return "TaskUpdate" }

// TaskUpdateOutput says what changed.
type TaskUpdateOutput struct {
	Success       bool          `json:"success"`                 // false: Error says why
	TaskID        string        `json:"taskId"`                  // TodoTask.ID
	UpdatedFields []string      `json:"updatedFields,omitempty"` // names of fields, as on the wire
	StatusChange  *StatusChange `json:"statusChange,omitempty"`  // nil: unchanged
	Error         string        `json:"error,omitempty"`         // "": none
	// VerificationNudgeNeeded is of Claude Code before 2.1.329.
	VerificationNudgeNeeded bool `json:"verificationNudgeNeeded,omitempty"`
}

func (*TaskUpdateOutput) isOutput() {}

// StatusChange is a change of a task's status.
type StatusChange struct {
	From string `json:"from"` // as TodoTask.Status
	To   string `json:"to"`   // as TodoTask.Status, or deleted
}

// TaskListInput asks for all tasks.
type TaskListInput struct {
	Extra `json:"-"`
}

// Tool implements [Input].
func (*TaskListInput) Tool() string { return "TaskList" }

// TaskListOutput is all tasks.
type TaskListOutput struct {
	Tasks []TodoTask `json:"tasks"` // without their descriptions
}

func (*TaskListOutput) isOutput() {}

// EnterPlanModeInput asks to plan before anything is changed.
type EnterPlanModeInput struct {
	Reason string `json:"reason,omitempty"` // Qoder's
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*EnterPlanModeInput) Tool() string { return "EnterPlanMode" }

// EnterPlanModeOutput says that plan mode is on.
type EnterPlanModeOutput struct {
	Message string `json:"message,omitempty"` // for the model
	// Summary and Payload are Qoder's.
	Summary string `json:"summary,omitempty"`
	Payload string `json:"payload,omitempty"` // of a form that was not observed
}

func (*EnterPlanModeOutput) isOutput() {}

// ExitPlanModeInput asks for the approval of a plan. Claude Code 2.1.329 drops a
// Plan of the model's own and gives that of its plan file, with PlanFilePath, if
// there is such a file; 2.1.197 passes the model's (observed).
type ExitPlanModeInput struct {
	// AllowedPrompts are what the plan needs to be allowed.
	AllowedPrompts []AllowedPrompt `json:"allowedPrompts,omitempty"`
	Plan           string          `json:"plan,omitempty"`         // Markdown
	PlanFilePath   string          `json:"planFilePath,omitempty"` // on the agent's machine; "": no plan file

	// Of older releases: hand the plan to a remote session.
	PushToRemote       bool   `json:"pushToRemote,omitempty"`       // asks for a remote session
	RemoteSessionID    string `json:"remoteSessionId,omitempty"`    // which remote session; "": none
	RemoteSessionURL   string `json:"remoteSessionUrl,omitempty"`   // the remote session, in a browser
	RemoteSessionTitle string `json:"remoteSessionTitle,omitempty"` // for people

	Confirm bool `json:"confirm,omitempty"` // Qoder's document
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*ExitPlanModeInput) Tool() string { return "ExitPlanMode" }

// AllowedPrompt is a kind of call in words, such as "run tests".
type AllowedPrompt struct {
	Tool   string `json:"tool"`   // Bash
	Prompt string `json:"prompt"` // in words
}

// ExitPlanModeOutput is the plan that was approved.
type ExitPlanModeOutput struct {
	// Plan is nil if no plan was submitted.
	Plan    *string `json:"plan"`
	IsAgent bool    `json:"isAgent"` // a subagent made the plan
	// FilePath is where the plan is kept, on the agent's host.
	FilePath               string `json:"filePath,omitempty"`
	PlanWasEdited          bool   `json:"planWasEdited,omitempty"`          // a person changed the plan
	HasTaskTool            bool   `json:"hasTaskTool,omitempty"`            // the agent has the Agent tool
	AwaitingLeaderApproval bool   `json:"awaitingLeaderApproval,omitempty"` // not approved yet: the team's leader was asked
	RequestID              string `json:"requestId,omitempty"`              // of the question to the leader; "": none
	// Status is approved or rejected, with Feedback. Qoder's.
	Status   string `json:"status,omitempty"`
	Feedback string `json:"feedback,omitempty"` // of the person; "": none
	// Success and Error are of Qoder's document.
	Success bool   `json:"success,omitempty"`
	Error   string `json:"error,omitempty"` // "": none
}

func (*ExitPlanModeOutput) isOutput() {}
