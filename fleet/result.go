package fleet

import (
	"encoding/json"
	"time"
)

// Status is how a task ended.
type Status string

// Statuses. Only Accepted is a success.
const (
	Accepted Status = "accepted" // verified, or a success that is not suspicious

	// The agent's outcome.
	Rejected   Status = "rejected"   // the verification said no
	Suspicious Status = "suspicious" // a success without an answer, or without the tool call or change that was expected
	Incomplete Status = "incomplete" // background work was alive at the end
	Failed     Status = "failed"     // the agent's result is an error

	// Limits.
	MaxTurns    Status = "max_turns"
	OverBudget  Status = "over_budget"  // the task's budget
	TimedOut    Status = "timed_out"    // Task.Timeout
	ContextFull Status = "context_full" // the conversation is too long for the model

	// Infrastructure.
	Overloaded   Status = "overloaded"    // the model's API failed, also after the retries
	Crashed      Status = "crashed"       // the agent died or did not answer, also after the retries
	NotStarted   Status = "not_started"   // the agent, or its setup, could not start
	BadWorkspace Status = "bad_workspace" // the workspace cannot be made, or is no longer what it was
	NotVerified  Status = "not_verified"  // the verifier itself failed
	Quarantined  Status = "quarantined"   // too many starts of any kind; see Job.MaxStarts
	Invalid      Status = "invalid"       // options that cannot work
	Unauthorized Status = "unauthorized"  // not logged in: the job stops, and the task is not over
	UsageLimit   Status = "usage_limit"   // a subscription window is spent: the job waits or stops (Job.MaxPark), and the task is not over

	// Not run.
	Skipped  Status = "skipped"  // Before said so, or a task of After was not accepted
	Canceled Status = "canceled" // by hand; see Handle.CancelTask
	// Interrupted is the status of an attempt that the end of the job cut short. A task
	// never has it: it continues when the job is resumed.
	Interrupted Status = "interrupted"
)

// Family groups statuses by whose matter they are: "success", "agent", "limit",
// "infrastructure", or "not_run".
type Family string

const (
	familySuccess        Family = "success"
	familyAgent          Family = "agent"
	familyLimit          Family = "limit"
	familyInfrastructure Family = "infrastructure"
	familyNotRun         Family = "not_run"
)

// Family returns the family of the status; infrastructure for a status that this release
// does not know.
func (s Status) Family() Family {
	switch s {
	case Accepted:
		return familySuccess
	case Rejected, Suspicious, Incomplete, Failed:
		return familyAgent
	case MaxTurns, OverBudget, TimedOut, ContextFull:
		return familyLimit
	case Skipped, Canceled, Interrupted:
		return familyNotRun
	}
	return familyInfrastructure
}

// known reports whether the status exists.
func (s Status) known() bool {
	switch s {
	case Overloaded, Crashed, NotStarted, BadWorkspace, NotVerified, Quarantined, Invalid, Unauthorized, UsageLimit:
		return true
	}
	return s.Family() != familyInfrastructure
}

