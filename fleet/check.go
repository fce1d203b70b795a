package fleet

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// check finds the mistakes that need no session.
func (j *Job) check() error {
	var wrong []error
	add := func(field, problem, fix string) {
		wrong = append(wrong, &sdk.ConfigError{Option: field, Problem: problem, Fix: fix})
	}
	if j.Resume && j.Out == "" {
		add("Resume", "has no journal: Out is empty", "set Out to the directory of the job")
	}
	if j.FS != nil && j.Out == "" {
		add("FS", "has no use: Out is empty", "set Out to a name for the directory")
	}
	if p := j.Pace; p != nil {
		d := p.bounds().WithDefaults()
		switch {
		case j.Concurrency != 0:
			add("Concurrency", "has no effect: Pace decides how many attempts run", "set Pace.Ceiling, or leave Pace out")
		case p.Start < 0 || p.Floor < 0 || p.Ceiling < 0:
			add("Pace", "has a negative number", "give 0 for the default")
		case d.Floor > d.Start || d.Start > d.Ceiling:
			add("Pace", fmt.Sprintf("has the floor %d, the start %d and the ceiling %d", d.Floor, d.Start, d.Ceiling), "raise them in this order")
		}
	}
	if j.Deferred && backendName(j.Options) != embedded {
		add("Deferred", "is for the embedded agent, which alone can wait for a batch", "set Options.Backend to embedded.New, with a model of package model/batch")
	}
	if limit := j.Options.Limits.Stall; j.Deferred && limit > 0 && limit < waitsWithin {
		add("Options.Limits.Stall", fmt.Sprintf("is %v, and a session that waits for a batch says so every %v at most", limit, waitsWithin), "raise it, or leave it out")
	}
	if j.Queue == nil && (j.Files != nil || j.Worker != "" || j.Share != "") {
		add("Files", ", Worker and Share have no use without Queue", "set Queue, or leave them out")
	}
	if j.Move && (j.Files == nil || j.Out == "") {
		add("Move", "has no place for sessions and workspaces", "set Queue, Files and Out")
	}
	if !slices.Contains([]Share{"", ShareAll, ShareSubmit, ShareWork}, j.Share) {
		add("Share", fmt.Sprintf("is %q", j.Share), "take ShareAll, ShareSubmit or ShareWork")
	}
	if j.Affinity < 0 {
		add("Affinity", "is negative", "give a time, or 0 for none")
	}
	if j.Sample < 0 {
		add("Sample", "is negative", "give the number of tasks, or 0 for all")
	}
	if j.Setups < 0 {
		add("Setups", "is negative", "give a number from 1, or 0 for the default")
	}
	if j.FailOn.Count < 0 || j.FailOn.Fraction < 0 || j.FailOn.Fraction > 1 {
		add("FailOn", "is no threshold", "give a Count from 0, or a Fraction from 0 to 1")
	}
	if j.Options.Runtime != nil {
		if _, ok := j.Options.Runtime.(*runtime.Runtime); !ok {
			add("Options.Runtime", fmt.Sprintf("is a %T", j.Options.Runtime), "make it with runtime.New")
		}
	}
	if j.SharedMCP != nil && j.SharedMCPDir != "" {
		add("SharedMCPDir", "is for the servers of the job's own, and SharedMCP has others", "set Dir of those instead")
	}
	for _, of := range []struct {
		field  string
		budget *Budget
	}{{"Budget", j.Budget}, {"TaskBudget", j.TaskBudget}} {
		if of.budget.neverSpent(j.Options) {
			add(of.field+".USD", noDollars, "set "+of.field+".Credits, or a budget of tokens")
		}
	}
	wrong = append(wrong, sharedmcp.Check(j.Options)...)
	if err := j.Approvals.contradicted(j.Options); err != nil {
		wrong = append(wrong, err)
	}
	wrong = append(wrong, j.Workspace.check(j.Out)...)
	wrong = append(wrong, j.Verify.check("Verify")...)
	return errors.Join(wrong...)
}

// Validate finds the mistakes in a job that [Start] would find, all at once, also in the
// directory Out. It starts and writes nothing.
func (j Job) Validate() error { //nolint:gocritic // a job is passed by value everywhere
	if len(j.Tasks) == 0 {
		return noTasks()
	}
	j.withDefaults()
	_, err := j.entries(j.Tasks, 0, true)
	return errors.Join(j.check(), err, j.checkOut(false))
}

func backendName(o *sdk.Options) string {
	if o.Backend == nil {
		return ""
	}
	return o.Backend.AgentName()
}

var goodID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

// checkTask finds the mistakes of one task.
func (j *Job) checkTask(i int, t *Task) error {
	var wrong []error
	add := func(field, problem string) {
		wrong = append(wrong, &TaskError{Index: i, ID: t.ID, Field: field, Err: problem})
	}
	if !goodID.MatchString(t.ID) {
		add("id", fmt.Sprintf("is %q: give letters, digits and . _ - after the first character, at most 100", t.ID))
	}
	for k, p := range t.prompts() {
		if p == "" {
			add("prompt", fmt.Sprintf("number %d is empty", k+1))
		} else if _, err := t.template(p); err != nil {
			add("prompt", err.Error()+"; the prompt of a task with after is a template: write {{\"{{\"}} where it has {{")
		}
	}
	if len(t.After) > maxDependencies {
		add("after", fmt.Sprintf("has more than %d tasks", maxDependencies))
	}
	if t.Budget.neverSpent(j.Options) {
		add("budget.usd", noDollars+"; set credits, or tokens")
	}
	if _, err := overlay(&sdk.Options{}, t.Options); err != nil {
		add("options", err.Error())
	}
	for _, err := range slices.Concat(t.Workspace.check(j.Out), t.Verify.check("verify")) {
		add("", err.Error())
	}
	return errors.Join(wrong...)
}

// checkAll finds what is wrong with the tasks as a set: repeated ids, missing
// dependencies, cycles.
func checkAll(tasks []*Task) error {
	var wrong []error
	at := make(map[string]int, len(tasks))
	for i, t := range tasks {
		if first, taken := at[t.ID]; taken {
			wrong = append(wrong, &TaskError{Index: i, ID: t.ID, Field: "id", Err: fmt.Sprintf("is that of task %d, too", first+1)})
			continue
		}
		at[t.ID] = i
	}
	waits, next := make([]int, len(tasks)), make([][]int, len(tasks))
	for i, t := range tasks {
		for _, id := range t.After {
			before, ok := at[id]
			if !ok {
				wrong = append(wrong, &TaskError{Index: i, ID: t.ID, Field: "after", Err: fmt.Sprintf("names the task %q, which does not exist", id)})
				continue
			}
			waits[i]++
			next[before] = append(next[before], i)
		}
	}
	var free []int
	for i, n := range waits {
		if n == 0 {
			free = append(free, i)
		}
	}
	done := 0
	for ; len(free) > 0; done++ {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, n := range next[i] {
			if waits[n]--; waits[n] == 0 {
				free = append(free, n)
			}
		}
	}
	if done < len(tasks) && len(wrong) == 0 {
		for i, n := range waits {
			if n > 0 {
				wrong = append(wrong, &TaskError{Index: i, ID: tasks[i].ID, Field: "after", Err: "leads back to the task itself"})
			}
		}
	}
	return errors.Join(wrong...)
}
