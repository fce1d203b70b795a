package session

import (
	"fmt"
	"strings"
	"time"
)

// UnfinishedError says that a context ended before the work that it was for, what
// the session waited for at that instant, and how far the work had come. It
// matches the error of the context and its cause.
type UnfinishedError struct {
	Doing string // "open session <id>", "run", "query"
	State State  // of the session
	// Waits are the callbacks of the host, the requests to the agent, the background
	// tasks and the user messages without a result, each kind oldest first.
	Waits []Wait
	// Tools are the calls of tools that have no answer yet, oldest first, at most 64.
	// One that waits for a permission is among them.
	Tools    []RunningTool
	Called   int    // tools that were called, those in Tools included
	Messages int    // messages of the agent that were read
	Text     string // the end of the model's last text, at most 256 bytes
	Err      error  // why the context ended
}

// Wait is something that a session waits for.
type Wait struct {
	What  string        // "control request set_model", "permission request Bash", "background task npm run dev", "turn written"
	ID    string        // request id, task id or uuid
	Age   time.Duration // how long it waits
	Limit time.Duration // zero: no limit
}

// ActorInfo describes one actor of a session.
type ActorInfo struct {
	Name        string // "router#2"
	State       string // "running", "waiting", "stopped"
	Restarts    int    // how often its supervisor has started it again
	Depth       int    // messages waiting
	Handled     int64  // messages handled by this incarnation
	LastFailure string // empty: none
}

// RunningTool is the call of a tool that has no answer yet.
type RunningTool struct {
	ID   string        // of the tool_use block
	Name string        // as the model called it
	Age  time.Duration // since its message was read
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
		what += " " + visible(id)
	}
	return fmt.Sprintf("%s (%v)", visible(what), age.Round(time.Millisecond))
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
