package agent

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// SubAgent is a sub-agent of an agent with a real model.
type SubAgent struct {
	ID          string // from [Lane.NewAgentID]; required
	ToolUseID   string // of the call
	Description string // one line for people
	Prompt      string // what it is asked to do
	Type        string // the name of its kind
	Model       string // "": the session's
	Background  bool   // the call does not wait for it
	OutputFile  string // where its report will be; "": nowhere
	// Cwd is the directory in which its next call begins, which hooks get; nil: that of the session.
	Cwd func() string
	// History gets the lines of its conversation, for the file [Lane.AgentFile]; required.
	History History
	// Play does the work, on the sub-agent's own strand, and returns its report. It is called
	// again if a hook has blocked the end: the conversation says why.
	Play func(l *Lane) (report string, err error)
}

// AgentEnd is how a sub-agent has ended.
type AgentEnd struct {
	Status string // completed, failed, or stopped
	Report string // its last words
	Err    error  // why it has not completed; nil if it has
	Tokens int    // of its last answer
	Calls  int    // of tools
	Millis int64  // that it took
	Usage  Object // of its last answer
	// By is who has stopped it: parent, which is the model that has started it, user, or system,
	// at the end of the session; "": it was not stopped.
	By string
}

const (
	byParent = "parent"
	byUser   = "user"
	bySystem = "system"
)

// NewAgentID returns the id of a new sub-agent.
func (l *Lane) NewAgentID() string { return "a" + l.e.ids.hex(16) }

// AgentID is the id of the sub-agent that the lane is of; "": it is the main conversation.
func (l *Lane) AgentID() string { return l.agentID }

// LastText is the last text of the last answer, or "" if it had no text.
func (l *Lane) LastText() string { return l.lastText }

// Depth is how deep the lane is: 0 is the main conversation.
func (l *Lane) Depth() int {
	if l.own == nil {
		return 0
	}
	return l.own.depth
}

// AgentsRun is how many sub-agents of real models run in the session.
func (l *Lane) AgentsRun() int { return len(l.e.sidechains) }

// RunAgent runs a sub-agent. In the foreground it returns when that has ended, also if the
// host has stopped it alone; an error says that the turn, or the agent around it, was aborted:
// return it. In the background it returns at once, and when the sub-agent has ended, the model
// reads that, in the turn that runs or in one that the agent starts. ended, if it is not nil,
// is called then, on the sub-agent's lane.
//
// All work on the sub-agent's lane ends with the sub-agent.
func (l *Lane) RunAgent(s *Strand, a SubAgent, ended func(*Lane, AgentEnd)) (AgentEnd, error) {
	e := l.e
	own := &sidechain{e: e, up: l.own, id: a.ID, depth: l.Depth() + 1, model: a.Model, cwd: a.Cwd, history: a.History}
	if dollars, limited := l.left(); limited {
		own.share = dollars / 2
	}
	if e.cfg.Now != nil {
		own.began = e.cfg.Now()
	}
	task := e.newTask("local_agent", a.ID, a.Description, a.ToolUseID)
	task.agentType, task.file, task.command = a.Type, a.OutputFile, a.Description
	own.task = task
	about := Object{"prompt": a.Prompt, "subagent_type": a.Type, "spawn_depth": own.depth}
	if l.own != nil {
		about["parent_task_id"] = l.own.id
	}
	if a.Background {
		e.begun(task, about)
	} else {
		task.scope.parent = s.scope
		task.started(about, false)
		e.watched = append(e.watched, task)
	}
	e.sidechains = append(e.sidechains, own)
	r := &agentRun{SubAgent: a, task: task, ended: ended}
	task.strand = e.spawn(task.scope, func(s *Strand) {
		lane := l.sub(s, task, a.Background)
		lane.own = own
		if a.Background {
			lane.turn = nil
		}
		r.play(lane)
	})
	if a.Background {
		err := s.wait(-1, func() bool { return r.begun || task.strand.done })
		if err != nil {
			task.stop() // its call has no result that says that it works
		}
		return AgentEnd{}, err
	}
	if err := s.join(func() bool { return task.strand.done }); err != nil {
		return AgentEnd{}, err
	}
	if err := s.scope.cause(); err != nil {
		return r.end, &cutError{task, err}
	}
	return r.end, nil
}

// agentRun is a sub-agent of a real model at work.
type agentRun struct {
	SubAgent
	task  *Task
	end   AgentEnd
	begun bool // the hooks know of it
	ended func(*Lane, AgentEnd)
}

// play is the whole life of a sub-agent.
func (r *agentRun) play(l *Lane) {
	e, own := l.e, l.own
	report, err := r.work(l)
	if l.live != nil { // what it had said when it was stopped
		l.recordBlocks("")
	}
	if l.background && errors.Is(l.s.scope.cause(), errKilledTask) {
		note := "[Request interrupted by user]"
		if own.cut {
			note = "[Request interrupted by user for tool use]"
		}
		l.UserText(note, nil)
	}
	e.sidechains = slices.DeleteFunc(e.sidechains, func(o *sidechain) bool { return o == own })
	e.watched = slices.DeleteFunc(e.watched, func(t *Task) bool { return t == r.task })
	r.end = AgentEnd{Status: "completed", Report: report, Err: err, Tokens: own.tokens(), Calls: own.calls, Millis: own.took().Milliseconds(), Usage: own.last}
	if h, ok := own.history.(Syncer); ok {
		h.Rest()
	}
	switch {
	case e.exit != nil || errors.Is(err, errOver):
		r.end.Status, r.end.By = "stopped", bySystem
		return
	case l.s.scope.cause() != nil: // who has stopped it has reported that, or reports it
		r.end.Status, r.end.By = "stopped", cmp.Or(r.task.by, byUser)
	case err != nil:
		r.end.Status = "failed"
	}
	if r.ended != nil {
		r.ended(l, r.end)
	}
	if r.end.Status != "stopped" {
		r.notify(own)
	}
}

