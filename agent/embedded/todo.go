package embedded

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// todos is what the model has to do: tasks, or the list of TodoWrite. It is folded from the
// log, as the conversation is, so a resumed session and a fork have it, too.
type todos struct {
	tasks []*todoTask
	last  int   // the number of the last task that was made
	list  []any // of TodoWrite

	open map[string]agent.Object // inputs of calls that have no result yet, by id
}

// todoTask is a task of the list.
type todoTask struct {
	id, subject, description, activeForm string
	owner                                *string // nil if there never was a list
	status                               string
	blocks, blockedBy                    []string
	metadata                             map[string]any
}

func (s *todos) find(id string) *todoTask {
	for _, t := range s.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

// called notes a call, as a line of the log has it.
func (s *todos) called(b *model.Block) {
	t := todoTool(b.Name)
	if t == nil {
		return
	}
	var in agent.Object
	if protocol.Unmarshal(b.Input, &in) != nil || in == nil {
		return
	}
	if t.fix != nil {
		t.fix(t, in)
	}
	if len(t.coerce(in, nil)) > 0 {
		return
	}
	in["tool"] = t.name
	if s.open == nil {
		s.open = map[string]agent.Object{}
	}
	s.open[b.ID] = in
}

// answered does what a call has done, when a line of the log has its result. raw is its
// tool_use_result, which has the input if that was changed by a gate.
func (s *todos) answered(b *model.Block, raw json.RawMessage) {
	in, open := s.open[b.ID]
	delete(s.open, b.ID)
	if !open || b.IsError {
		return
	}
	var result struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
		New   []any        `json:"newTodos"`
		Input agent.Object `json:"troupe"`
	}
	if protocol.Unmarshal(raw, &result) != nil {
		return
	}
	name := str(in, "tool")
	if result.Input != nil {
		in = result.Input
	}
	switch name {
	case "TodoWrite":
		s.list = result.New
	case "TaskUpdate":
		s.update(in)
	case "TaskCreate":
		n, err := strconv.Atoi(result.Task.ID)
		if err != nil {
			return
		}
		s.last = max(s.last, n)
		metadata, _ := in["metadata"].(map[string]any)
		s.tasks = append(s.tasks, &todoTask{
			id: result.Task.ID, subject: str(in, "subject"), description: str(in, "description"), activeForm: str(in, "activeForm"),
			status: "pending", metadata: maps.Clone(metadata),
		})
	}
}

// update does what TaskUpdate asks for, and says which fields it has changed.
func (s *todos) update(in agent.Object) (fields []string, from string) {
	fields = []string{}
	t := s.find(str(in, "taskId"))
	if t == nil {
		return fields, ""
	}
	from = t.status
	if str(in, "status") == "deleted" {
		s.tasks = slices.DeleteFunc(s.tasks, func(o *todoTask) bool { return o == t })
		for _, o := range s.tasks {
			is := func(id string) bool { return id == t.id }
			o.blocks, o.blockedBy = slices.DeleteFunc(o.blocks, is), slices.DeleteFunc(o.blockedBy, is)
		}
		return []string{"deleted"}, from
	}
	text := func(name string, to *string) {
		if v, given := in[name].(string); given && v != *to {
			*to, fields = v, append(fields, name)
		}
	}
	text("subject", &t.subject)
	text("description", &t.description)
	text("activeForm", &t.activeForm)
	if v, given := in["owner"].(string); given && (t.owner == nil || *t.owner != v) {
		t.owner, fields = &v, append(fields, "owner")
	}
	if m, given := in["metadata"].(map[string]any); given {
		fields = append(fields, "metadata")
		if t.metadata == nil {
			t.metadata = map[string]any{}
		}
		maps.Copy(t.metadata, m)
		maps.DeleteFunc(t.metadata, func(_ string, v any) bool { return v == nil })
	}
	text("status", &t.status)
	if s.link(in["addBlocks"], &t.blocks, func(other string) { s.block(t.id, other) }) {
		fields = append(fields, "blocks")
	}
	if s.link(in["addBlockedBy"], &t.blockedBy, func(other string) { s.block(other, t.id) }) {
		fields = append(fields, "blockedBy")
	}
	return fields, from
}

// link calls add for the names of a list that are not in have yet, and reports whether there
// were any.
func (s *todos) link(list any, have *[]string, add func(other string)) (found bool) {
	names, _ := list.([]any)
	before := slices.Clone(*have)
	for _, n := range names {
		if other, _ := n.(string); !slices.Contains(before, other) {
			found = true
			add(other)
		}
	}
	return found
}

// block notes that a task blocks another, if both are there.
func (s *todos) block(first, second string) {
	a, b := s.find(first), s.find(second)
	if a == nil || b == nil {
		return
	}
	if !slices.Contains(a.blocks, second) {
		a.blocks = append(a.blocks, second)
	}
	if !slices.Contains(b.blockedBy, first) {
		b.blockedBy = append(b.blockedBy, first)
	}
}

// copied is the same state, for a call that only says what it will do.
func (s *todos) copied() *todos {
	c := &todos{last: s.last, list: s.list}
	for _, t := range s.tasks {
		o := *t
		o.blocks, o.blockedBy, o.metadata = slices.Clone(t.blocks), slices.Clone(t.blockedBy), maps.Clone(t.metadata)
		c.tasks = append(c.tasks, &o)
	}
	return c
}

// lines are the list as a summary has it.
func (s *todos) lines() (lines []string) {
	for _, t := range s.tasks {
		lines = append(lines, "#"+t.id+" ["+t.status+"] "+t.subject)
	}
	for _, todo := range s.list {
		o, _ := todo.(map[string]any)
		lines = append(lines, fmt.Sprintf("[%v] %v", o["status"], o["content"]))
	}
	return lines
}

// todoTool is a tool that changes the list; nil if it does not.
func todoTool(name string) *tool {
	switch name {
	case "TaskCreate":
		return taskCreate()
	case "TaskUpdate":
		return taskUpdate()
	case "TodoWrite":
		return todoWrite()
	}
	return nil
}
