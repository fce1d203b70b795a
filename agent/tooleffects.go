package agent

import (
	"encoding/json"
	"strconv"
	"time"
)

// changeMode is what the two tools of plan mode do.
func (l *Lane) changeMode(c *call) {
	switch c.Name {
	case "EnterPlanMode":
		if l.e.perms.mode != "plan" {
			l.e.perms.change(l.e, "plan")
		}
	case "ExitPlanMode":
		if l.e.perms.mode == "plan" { // the approval may have set another
			l.e.perms.change(l.e, "default")
		}
	}
}

// postToolUse calls the hooks with a tool's result; they may replace its output.
func (l *Lane) postToolUse(s *Strand, c *call, r *ToolResult, took time.Duration) error {
	input := Object{
		"tool_name": c.Name, "tool_input": c.input, "tool_use_id": c.ID,
		"duration_ms": took.Milliseconds(),
	}
	if r.IsError {
		input["error"], input["is_interrupt"] = r.Content, false
		answers, err := l.hookOn(s, "PostToolUseFailure", c.Name, c.ID, input)
		for _, a := range answers {
			c.notes = append(c.notes, notesOf("PostToolUseFailure", c.Name, a)...)
		}
		return err
	}
	input["tool_response"] = r.Content
	if r.Structured != nil {
		input["tool_response"] = r.Structured
	}
	answers, err := l.hookOn(s, "PostToolUse", c.Name, c.ID, input)
	for _, a := range answers {
		c.notes = append(c.notes, notesOf("PostToolUse", c.Name, a)...)
		if a.stops() {
			c.stops = true
		}
		_, _, mcp := mcpTool(c.Name)
		var replaced any
		switch {
		case mcp && len(a.Specific.UpdatedMCPToolOutput) > 0:
			replaced = a.Specific.UpdatedMCPToolOutput
		case len(a.Specific.UpdatedToolOutput) > 0:
			replaced = a.Specific.UpdatedToolOutput
		default:
			continue
		}
		l.replace(c, r, replaced.(json.RawMessage))
	}
	return err
}

// replace puts a hook's output in a tool's place. It must have the shape of
// the tool's own: another one is ignored, as observed.
func (l *Lane) replace(c *call, r *ToolResult, raw json.RawMessage) {
	var text string
	if l.e.cfg.Live != nil && json.Unmarshal(raw, &text) == nil {
		r.Content, r.Structured = text, text
		return
	}
	if _, _, mcp := mcpTool(c.Name); mcp {
		r.Content, r.Structured = raw, raw
		return
	}
	var shape struct {
		Stdout *string `json:"stdout"`
	}
	if c.Name == "Bash" && json.Unmarshal(raw, &shape) == nil && shape.Stdout != nil {
		r.Content, r.Structured = *shape.Stdout, raw
	}
}

const (
	shownAfter = 3 * time.Second  // a foreground command becomes a task
	heartbeat  = 30 * time.Second // between its tool_progress frames
)

// Command plays a shell command in the foreground that takes d. A command that takes
// longer than 3 s is reported as a task. One that takes longer than 30 s sends
// tool_progress frames. Both were observed on Claude Code 2.1.329.
func (s *Strand) Command(toolUseID, description string, d time.Duration) error {
	if d <= shownAfter || s.e.cfg.Dialect == Qoder {
		return s.Sleep(d)
	}
	if err := s.Sleep(shownAfter); err != nil {
		return err
	}
	task := s.e.newTask("local_bash", "b"+s.e.ids.hex(8), description, toolUseID)
	task.started(nil, false)
	for done, beats := shownAfter, 0; done < d; {
		step := min(d-done, heartbeat-done%heartbeat)
		if err := s.Sleep(step); err != nil {
			return err
		}
		if done += step; done%heartbeat == 0 && done < d {
			task.beat(beats, done)
			beats++
		}
	}
	task.hidden("completed")
	return nil
}

// beat says that a command in the foreground still runs.
func (t *Task) beat(n int, elapsed time.Duration) {
	t.e.emit(Object{
		"type": "tool_progress", "tool_use_id": t.toolUseID + "-heartbeat-" + strconv.Itoa(n),
		"tool_name": "Bash", "parent_tool_use_id": t.toolUseID,
		"elapsed_time_seconds": int(elapsed.Seconds()), "heartbeat": true,
	})
}

// hidden ends a command in the foreground that was shown as a task.
func (t *Task) hidden(status string) {
	t.e.system("task_notification", Object{
		"task_id": t.ID, "run_id": t.RunID, "tool_use_id": t.toolUseID,
		"status": status, "output_file": "", "summary": t.Description,
	})
}