// work is the sub-agent up to its report.
func (r *agentRun) work(l *Lane) (report string, err error) {
	answers, err := l.Hook("SubagentStart", r.Type, nil)
	r.begun = true
	if err != nil {
		return "", err
	}
	l.asked(r.Prompt)
	for _, a := range answers {
		l.remind(notesOf("SubagentStart", r.Type, a))
	}
	for {
		if report, err = r.Play(l); err != nil {
			return report, err
		}
		again, err := l.mayEnd(report)
		if err != nil || !again {
			return report, err
		}
	}
}

// asked begins the conversation of a sub-agent. The host sees it only of one that the main
// conversation waits for, as observed on Claude Code 2.1.329.
func (l *Lane) asked(prompt string) {
	o := Object{"uuid": l.e.ids.uuid(), "message": Object{"role": "user", "content": []any{Object{"type": "text", "text": prompt}}}}
	if l.background || l.own.depth > 1 {
		l.recordUser(o)
		return
	}
	l.userFrame(o)
}

// mayEnd asks the hooks whether the sub-agent has done its work. A block makes it continue.
func (l *Lane) mayEnd(report string) (again bool, err error) {
	answers, err := l.Hook("SubagentStop", l.agentType, Object{
		"stop_hook_active": l.own.blocked, "last_assistant_message": report,
		"agent_transcript_path": l.e.agentTranscriptPath(l.agentID),
		"background_tasks":      l.e.taskList(), "session_crons": []any{},
	})
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(answers, func(a HookAnswer) bool { return a.Decision == "block" })
	if i < 0 {
		return false, nil
	}
	l.own.blocked = true
	l.UserText("SubagentStop hook feedback:\n"+answers[i].Reason, Object{"isSynthetic": true})
	return true, nil
}

// haltAll is a refusal in a sub-agent that ends all: the turn, or the sub-agent in the background that
// it belongs to.
func (l *Lane) haltAll() {
	switch {
	case l.own == nil:
	case l.turn != nil:
		l.turn.halted = true
		l.e.interrupt()
	default:
		outer := l.own
		for outer.up != nil {
			outer = outer.up
		}
		outer.task.stop()
		outer.task.stoppedBy("the user", true)
		if l.e.idle() {
			l.e.setStateOnce("idle")
		}
	}
}

// notify reports the end of a sub-agent that has ended by itself.
func (r *agentRun) notify(own *sidechain) {
	t := r.task
	if t.over {
		return
	}
	t.over = true
	e := t.e
	e.tasks = slices.DeleteFunc(e.tasks, func(o *Task) bool { return o == t })
	change := Object{"status": r.end.Status}
	if e.cfg.Now != nil {
		change["end_time"] = e.cfg.Now().UnixMilli()
	}
	o := Object{
		"task_id": t.ID, "run_id": t.RunID, "tool_use_id": t.toolUseID, "status": r.end.Status,
		"output_file": t.outputFile(), "summary": r.end.Report,
	}
	about := `Agent "` + t.Description + `" finished`
	if r.end.Err != nil {
		change["error"], o["summary"] = r.end.Err.Error(), r.end.Err.Error()
		about = `Agent "` + t.Description + `" failed: ` + r.end.Err.Error()
	} else {
		o["usage"] = own.usage()
	}
	if r.Background && r.end.Err == nil {
		o["summary_is_report"] = true
	}
	t.updated(change)
	e.system("task_notification", o)
	if !r.Background {
		return
	}
	e.tasksChanged()
	more := ""
	if r.end.Err == nil {
		more = "\n<result>" + quoteMarkup(r.end.Report) + "</result>\n<usage><subagent_tokens>" + strconv.Itoa(r.end.Tokens) +
			"</subagent_tokens><tool_uses>" + strconv.Itoa(r.end.Calls) + "</tool_uses><duration_ms>" + strconv.FormatInt(r.end.Millis, 10) + "</duration_ms></usage>"
	}
	t.tell(t.agentNotice(r.end.Status, about, more))
}

// agentNotice is what the model reads of the end of a sub-agent in the background.
func (t *Task) agentNotice(status, about, more string) string {
	return strings.Join([]string{
		noticePreamble + "<task-notification>", "<task-id>" + t.ID + "</task-id>", "<tool-use-id>" + t.toolUseID + "</tool-use-id>",
		"<output-file>" + t.file + "</output-file>", "<status>" + status + "</status>", "<summary>" + quoteMarkup(about) + "</summary>" + more,
		"</task-notification>\n</system-reminder>",
	}, "\n")
}

// stoppedBy tells the model that a sub-agent in the background was stopped. If the model did
// that itself, it reads so in a separate turn, as observed on Claude Code 2.1.329. If the host
// did, no turn begins because of it.
func (t *Task) stoppedBy(who string, host bool) {
	e := t.e
	text := t.agentNotice("killed", `Agent "`+t.Description+`" was stopped by `+who, "")
	if host && e.turn == nil && len(e.inbox) == 0 {
		e.attach("queued_command", Object{"prompt": text, "commandMode": "task-notification"})
		return
	}
	e.enqueue(&message{uuid: e.ids.uuid(), query: true, origin: t, alone: !host, prompt: text})
}
