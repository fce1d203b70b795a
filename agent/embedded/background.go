package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

// overtime is how long a command may run in the background when it was moved there at its
// timeout.
const overtime = 30 * time.Minute

// goOn leaves the command running in the background, and returns what the model reads now.
func (r *run) goOn(c *command) agent.ToolResult {
	file := filepath.Join(r.t.hands.own, "tasks", r.task+".output")
	r.l.Background(agent.Work{
		ID: r.task, ToolUseID: r.call, Command: r.command, Description: r.description, OutputFile: file, Shown: r.shown,
		Run: func(s *agent.Strand) (status, summary string) { return r.attend(s, c) },
	})
	structured := agent.Object{
		"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": silent(r.command), "backgroundTaskId": r.task,
	}
	if r.limit == 0 {
		return agent.ToolResult{Structured: structured, Content: fmt.Sprintf(
			"Command running in background with ID: %s. Output is being written to: %s. You will be notified when it completes. To check interim output, use Read on that file path.", r.task, file)}
	}
	text := r.t.hands.capped(readable(c.before))
	structured["stdout"], structured["timedOutAfterMs"] = text, r.limit.Milliseconds()
	return agent.ToolResult{Structured: structured, Content: join(text, fmt.Sprintf(
		"Command did not complete within its %s timeout and was moved to the background (ID: %s). Output is being written to: %s. You will be notified when it completes. If it is still running after %s in the background, it will be stopped and you will be notified. It is running now: do not start a second copy while it runs. If it is no longer needed, stop it with TaskStop. To check interim output, use Read on that file path.",
		shortDuration(r.limit), r.task, file, shortDuration(overtime)))}
}

// attend waits for the end of a command in the background.
func (r *run) attend(s *agent.Strand, c *command) (status, summary string) {
	h := r.t.hands
	var exit session.ExitStatus
	late := false
	err := s.Do(func(ctx context.Context) error {
		if r.limit > 0 {
			limited, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer h.seams.Clock.AfterFunc(overtime, func() { cancel(errTimedOut) }).Stop()
			ctx = limited
		}
		late = errors.Is(c.wait(ctx), errTimedOut)
		var err error
		exit, err = c.end()
		return err
	})
	about := "Background command \"" + r.description + "\" "
	code := exitCode(exit)
	switch {
	case err != nil && s.Err() != nil: // it was stopped, or the agent ends
		h.seams.Exec.Go(func() { _, _ = c.end() })
		return "", ""
	case err != nil:
		h.seams.Exec.Go(func() { _, _ = c.end() })
		return "failed", about + "failed: " + err.Error()
	case late:
		return "stopped", about + "was stopped after " + shortDuration(overtime) + " in the background"
	case code != 0:
		return "failed", fmt.Sprintf("%sfailed with exit code %d", about, code)
	}
	return "completed", about + "completed (exit code 0)"
}

// show has the host see a command in the foreground that lasts. stop ends that.
func (r *run) show(report func(func())) (stop func()) {
	if !r.t.background { // as observed
		return func() {}
	}
	clock := r.t.seams.Clock
	began := clock.Now()
	var mu sync.Mutex
	var timer session.Timer
	stopped := false
	after := func(d time.Duration, then func()) {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			timer = clock.AfterFunc(d, then)
		}
	}
	first, every := r.l.Shows()
	var beat func()
	beat = func() {
		elapsed := clock.Now().Sub(began)
		report(func() { r.shown.Beat(elapsed) })
		after(every, beat)
	}
	after(first, func() {
		report(func() { r.shown = r.l.Show(r.task, r.call, r.description) })
		after(every-first, beat)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// taskStop is the tool TaskStop, which models also know as KillShell.
func taskStop() *tool {
	return &tool{
		name:  "TaskStop",
		about: "Stops a command or an agent in the background.",
		params: []param{
			{name: "task_id", kind: "string"},
			{name: "shell_id", kind: "string", hidden: true},
		},
		old: "KillShell",
		look: func(l *agent.Lane, in agent.Object) string {
			switch id := taskID(in); {
			case id == "":
				return "Missing required parameter: task_id"
			case !l.RunsTask(id):
				return "No task found with ID: " + id
			}
			return ""
		},
		free: true,
		act: func(_ *talk, l *agent.Lane, s *agent.Strand, _ string, in agent.Object) (agent.ToolResult, error) {
			id := taskID(in)
			kind, command, found, err := l.StopTask(s, id)
			if err != nil {
				return agent.ToolResult{}, err
			}
			if !found {
				return failure("No task found with ID: %s", id), nil
			}
			type stopped struct { // in this order
				Message  string `json:"message"`
				TaskID   string `json:"task_id"`
				TaskType string `json:"task_type"`
				Command  string `json:"command"`
			}
			o := stopped{"Successfully stopped task: " + id + " (" + command + ")", id, kind, command}
			var text strings.Builder
			e := json.NewEncoder(&text)
			e.SetEscapeHTML(false)
			_ = e.Encode(o) // strings
			return agent.ToolResult{Content: strings.TrimSuffix(text.String(), "\n"), Structured: o}, nil
		},
	}
}

func taskID(in agent.Object) string {
	if id := str(in, "task_id"); id != "" {
		return id
	}
	return str(in, "shell_id")
}

// shortDuration is a duration in words, without parts that are 0: 30m, 1m 30s, 5s.
func shortDuration(d time.Duration) string {
	text := longDuration(d)
	for _, zero := range []string{" 0s", " 0m"} {
		text = strings.TrimSuffix(text, zero)
	}
	return text
}

// longDuration is a duration in words: 1h 0m 0s, 2m 0s, 5s. Parts of a second are left out.
func longDuration(d time.Duration) string {
	seconds := int(d / time.Second)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm %ds", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%dh %dm %ds", seconds/3600, seconds/60%60, seconds%60)
}
