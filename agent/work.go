package agent

import (
	"strings"
	"time"
)

// Work is a shell command of an agent with a real model that runs in the background.
type Work struct {
	ID          string // from [Lane.NewTaskID]; required
	ToolUseID   string // of the call
	Command     string // as the shell gets it
	Description string // one line for people
	OutputFile  string // where its output is
	Shown       *Task  // what [Lane.Show] made of it while it ran in the foreground, or nil
	// Run does the work, or waits for it, on the task's own strand. It returns how it ended,
	// which is completed, failed or stopped, and what the host and the model read of that. "" says
	// nothing to anybody: the task was stopped, which has been reported already. It may be that
	// Run is never called: what has begun then ends with the agent.
	Run func(*Strand) (status, summary string)
}

// NewTaskID returns the id of a new shell command.
func (l *Lane) NewTaskID() string { return "b" + l.e.ids.hex(8) }

// Background runs w in the background, until it ends, [Lane.StopTask] or the host stops it, or
// the agent ends. When it has ended by itself, the model reads that in the turn that runs, or
// in a turn that the agent starts.
func (l *Lane) Background(w Work) {
	e := l.e
	task := e.newTask("local_bash", w.ID, w.Description, w.ToolUseID)
	if w.Shown != nil {
		task = w.Shown
	}
	task.file, task.command = w.OutputFile, w.Command
	if w.Shown != nil {
		e.tasks = append(e.tasks, task)
		e.tasksChanged()
		task.updated(Object{"is_backgrounded": true})
	} else {
		e.begun(task, nil)
	}
	task.strand = e.spawn(task.scope, func(s *Strand) { task.endedAs(w.Run(s)) })
}

// endedAs is the end of real work by itself; that of a stopped task has been reported.
func (t *Task) endedAs(status, summary string) {
	if t.over || status == "" || t.e.exit != nil {
		return
	}
	t.notify(status, summary)
	t.e.tasksChanged()
	if status == "stopped" {
		status = "killed"
	}
	t.tell(noticePreamble + "<task-notification>\n<task-id>" + t.ID + "</task-id>\n<tool-use-id>" + t.toolUseID +
		"</tool-use-id>\n<output-file>" + t.file + "</output-file>\n<status>" + status +
		"</status>\n<summary>" + quoteMarkup(summary) + "</summary>\n</task-notification>\n</system-reminder>")
}

// noticePreamble keeps the model from taking what follows for words of the user.
const noticePreamble = "<system-reminder>\n[SYSTEM NOTIFICATION: the user did not write this, and it answers no question]\nA background task has changed its state:\n"

// quoteMarkup keeps a text of the model's own from ending the tag that it stands in.
func quoteMarkup(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text)
}

// StopTask stops a background task and waits until its work has ended. It returns the task's
// kind, local_bash or local_agent, and its command, or the description of the sub-agent; found
// is false if no such task runs.
func (l *Lane) StopTask(s *Strand, id string) (kind, command string, found bool, err error) {
	task := l.e.runningTask(id)
	if task == nil {
		return "", "", false, nil
	}
	task.by = byParent
	task.stop()
	if task.strand != nil {
		err = s.wait(-1, func() bool { return task.strand.done }) // it waits no longer than for its work
	}
	if task.kind == "local_agent" {
		task.stoppedBy("Claude", false)
	}
	return task.kind, task.command, true, err
}

// RunsTask reports whether a background task with the id runs.
func (l *Lane) RunsTask(id string) bool { return l.e.runningTask(id) != nil }

func (e *engine) runningTask(id string) *Task {
	for _, t := range e.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Shows says when the host sees a command in the foreground as a task, and how often it then
// reads that the command still runs (observed on Claude Code 2.1.329).
func (l *Lane) Shows() (after, every time.Duration) { return shownAfter, heartbeat }

// Show reports a command in the foreground as a task.
func (l *Lane) Show(id, toolUseID, description string) *Task {
	t := l.e.newTask("local_bash", id, description, toolUseID)
	t.started(nil, false)
	return t
}

// Beat says that a command that is shown still runs.
func (t *Task) Beat(elapsed time.Duration) {
	t.beat(t.beats, elapsed)
	t.beats++
}

// Hide says that a command that is shown has ended: completed, failed or stopped.
func (t *Task) Hide(status string) {
	if t != nil {
		t.hidden(status)
	}
}
