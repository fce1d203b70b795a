package agent

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Task is a background task.
type Task struct {
	ID, RunID   string // the ids in task_started
	Description string // one line for people

	e         *engine
	scope     *scope
	kind      string // local_agent, local_bash
	agentType string
	toolUseID string
	over      bool
	then      func(*Turn) error
	file      string  // of its output, if that is real
	command   string  // of a real shell command
	strand    *Strand // of a real task in the background
	by        string  // who has stopped it, if that is not the host
	beats     int     // so often the host has read that it runs
}

// AgentSpec describes a sub-agent.
type AgentSpec struct {
	Description string            // description of the Agent call
	Prompt      string            // prompt of the Agent call
	Type        string            // "" means general-purpose
	Background  bool              // true: the call does not wait for the sub-agent
	Play        func(*Lane) error // what the sub-agent does
	Report      string            // the sub-agent's final text
	// Then plays the turn that the agent itself starts when a background task has ended;
	// nil: the turn has one line of text.
	Then func(*Turn) error
}

// AgentCall returns the tool call that starts a sub-agent.
func (l *Lane) AgentCall(spec AgentSpec) ToolCall {
	spec.Type = cmp.Or(spec.Type, "general-purpose")
	tc := ToolCall{
		ID: "toolu_" + l.e.ids.hex(12), Name: "Agent", Input: Object{
			"description": spec.Description, "prompt": spec.Prompt,
			"subagent_type": spec.Type, "run_in_background": spec.Background,
		},
	}
	tc.Run = func(s *Strand, _ Object) (ToolResult, error) {
		task := l.e.newTask("local_agent", "a"+l.e.ids.hex(16), spec.Description, tc.ID)
		task.agentType, task.then = spec.Type, spec.Then
		if spec.Background {
			return l.launch(s, task, spec)
		}
		return l.runAgent(s, task, spec)
	}
	return tc
}

func (e *engine) newTask(kind, id, description, toolUseID string) *Task {
	return &Task{
		ID: id, RunID: "0" + e.ids.hex(8) + "-" + e.ids.hex(8), Description: description,
		e: e, scope: &scope{}, kind: kind, toolUseID: toolUseID,
	}
}

// sub is the lane of a sub-agent of l.
func (l *Lane) sub(s *Strand, task *Task, background bool) *Lane {
	return &Lane{
		e: l.e, s: s, scope: s.scope, turn: l.turn, parent: task.toolUseID, agentID: task.ID,
		agentType: task.agentType, description: task.Description, background: background, task: task,
	}
}

// runAgent is a sub-agent in the foreground: the call lasts as long as it does.
func (l *Lane) runAgent(s *Strand, task *Task, spec AgentSpec) (ToolResult, error) {
	task.started(Object{"prompt": spec.Prompt, "subagent_type": task.agentType, "spawn_depth": 1}, false)
	lane := l.sub(s, task, false)
	if _, err := lane.Hook("SubagentStart", task.agentType, nil); err != nil {
		return ToolResult{}, &cutError{task, err}
	}
	lane.UserText(spec.Prompt, nil)
	if spec.Play != nil {
		if err := spec.Play(lane); err != nil {
			return ToolResult{}, &cutError{task, err}
		}
	}
	if err := lane.subagentStop(spec.Report); err != nil {
		return ToolResult{}, &cutError{task, err}
	}
	task.notify("completed", spec.Report)
	content := []any{Object{"type": "text", "text": spec.Report}}
	return ToolResult{Content: content, Structured: Object{
		"status": "completed", "prompt": spec.Prompt, "agentId": task.ID, "agentType": task.agentType,
		"content": content, "totalToolUseCount": 0, "totalTokens": inputTokens + outputTokens,
	}}, nil
}

// cutError is a foreground task that was cut off: its end is reported after the
// result of the call it ran in.
type cutError struct {
	task *Task
	err  error
}

func (c *cutError) Error() string { return c.err.Error() }
func (c *cutError) Unwrap() error { return c.err }

// reportCut does that.
func reportCut(err error) {
	var c *cutError
	if errors.As(err, &c) && (errors.Is(err, errAborted) || c.task.e.cfg.Live != nil && errors.Is(err, errKilledTask)) {
		c.task.notify("stopped", c.task.Description)
	}
}

func (l *Lane) subagentStop(report string) error {
	_, err := l.Hook("SubagentStop", l.agentType, Object{
		"stop_hook_active": false, "last_assistant_message": report,
		"agent_transcript_path": l.e.agentTranscriptPath(l.agentID),
		"background_tasks":      l.e.taskList(), "session_crons": []any{},
	})
	return err
}

