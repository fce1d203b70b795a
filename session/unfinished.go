package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/protocol"
)

// UnfinishedError says that a context ended before the work did. It lists what the
// session waited for at that time, and how much was done. It matches the context's
// error and its cause.
type UnfinishedError struct {
	Doing string // the work: "open session <id>", "run", "query"
	State State  // state of the session when the context ended
	// Waits are the running callbacks of the host, the requests to the agent without an
	// answer, the background tasks, the user messages without a result, and the exit of an
	// agent that is stopped; within each kind the oldest is first.
	Waits []Wait
	// Tools are the tool calls without a result, oldest first, at most 64. A call that
	// waits for a permission is one of them.
	Tools    []RunningTool
	Called   int    // number of tool calls, including those in Tools
	Messages int    // number of the agent's messages that were read
	Text     string // the end of the model's last text, at most 256 bytes
	Err      error  // why the context ended
}

// Wait is one thing that a session waits for. Its JSON form gives the durations in
// milliseconds, as age_ms and limit_ms.
type Wait struct {
	What  string        // "control request set_model", "permission request Bash", "background task npm run dev", "turn written"
	ID    string        // request id, task id or uuid
	Age   time.Duration // how long the session has been waiting
	Limit time.Duration // how long it waits at most; zero: no limit
	SetBy string        // the option that sets Limit, as in TimeoutError.SetBy; empty: no option does
	Since time.Time     // when the wait began, by the runtime's clock; zero: not known
}

// waitJSON is the JSON form of a [Wait].
type waitJSON struct {
	What    string    `json:"what"`
	ID      string    `json:"id"`
	AgeMS   int64     `json:"age_ms"`
	LimitMS int64     `json:"limit_ms"`
	SetBy   string    `json:"set_by"`
	Since   time.Time `json:"since"`
}

// MarshalJSON implements [json.Marshaler].
func (w Wait) MarshalJSON() ([]byte, error) {
	return json.Marshal(waitJSON{w.What, w.ID, w.Age.Milliseconds(), w.Limit.Milliseconds(), w.SetBy, w.Since})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (w *Wait) UnmarshalJSON(raw []byte) error {
	var j waitJSON
	if err := protocol.Unmarshal(raw, &j); err != nil {
		return err
	}
	*w = Wait{j.What, j.ID, time.Duration(j.AgeMS) * time.Millisecond, time.Duration(j.LimitMS) * time.Millisecond, j.SetBy, j.Since}
	return nil
}

// ActorInfo describes one actor of a session. In its JSON form the members from parent on are
// missing where they are zero.
type ActorInfo struct {
	Name        string `json:"name"`         // "router#2"
	State       string `json:"state"`        // "running", "waiting", "stopped"
	Restarts    int    `json:"restarts"`     // how many times its supervisor has restarted it because it had failed itself
	Depth       int    `json:"depth"`        // number of messages in its mailbox
	Handled     int64  `json:"handled"`      // number of messages handled since its last start
	LastFailure string `json:"last_failure"` // text of its last failure; empty if it never failed

	Parent   string    `json:"parent,omitempty"`         // the name of its parent in the same list; empty: the fleet, or none
	Started  time.Time `json:"started,omitzero"`         // when this incarnation began
	FailedAt time.Time `json:"last_failure_at,omitzero"` // when it failed last
	// The supervisor of the actor has counted WindowFailures of all its children in the last
	// WindowMS milliseconds, and gives up above WindowLimit. All three are zero without a failure.
	WindowFailures int   `json:"window_failures,omitempty"` // failures that count now
	WindowLimit    int   `json:"window_limit,omitempty"`    // the most failures that the supervisor takes
	WindowMS       int64 `json:"window_ms,omitempty"`       // the time in which failures count, in milliseconds
	// OldestMS is for how many milliseconds the oldest message of the mailbox has been there, as far
	// as snapshots have seen it: 0 in the first one that finds it.
	OldestMS int64 `json:"oldest_ms,omitempty"`
}

// RunningTool is a tool call without a result.
type RunningTool struct {
	ID   string        // id of the tool_use block
	Name string        // the tool's name as the model wrote it
	Age  time.Duration // time since the message with the call was read
}

func (e *UnfinishedError) Error() string {
	waits := make([]string, len(e.Waits))
	for i, w := range e.Waits {
		waits[i] = aged(w.What, w.ID, w.Age)
	}
	tools := make([]string, len(e.Tools))
	for i, t := range e.Tools {
		tools[i] = aged(t.Name, t.ID, t.Age)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: unfinished when the context ended (%v); session %v", e.Doing, e.Err, e.State)
	writeList(&b, "; waiting for ", waits)
	writeList(&b, "; running tools: ", tools)
	if e.Messages > 0 {
		fmt.Fprintf(&b, "; messages so far: %d, tools called: %d", e.Messages, e.Called)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ", last text %q", e.Text)
	}
	return b.String()
}

func (e *UnfinishedError) Unwrap() error { return e.Err }

// aged is the text of something with an id that has lasted for some time.
func aged(what, id string, age time.Duration) string {
	if id != "" {
		what += " " + shown.Visible(id)
	}
	return fmt.Sprintf("%s (%v)", shown.Visible(what), age.Round(time.Millisecond))
}

// maxListed is how many waits, and how many tools, the text of an error names.
const maxListed = 4

func writeList(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	more := len(items) - maxListed
	if more > 0 {
		items = items[:maxListed]
	}
	b.WriteString(title + strings.Join(items, ", "))
	if more > 0 {
		fmt.Fprintf(b, " and %d more", more)
	}
}
