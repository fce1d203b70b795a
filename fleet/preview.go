package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// TaskPlan is how a task would run.
type TaskPlan struct {
	ID        string
	Workspace Workspace // From is absolute
	Verify    *Verify   // nil: none
	Budget    *Budget   // nil: the job's
	Timeout   Duration  // of an attempt; 0: none
	Mode      protocol.PermissionMode
	Rules     *policy.Rules // nil: CanUseTool or the agent decides
	Allowed   []string      // rules that the agent is given
}

// Preview finds what [Job.Validate] finds, and what the construction of each task's session
// and workspace would: options that contradict one another, calls that would wait for a
// person, directories and repositories that are not there. It starts and writes nothing.
// Job.Configure and Workspace.Make are not called.
func (j Job) Preview() ([]TaskPlan, error) { //nolint:gocritic // a job is passed by value everywhere
	if err := j.Validate(); err != nil {
		return nil, err
	}
	j.withDefaults()
	r := &runner{env: &env{job: j}}
	var wrong []error
	places, sessions := map[string]bool{}, map[string]bool{}
	plans := make([]TaskPlan, 0, len(j.Tasks))
	for i := range j.Tasks {
		t := &j.Tasks[i]
		fail := func(field string, err error) {
			wrong = append(wrong, &TaskError{Index: i, ID: t.ID, Field: field, Err: err.Error()})
		}
		o, err := overlay(j.Options, t.Options)
		if err != nil {
			fail("options", err)
			continue
		}
		o.Unattended = !j.Attended
		if err := r.permit(&attempt{task: t, opts: o}); err != nil {
			fail("options", err)
			continue
		}
		plan := TaskPlan{
			ID: t.ID, Workspace: j.workspaceOf(t), Verify: j.Verify, Budget: j.budgetOf(t), Timeout: t.Timeout,
			Mode: o.PermissionMode, Rules: o.Policy, Allowed: o.AllowedTools,
		}
		if t.Verify != nil {
			plan.Verify = t.Verify
		}
		if plan.Timeout == 0 {
			plan.Timeout = Duration(j.Timeout)
		}
		w := &plan.Workspace
		w.From = cmp.Or(w.From, o.Cwd)
		if abs, err := filepath.Abs(w.From); err == nil {
			w.From = abs
		}
		if key := fmt.Sprint(w.Kind, "\x00", w.From); !places[key] { // once for each
			places[key] = true
			if err := w.source(); err != nil {
				fail("workspace", err)
				continue
			}
		}
		if key := string(t.Options) + "\x00" + w.From; !sessions[key] {
			sessions[key] = true
			at := *o
			at.Runtime = nil
			if !w.owned() {
				at.Cwd = w.From
			}
			if _, err := sdk.PreviewLaunch(&at); err != nil {
				fail("options", err)
			}
		}
		plans = append(plans, plan)
	}
	return plans, errors.Join(wrong...)
}

// source finds what is wrong with the directory that a workspace is or is made from.
func (w *Workspace) source() error {
	st, err := os.Stat(w.From)
	switch {
	case w.Make != nil:
		return nil
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s is not a directory", w.From)
	case w.Kind != WorkspaceWorktree:
		return nil
	}
	for at := w.From; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return nil
		}
		if _, err := os.Stat(filepath.Join(at, "HEAD")); err == nil { // a bare one
			return nil
		}
		if at == filepath.Dir(at) {
			return fmt.Errorf("%s is in no git repository, and a worktree needs one; use a copy", w.From)
		}
	}
}