// TaskResult is how a task ended. Its JSON form is a line of results.jsonl. Paths are
// relative to Job.Out.
type TaskResult struct {
	ID     string `json:"id"`
	Status Status `json:"status"`
	Family Family `json:"family"`
	// Text is the agent's last answer, and Structured its structured output. In the journal
	// what is above 64 KiB is in TextFile or StructuredFile instead; results have it whole.
	Text           string          `json:"text,omitempty"`
	TextFile       string          `json:"textFile,omitempty"`
	Structured     json.RawMessage `json:"structured,omitempty"`
	StructuredFile string          `json:"structuredFile,omitempty"`
	// Error says why the task was not accepted; Class is the kind of the error, such as
	// ResultError, ExitError or TimeoutError.
	Error string `json:"error,omitempty"`
	Class string `json:"class,omitempty"`
	// Verdict is the last answer of the verifier, or nil.
	Verdict *Verdict `json:"verdict,omitempty"`
	Usage   Usage    `json:"usage"` // of all attempts
	// Denied counts the calls of tools that were denied in the last attempt.
	Denied int `json:"denied,omitempty"`
	// Denials are the first 20 of them.
	Denials   []Denial `json:"denials,omitempty"`
	ToolCalls int      `json:"toolCalls,omitempty"` // of the last attempt
	// Subagents counts the subagents of the last attempt, and SubagentsDenied the calls that
	// Job.Subagents denied. Both are 0 without it.
	Subagents       int       `json:"subagents,omitempty"`
	SubagentsDenied int       `json:"subagentsDenied,omitempty"`
	Attempts        []Attempt `json:"attempts,omitempty"`
	SessionID       string    `json:"sessionId,omitempty"` // of the agent
	Workspace       string    `json:"workspace,omitempty"`
	Transcript      string    `json:"transcript,omitempty"` // file of the last attempt, one message of the agent on each line
	Diff            string    `json:"diff,omitempty"`       // file: what the task changed in its git repository
	Tags            []string  `json:"tags,omitempty"`
	// OnAccept is the outcome of Job.OnAccept; nil without one, or if the task was not
	// accepted.
	OnAccept *OnAccept `json:"onAccept,omitempty"`
	// Requeued counts the requests to run the task again after it had a result (see
	// Handle.Requeue). A result replaces those of the task with a lower number.
	Requeued int `json:"requeued,omitempty"`
	// Fence is that of the lease under which the task ran; see [queue.Lease]. 0: another
	// program had it, and the task was canceled here.
	Fence uint64 `json:"fence,omitempty"`
	// Worker is the program that ran the task, of a job with Job.Queue. The transcript and the
	// diff of another program's result are in Job.Files: under the fence, a slash and the path.
	Worker  string    `json:"worker,omitempty"`
	Started time.Time `json:"started,omitzero"` // of the first attempt
	Ended   time.Time `json:"ended"`
	// Err is the error behind Error. nil for results of an earlier process.
	Err error `json:"-"`
	// Earlier says that an earlier process of the job has already had the result.
	Earlier bool `json:"-"`
}

// OK reports whether the task was accepted.
func (r *TaskResult) OK() bool { return r.Status == Accepted }

// Denial is a call of a tool that was denied.
type Denial struct {
	Tool string `json:"tool"`
	// Input are the arguments as JSON, or their first 200 bytes and an ellipsis; "": none.
	Input string `json:"input,omitempty"`
	// Reason is what the model has read instead of a result, or its first 200 bytes and an
	// ellipsis; "": the agent did not say.
	Reason string `json:"reason,omitempty"`
}

// OnAccept is what became of Job.OnAccept for an accepted task.
type OnAccept struct {
	State OnAcceptState `json:"state"`
	// Output is what the command has printed, at most the last 4 KiB.
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"` // why the state is failed or unknown
}

// OnAcceptState is how far the command of Job.OnAccept has come: "pending", it has not begun,
// and a resume runs it; "running"; "done", it has ended with 0; "failed", it has not; or
// "unknown": the host died, or was killed, while the command ran. It may have had its effect,
// so only [Handle.RunOnAccept] runs it again.
type OnAcceptState string

const (
	onAcceptPending OnAcceptState = "pending"
	onAcceptRunning OnAcceptState = "running"
	onAcceptDone    OnAcceptState = "done"
	onAcceptFailed  OnAcceptState = "failed"
	onAcceptUnknown OnAcceptState = "unknown"
)

// Attempt is one start of a task.
type Attempt struct {
	Number  int       `json:"number"` // from 1
	Status  Status    `json:"status"`
	Error   string    `json:"error,omitempty"`
	Class   string    `json:"class,omitempty"`
	Mode    Mode      `json:"mode"`
	Session string    `json:"session,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Usage   Usage     `json:"usage"`
	// Note says whose work the attempt continues, or why it begins anew although another program had begun the
	// task. Default: "", neither.
	Note string `json:"note,omitempty"`
}

// Mode is how an attempt begins: "fresh", with a new session and a new workspace; "resume",
// with the session of an earlier attempt, in its workspace; "again", with a new session in
// the workspace of an earlier attempt, with a note for the agent; or "moved", with the session and the
// workspace of another program (Job.Move).
type Mode string

const (
	modeFresh  Mode = "fresh"
	modeResume Mode = "resume"
	modeAgain  Mode = "again"
	modeMoved  Mode = "moved"
)
