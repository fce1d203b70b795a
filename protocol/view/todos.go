package view

import (
	"slices"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
)

// TodoEntry is something that the agent means to do.
type TodoEntry struct {
	// ID is set for entries of the Task tools; "" for those of TodoWrite.
	ID          string
	Content     string // one line for people; the subject of a task
	Description string // more than Content says; "": none
	// ActiveForm is the text while the entry is in progress, or "".
	ActiveForm string
	Status     string   // pending, in_progress, completed; Qoder's: cancelled, blocked
	Priority   string   // low, medium, high; Qoder's
	Owner      string   // name of the agent that works on it; "": no owner
	BlockedBy  []string // ids
}

// Todos is the list of what the main agent plans to do, from its TodoWrite calls or from
// the Task tools. A call counts when its result reports success. Subagents share the
// tasks; their own todos do not count here.
type Todos struct {
	calls ToolCalls
	todos []TodoEntry
	tasks []TodoEntry
}

// TodoEntries returns the entries after messages.
func TodoEntries(messages ...protocol.Message) []TodoEntry {
	var p Todos
	for _, m := range messages {
		p.Add(m)
	}
	return p.Entries()
}

// Entries returns the tasks by age, then todos in their order.
func (p *Todos) Entries() []TodoEntry { return slices.Concat(p.tasks, p.todos) }

// Add takes a message and reports whether an entry has changed.
func (p *Todos) Add(m protocol.Message) bool {
	changed := false
	for _, call := range p.calls.Add(m) {
		if call.State == CallDone && p.apply(call) {
			changed = true
		}
	}
	if _, ok := known(m).(*protocol.ResultMessage); ok {
		p.calls.Forget()
	}
	return changed
}

func (p *Todos) apply(call *ToolCall) bool {
	in, err := call.Input()
	if err != nil {
		return false
	}
	out, err := call.Output()
	if err != nil {
		out = nil
	}
	switch in := in.(type) {
	case *tools.TodoWriteInput:
		if call.ParentToolUseID != "" {
			return false
		}
		p.todos = nil
		for _, t := range in.Todos {
			p.todos = append(p.todos, TodoEntry{Content: t.Text(), ActiveForm: t.ActiveForm, Status: t.Status, Priority: t.Priority})
		}
		return true
	case *tools.TaskCreateInput:
		made, ok := out.(*tools.TaskCreateOutput)
		if !ok || made.Task.ID == "" {
			return false
		}
		e := p.task(made.Task.ID)
		e.Content, e.Description, e.ActiveForm = in.Subject, in.Description, in.ActiveForm
		return true
	case *tools.TaskUpdateInput:
		done, ok := out.(*tools.TaskUpdateOutput)
		if !ok || !done.Success {
			return false
		}
		p.update(in)
		return true
	case *tools.TaskGetInput:
		got, ok := out.(*tools.TaskGetOutput)
		if !ok || got.Task == nil {
			return false
		}
		p.merge(got.Task)
		return true
	case *tools.TaskListInput:
		list, ok := out.(*tools.TaskListOutput)
		if !ok {
			return false
		}
		p.replace(list.Tasks)
		return true
	}
	return false
}

// task finds an entry, or makes it.
func (p *Todos) task(id string) *TodoEntry {
	i := slices.IndexFunc(p.tasks, func(e TodoEntry) bool { return e.ID == id })
	if i < 0 {
		p.tasks = append(p.tasks, TodoEntry{ID: id, Status: tools.StatusPending})
		i = len(p.tasks) - 1
	}
	return &p.tasks[i]
}

func (p *Todos) update(in *tools.TaskUpdateInput) {
	if in.Status == tools.StatusDeleted {
		p.tasks = slices.DeleteFunc(p.tasks, func(e TodoEntry) bool { return e.ID == in.TaskID })
		return
	}
	e := p.task(in.TaskID)
	set(&e.Content, in.Subject)
	set(&e.Description, in.Description)
	set(&e.ActiveForm, in.ActiveForm)
	set(&e.Status, in.Status)
	set(&e.Owner, in.Owner)
	e.BlockedBy = union(e.BlockedBy, in.AddBlockedBy)
	for _, id := range in.AddBlocks {
		blocked := p.task(id)
		blocked.BlockedBy = union(blocked.BlockedBy, []string{in.TaskID})
	}
}

func (p *Todos) merge(t *tools.TodoTask) {
	e := p.task(t.ID)
	set(&e.Content, t.Subject)
	set(&e.Description, t.Description)
	set(&e.Status, t.Status)
	set(&e.Owner, t.Owner)
	e.BlockedBy = union(nil, t.BlockedBy)
}

// replace takes the list of all tasks there are.
func (p *Todos) replace(tasks []tools.TodoTask) {
	before := p.tasks
	p.tasks = nil
	for i := range tasks {
		if at := slices.IndexFunc(before, func(e TodoEntry) bool { return e.ID == tasks[i].ID }); at >= 0 {
			p.tasks = append(p.tasks, before[at])
		}
		p.merge(&tasks[i])
	}
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