// launch starts a sub-agent in the background: the call returns at once.
func (l *Lane) launch(s *Strand, task *Task, spec AgentSpec) (ToolResult, error) {
	l.e.begun(task, Object{"prompt": spec.Prompt, "subagent_type": task.agentType, "spawn_depth": 1})
	hookLane := l.sub(s, task, true)
	if _, err := hookLane.Hook("SubagentStart", task.agentType, nil); err != nil {
		task.stop()
		return ToolResult{}, err
	}
	l.e.spawn(task.scope, func(s *Strand) {
		lane := l.sub(s, task, true)
		lane.turn = nil
		err := s.scope.cause()
		if err == nil && spec.Play != nil {
			err = spec.Play(lane)
		}
		if err == nil {
			err = lane.subagentStop(spec.Report)
		}
		task.ended(err, spec.Report)
	})
	return ToolResult{
		Content: []any{Object{"type": "text", "text": "Async agent launched successfully. agentId: " + task.ID}},
		Structured: Object{
			"isAsync": true, "status": "async_launched", "agentId": task.ID, "description": task.Description,
			"prompt": spec.Prompt, "outputFile": task.outputFile(), "canReadOutputFile": true,
		},
	}, nil
}

// ShellSpec describes a shell command in the background.
type ShellSpec struct {
	Command     string            // command of the Bash call
	Description string            // description of the Bash call
	Took        time.Duration     // how long the command runs
	ExitCode    int               // 0: completed; otherwise failed
	Gate        Gate              // whether the call needs permission
	Then        func(*Turn) error // see AgentSpec.Then
}

// ShellCall returns the tool call that starts a shell command in the background.
func (l *Lane) ShellCall(spec ShellSpec) ToolCall {
	tc := ToolCall{
		ID: "toolu_" + l.e.ids.hex(12), Name: "Bash", Gate: spec.Gate, Input: Object{
			"command": spec.Command, "description": spec.Description, "run_in_background": true,
		},
	}
	tc.Run = func(*Strand, Object) (ToolResult, error) {
		task := l.e.newTask("local_bash", "b"+l.e.ids.hex(8), spec.Description, tc.ID)
		task.then = spec.Then
		l.e.begun(task, nil)
		l.e.spawn(task.scope, func(s *Strand) {
			err := s.Sleep(spec.Took)
			status := "completed (exit code 0)"
			if spec.ExitCode != 0 {
				status = "failed with exit code " + strconv.Itoa(spec.ExitCode)
			}
			task.ended(err, `Background command "`+spec.Description+`" `+status)
		})
		text := "Command running in background with ID: " + task.ID + ". Output is being written to: " + task.outputFile()
		return ToolResult{Content: text, Structured: Object{
			"stdout": "", "stderr": "", "interrupted": false, "isImage": false,
			"noOutputExpected": false, "backgroundTaskId": task.ID,
		}}, nil
	}
	return tc
}

// begun adds a background task to the level and announces it.
func (e *engine) begun(task *Task, more Object) {
	e.tasks = append(e.tasks, task)
	e.tasksChanged()
	task.started(more, true)
}

func (t *Task) started(more Object, background bool) {
	t.e.system("task_started", Object{
		"task_id": t.ID, "run_id": t.RunID, "tool_use_id": t.toolUseID, "description": t.Description,
		"is_backgrounded": background, "task_type": t.kind,
	}.with(more))
}

// progress reports that a sub-agent makes a call.
func (t *Task) progress(c *call) {
	what := c.Name
	if d, ok := c.Input["description"].(string); ok {
		what = d
	}
	t.e.system("task_progress", Object{
		"task_id": t.ID, "run_id": t.RunID, "tool_use_id": t.toolUseID, "description": "Running " + what,
		"subagent_type": t.agentType, "last_tool_name": c.Name,
		"usage": Object{"total_tokens": inputTokens, "tool_uses": 1, "duration_ms": 0},
	})
}

// ended is the end of a background task by itself; a stopped one has been
// reported already.
func (t *Task) ended(err error, summary string) {
	if t.over || errors.Is(err, errOver) || errors.Is(err, errKilledTask) {
		return
	}
	status := "completed"
	if err != nil {
		status, summary = "failed", err.Error()
	}
	t.notify(status, summary)
	t.e.tasksChanged()
	t.tell("<task-notification>\n<task-id>" + t.ID + "</task-id>\n<status>" + status +
		"</status>\n<summary>" + summary + "</summary>\n</task-notification>")
}

