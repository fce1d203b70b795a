package runtime

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/actors"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// UnfinishedError says that a context ended before the work that it was for, what
// was waited for at that instant, and how far the work had come. It matches the
// error of the context and its cause.
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

// RunningTool is the call of a tool that has no answer yet.
type RunningTool struct {
	ID   string // of the tool_use block
	Name string
	Age  time.Duration // since its message was read
}

// shownWaits is how many waits, and how many tools, the text of an error names.
const shownWaits = 4

func (e *UnfinishedError) Error() string {
	waits := make([]string, len(e.Waits))
	for i, w := range e.Waits {
		waits[i] = show(w.What, w.ID, w.Age)
	}
	tools := make([]string, len(e.Tools))
	for i, t := range e.Tools {
		tools[i] = show(t.Name, t.ID, t.Age)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: unfinished when the context ended (%v); session %v", e.Doing, e.Err, e.State)
	list(&b, "; waiting for ", waits)
	list(&b, "; running tools: ", tools)
	if e.Messages > 0 {
		fmt.Fprintf(&b, "; messages so far: %d, tools called: %d", e.Messages, e.Called)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ", last text %q", e.Text)
	}
	return b.String()
}

func (e *UnfinishedError) Unwrap() error { return e.Err }

func show(what, id string, age time.Duration) string {
	if id != "" {
		what += " " + kernel.Visible(id)
	}
	return fmt.Sprintf("%s (%v)", kernel.Visible(what), age.Round(time.Millisecond))
}

func list(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	more := len(items) - shownWaits
	if more > 0 {
		items = items[:shownWaits]
	}
	b.WriteString(title + strings.Join(items, ", "))
	if more > 0 {
		fmt.Fprintf(b, " and %d more", more)
	}
}

// Unfinished describes the session for somebody whose context has ended with err.
// Call it before the session is closed.
func (s *Session) Unfinished(doing string, err error) *UnfinishedError {
	e := &UnfinishedError{Doing: doing, State: s.State(), Waits: s.core.Ledger.Snapshot().Waits, Err: err}
	if e.State <= actors.Starting {
		e.Waits = append([]Wait{{What: "start of the agent"}}, e.Waits...)
	}
	return e
}

// AwaitReady waits until the agent is initialized. It returns why the session
// ended if it ended before, and an *[UnfinishedError] if ctx did.
func (s *Session) AwaitReady(ctx context.Context) error {
	exec, ledger := s.rt.sys.Executor(), s.core.Ledger
	err := exec.Await(ctx, ledger.Ready())
	if err == nil {
		if ledger.Initialized() != nil && ledger.InitFailure() == nil {
			return nil
		}
		err = exec.Await(ctx, ledger.Done())
	}
	if err != nil {
		return s.Unfinished("open session "+s.id, err)
	}
	return s.endedBy()
}

// Kill kills the agent and waits until nothing is left of the session, at most
// until ctx ends. It returns what is left.
func (s *Session) Kill(ctx context.Context) error {
	if s.State().Terminal() {
		return nil
	}
	s.core.Link.Abort()
	return s.Close(ctx)
}
