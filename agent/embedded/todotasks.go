package embedded

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// does makes a tool of what it says about the list. The list itself changes when the log has
// the result.
func does(says func(s *todos, in agent.Object) (text string, structured agent.Object)) func(*talk, *agent.Lane, *agent.Strand, string, agent.Object) (agent.ToolResult, error) {
	return func(t *talk, _ *agent.Lane, _ *agent.Strand, id string, in agent.Object) (agent.ToolResult, error) {
		text, structured := says(&t.log.todos, in)
		if before, changes := t.log.todos.open[id]; changes && !same(before, in) {
			structured["troupe"] = in
		}
		return agent.ToolResult{Content: text, Structured: structured}, nil
	}
}

// same reports whether a call runs with the input that the log has.
func same(logged, in agent.Object) bool {
	logged = maps.Clone(logged)
	delete(logged, "tool")
	a, errA := json.Marshal(logged)
	b, errB := json.Marshal(in)
	return errA == nil && errB == nil && string(a) == string(b)
}

// alone is for calls that wait for those before them.
func alone(*hands, agent.Object) bool { return false }

// taskTools are the to-do tools of Claude Code 2.1.329 (observed).
func taskTools() []*tool { return []*tool{taskCreate(), taskGet(), taskList(), taskUpdate()} }

func taskCreate() *tool {
	t := &tool{
		name:   "TaskCreate",
		about:  "Adds a task to the list of what is to be done. Use the list for work of several steps.",
		free:   true,
		beside: alone,
		params: []param{
			{name: "subject", kind: "string", required: true, aliases: []string{"title", "content", "name", "task"}},
			{name: "description", kind: "string", required: true},
			{name: "activeForm", kind: "string", about: "Such as Running tests."},
			{name: "metadata", kind: "record", schema: `"type":"object"`},
		},
		fix: fixTask,
	}
	t.act = does(func(s *todos, in agent.Object) (string, agent.Object) {
		id := strconv.Itoa(s.last + 1)
		task := agent.Object{"id": id, "subject": str(in, "subject"), "description": str(in, "description")}
		return "Task #" + id + " created successfully: " + str(in, "subject"), agent.Object{"task": task}
	})
	return t
}

// fixTask gives a task what it lacks: a description for a subject, and the other way round.
// It leaves out unknown members, and those that are not texts.
func fixTask(t *tool, in agent.Object) string {
	t.aliased(in)
	for from, to := range map[string]string{"subject": "description", "description": "subject"} {
		if v, there := in[from].(string); there && in[to] == nil {
			in[to] = v
		}
	}
	if _, named := in["subject"].(string); !named {
		return ""
	}
	maps.DeleteFunc(in, func(name string, v any) bool {
		i := slices.IndexFunc(t.params, func(p param) bool { return p.name == name })
		if i < 0 {
			return true
		}
		_, wrong := t.params[i].value(v, nil)
		return !t.params[i].required && len(wrong) > 0
	})
	return ""
}

func taskGet() *tool {
	return &tool{
		name: "TaskGet", about: "Reads a task of the list.", free: true,
		params: []param{{name: "taskId", kind: "string", required: true}},
		act: does(func(s *todos, in agent.Object) (string, agent.Object) {
			t := s.find(str(in, "taskId"))
			if t == nil {
				return "Task not found", agent.Object{"task": nil}
			}
			text := "Task #" + t.id + ": " + t.subject + "\nStatus: " + t.status + "\nDescription: " + t.description
			if len(t.blockedBy) > 0 {
				text += "\nBlocked by: " + numbered(t.blockedBy)
			}
			if len(t.blocks) > 0 {
				text += "\nBlocks: " + numbered(t.blocks)
			}
			return text, agent.Object{"task": agent.Object{
				"id": t.id, "subject": t.subject, "description": t.description, "status": t.status,
				"blocks": texts(t.blocks), "blockedBy": texts(t.blockedBy),
			}}
		}),
	}
}

func taskList() *tool {
	return &tool{
		name: "TaskList", about: "Lists all tasks.", free: true,
		act: does(func(s *todos, _ agent.Object) (string, agent.Object) {
			lines, list := []string{}, []any{}
			for _, t := range s.tasks {
				line, o := "#"+t.id+" ["+t.status+"] "+t.subject, agent.Object{"id": t.id, "subject": t.subject, "status": t.status}
				if t.owner != nil {
					o["owner"] = *t.owner
				}
				if t.owner != nil && *t.owner != "" {
					line += " (" + *t.owner + ")"
				}
				left := slices.DeleteFunc(slices.Clone(t.blockedBy), func(id string) bool {
					by := s.find(id)
					return by != nil && by.status == "completed"
				})
				if len(left) > 0 {
					line += " [blocked by " + numbered(left) + "]"
				}
				o["blockedBy"] = texts(left)
				lines, list = append(lines, line), append(list, o)
			}
			if len(lines) == 0 {
				lines = []string{"No tasks found"}
			}
			return strings.Join(lines, "\n"), agent.Object{"tasks": list}
		}),
	}
}

func taskUpdate() *tool {
	const ids = `"type":"array","items":{"type":"string"}`
	states := []string{"pending", "in_progress", "completed"}
	return &tool{
		name:   "TaskUpdate",
		about:  "Changes a task, such as its state when work on it begins and ends.",
		free:   true,
		beside: alone,
		params: []param{
			{name: "taskId", kind: "string", required: true, aliases: []string{"id", "task_id"}},
			{name: "subject", kind: "string"},
			{name: "description", kind: "string"},
			{name: "activeForm", kind: "string"},
			{
				name:   "status",
				schema: `"type":"string","enum":["pending","in_progress","completed","deleted"]`,
				take: func(v any, at []any) (any, []issue) {
					if v, ok := v.(string); ok && (v == "deleted" || slices.Contains(states, v)) {
						return v, nil
					}
					none := [][]issue{{notOneOf([]any{}, states...)}, {notOneOf([]any{}, "deleted")}}
					return nil, []issue{{other, "The parameter `" + where(at) + "` matches none of the accepted forms", []member{
						{"code", "invalid_union"}, {"errors", none}, {"path", at}, {"message", "Invalid input"},
					}}}
				},
			},
			{name: "addBlocks", kind: "strings", about: "Tasks that wait for this one.", schema: ids},
			{name: "addBlockedBy", kind: "strings", about: "Tasks for which this one waits.", schema: ids},
			{name: "owner", kind: "string"},
			{name: "metadata", kind: "record", schema: `"type":"object"`},
		},
		fix: func(t *tool, in agent.Object) string { t.aliased(in); return "" },
		act: does(func(s *todos, in agent.Object) (string, agent.Object) {
			id := str(in, "taskId")
			structured := agent.Object{"success": true, "taskId": id}
			if s.find(id) == nil {
				structured["success"], structured["updatedFields"], structured["error"] = false, []string{}, "Task not found"
				return "Task not found", structured
			}
			fields, from := s.copied().update(in)
			structured["updatedFields"] = fields
			if to := str(in, "status"); slices.Contains(fields, "status") || slices.Contains(fields, "deleted") {
				structured["statusChange"] = agent.Object{"from": from, "to": to}
			}
			return "Updated task #" + id + " " + strings.Join(fields, ", "), structured
		}),
	}
}

// numbered are tasks by their numbers.
func numbered(ids []string) string { return "#" + strings.Join(ids, ", #") }

// texts is a list that is not null.
func texts(list []string) []string { return append([]string{}, list...) }