// tell has the model read that the task has ended: in the turn that runs, or in a turn for
// it alone.
func (t *Task) tell(prompt string) {
	t.e.enqueue(&message{uuid: t.e.ids.uuid(), query: true, origin: t, prompt: prompt})
}

// notify takes the task off the level and reports its end.
func (t *Task) notify(status, summary string) {
	if t.over {
		return
	}
	t.over = true
	t.e.tasks = slices.DeleteFunc(t.e.tasks, func(o *Task) bool { return o == t })
	patch := status
	if status == "stopped" {
		patch = "killed"
	}
	change := Object{"status": patch}
	if t.e.cfg.Live != nil && t.e.cfg.Now != nil {
		change["end_time"] = t.e.cfg.Now().UnixMilli()
	}
	t.updated(change)
	t.e.system("task_notification", Object{
		"task_id": t.ID, "run_id": t.RunID, "tool_use_id": t.toolUseID, "status": status,
		"output_file": t.outputFile(), "summary": summary,
	})
}

func (t *Task) updated(patch Object) {
	t.e.system("task_updated", Object{"task_id": t.ID, "run_id": t.RunID, "patch": patch})
}

// stop kills the task.
func (t *Task) stop() {
	if t.over {
		return
	}
	t.e.withdrawAll(t.scope)
	t.scope.err = errKilledTask
	t.notify("stopped", t.Description)
	t.e.tasksChanged()
}

func (e *engine) stopTask(id string) bool {
	all := slices.Concat(e.tasks, e.watched)
	i := slices.IndexFunc(all, func(t *Task) bool { return t.ID == id })
	if i < 0 {
		return false
	}
	stopped := all[i]
	stopped.stop()
	if e.cfg.Live != nil && stopped.kind == "local_agent" && !slices.Contains(e.watched, stopped) {
		stopped.stoppedBy("the user", true)
	}
	return true
}

// idle reports whether the session's state is idle: no turn, no message and no
// subagent.
func (e *engine) idle() bool { return e.turn == nil && len(e.inbox) == 0 && !e.agentsRun() }

func (e *engine) stopTasks() {
	for _, t := range slices.Clone(e.tasks) {
		t.stop()
	}
}

// tasksChanged reports the level: every background task that lives.
func (e *engine) tasksChanged() {
	list := []any{}
	for _, t := range e.tasks {
		o := Object{"task_id": t.ID, "run_id": t.RunID, "task_type": t.kind, "description": t.Description}
		if t.agentType != "" {
			o["subagent_type"] = t.agentType
		}
		list = append(list, o)
	}
	e.system("background_tasks_changed", Object{"tasks": list})
}

// agentsRun reports whether a sub-agent works in the background: the session
// is not idle then.
func (e *engine) agentsRun() bool {
	return slices.ContainsFunc(e.tasks, func(t *Task) bool { return t.kind == "local_agent" })
}

// taskList is the level as Stop hooks see it.
func (e *engine) taskList() []any {
	list := []any{}
	for _, t := range e.tasks {
		kind := "subagent"
		if t.kind == "local_bash" {
			kind = "shell"
		}
		list = append(list, Object{
			"id": t.ID, "type": kind, "status": "running", "description": t.Description, "agent_type": t.agentType,
		})
	}
	return list
}

func (t *Task) outputFile() string {
	if t.e.cfg.Live != nil {
		return t.file
	}
	return "/tmp/agent/" + t.e.session.id + "/tasks/" + t.ID + ".output"
}

// transcriptPath is where Claude Code keeps a session, or a real agent its own.
func (e *engine) transcriptPath() string {
	if e.cfg.Live != nil {
		return e.configDir() + "/" + e.sessionFile(e.session.id)
	}
	home := e.launch.Getenv("HOME")
	return home + "/.claude/projects/" + strings.ReplaceAll(e.session.cwd, "/", "-") + "/" + e.session.id + ".jsonl"
}

func (e *engine) agentTranscriptPath(agentID string) string {
	if e.cfg.Live != nil {
		return e.configDir() + "/" + e.agentFile(agentID)
	}
	return strings.TrimSuffix(e.transcriptPath(), ".jsonl") + "/subagents/agent-" + agentID + ".jsonl"
}

func (e *engine) agentFile(agentID string) string {
	return strings.TrimSuffix(e.sessionFile(e.session.id), ".jsonl") + "/subagents/agent-" + agentID + ".jsonl"
}
