package fleet

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/agent-troupe/troupe/internal/hostgit"
	"github.com/agent-troupe/troupe/runtime"
)

// CheckWorkspaces finds what would keep the first attempts of tasks from their workspaces: a
// directory that does not exist or, for a worktree, no repository, no such revision, or a
// commit without the directory. It looks once at each From with each Rev, makes nothing, and
// does not look at what Make and Configure would change. Each mistake is a *[TaskError] of the first
// task that has it.
func (j Job) CheckWorkspaces(ctx context.Context) (err error) { //nolint:gocritic // a job is passed by value everywhere
	j.withDefaults()
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Shutdown(context.WithoutCancel(ctx))) }()
	ws := &workspaces{env: &env{job: j, rt: rt, exec: rt.Executor(), clock: rt.Clock(), marker: rt.NewMarker()}}
	type place struct {
		kind      WorkspaceKind
		from, rev string
	}
	seen := map[place]bool{}
	var wrong []error
	for i := range j.Tasks {
		t := &j.Tasks[i]
		w := j.workspaceOf(t)
		at := place{w.Kind, w.From, w.Rev}
		if at.from == "" {
			at.from = j.Options.Cwd
			if o, err := overlay(j.Options, t.Options); err == nil { // that error is another check's
				at.from = o.Cwd
			}
		}
		if w.Make != nil || seen[at] {
			continue
		}
		seen[at] = true
		if err := ws.checkPlace(ctx, w.Kind, at.from, at.rev); err != nil {
			wrong = append(wrong, &TaskError{Index: i, ID: t.ID, Field: "workspace", Err: err.Error()})
		}
	}
	return errors.Join(wrong...)
}

func (ws *workspaces) checkPlace(ctx context.Context, kind WorkspaceKind, from, rev string) error {
	from, err := absolute(cmp.Or(from, "."))
	if err != nil {
		return err
	}
	if st, err := os.Stat(from); err != nil || !st.IsDir() {
		return cmpErr(err, errors.New(from+" is not a directory"))
	}
	if kind != WorkspaceWorktree {
		return nil
	}
	return ws.withSource(ctx, from, func(d *hostgit.Dir, _ bool) error {
		_, _, err := checkedOut(ctx, d, from, rev)
		return err
	})
}
