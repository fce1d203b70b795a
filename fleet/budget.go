package fleet

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
)

// budgetSpent is the end of an attempt at a budget.
type budgetSpent struct {
	job   bool   // the job's budget; otherwise the task's
	limit string // as Budget.exceeded names it
}

func (e *budgetSpent) Error() string {
	whose := "task"
	if e.job {
		whose = "job"
	}
	return fmt.Sprintf("the %s's budget of %s is spent", whose, e.limit)
}

// embedded is the name of the agent in this process, which ends a turn at a budget as Claude
// Code does.
const embedded = "embedded"

const noDollars = "would never be spent: the agent reports credits and no US dollars"

// neverSpent reports whether the budget is in US dollars, and the agent reports none. An agent
// of the Agent Client Protocol may report them.
func (b *Budget) neverSpent(o *sdk.Options) bool {
	return b != nil && b.USD > 0 && backendName(o) == qoder.Name
}

// budgetOf is the budget of a task; nil: none.
func (j *Job) budgetOf(t *Task) *Budget {
	if t.Budget != nil {
		return t.Budget
	}
	return j.TaskBudget
}

// bill adds what a result reports to the usage of the attempt. Costs and tokens are those of
// the whole tree: subagents are in modelUsage, and not in usage.
func (r *runner) bill(a *attempt, result *sdk.ResultMessage) {
	cost := a.costs.Add(result)
	if cost == nil { // the result came twice
		return
	}
	s := &a.spent
	s.USD += cost.USD
	s.Credits += cost.Credits
	s.Turns += result.NumTurns
	for _, u := range cost.Models {
		s.Tokens.Input += u.InputTokens
		s.Tokens.Output += u.OutputTokens
		s.Tokens.CacheWrite += u.CacheCreationInputTokens
		s.Tokens.CacheRead += u.CacheReadInputTokens
	}
	r.tell(billed{a.id, a.number, *s})
}

// afford reports, as a *budgetSpent, that the attempt may not begin another turn.
func (r *runner) afford(a *attempt) error {
	used := a.used
	used.add(a.spent)
	used.Wall += Duration(r.clock.Now().Sub(a.started))
	if limit := r.job.budgetOf(a.task).exceeded(used); limit != "" {
		return &budgetSpent{limit: limit}
	}
	if r.job.Budget == nil {
		return nil
	}
	if limit, _ := question(r.env, func(to *kernel.Promise[string]) note { return affords{to} }); limit != "" {
		return &budgetSpent{job: true, limit: limit}
	}
	return nil
}

// wallLeft is the time that the task's budget leaves to the attempt; 0: no limit, or nothing
// is left, which afford reports.
func (r *runner) wallLeft(a *attempt) time.Duration {
	b := r.job.budgetOf(a.task)
	if b == nil || b.Wall <= 0 {
		return 0
	}
	return max(time.Duration(b.Wall-a.used.Wall)-r.clock.Now().Sub(a.started), 0)
}
