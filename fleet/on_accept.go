package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/internal/hostgit"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
)

// Errors of [Handle.RunOnAccept] and [Amend]. Match them with errors.Is.
var (
	// ErrNotAccepted says that the task has no result, or one that is not accepted.
	ErrNotAccepted = errors.New("the task was not accepted, so there is nothing to do after that")
	// ErrOnAcceptRuns says that the command runs already, or will.
	ErrOnAcceptRuns = errors.New("the command to run after acceptance runs already, or is about to")
)

// Kinds of records.
const (
	kindAccepting = "accepting" // Job.OnAccept begins: it is not run again
	kindOnAccept  = "on_accept" // how it has ended
	kindRepeat    = "repeat"    // it is to run once more
)

// onAcceptRecord is about the result with the number Requeued.
type onAcceptRecord struct {
	OnAccept

	Requeued int `json:"requeued,omitempty"`
}

// whyUnknown is the error of a command whose host died.
const whyUnknown = "the program that ran it was ended meanwhile"

// after is what a record says of the command of an accepted task.
func (k *known) after(kind string, decode func(any) error) error {
	var rec onAcceptRecord
	if err := decode(&rec); err != nil {
		return err
	}
	if k.result == nil || k.result.Requeued != rec.Requeued { // a result that is void
		return nil
	}
	switch kind {
	case kindAccepting:
		rec.OnAccept = OnAccept{State: onAcceptUnknown, Error: whyUnknown} // unless its end follows
	case kindRepeat:
		rec.OnAccept = OnAccept{State: onAcceptPending}
	}
	k.result.OnAccept = &rec.OnAccept
	return nil
}

// aftermath is what runs after results that are there already; the job's mu guards it.
type aftermath struct {
	running int
	idle    *kernel.Promise[struct{}] // nil: nobody waits
	closed  bool
}

// RunOnAccept runs Job.OnAccept once more for a task that was accepted, such as one whose state
// is failed or unknown. When it returns nil the decision is durable; the command follows. The
// error matches [ErrNoTask], [ErrNotAccepted], [ErrOnAcceptRuns] or [ErrJobOver], is a
// *[sdk.ConfigError] if the job has no such command, or says that the journal cannot be written.
func (h *Handle) RunOnAccept(ctx context.Context, id string) error {
	r := h.r
	if r.job.OnAccept == "" {
		return &sdk.ConfigError{Option: "OnAccept", Problem: "is empty", Fix: "resume the job with the command"}
	}
	r.mu.Lock()
	e := r.tasks[id]
	var err error
	switch {
	case e == nil:
		err = ErrNoTask
	case r.after.closed || r.final:
		err = ErrJobOver
	default:
		err = mayRepeat(e.result)
	}
	if err != nil {
		r.mu.Unlock()
		return fmt.Errorf("task %q: %w", id, err)
	}
	requeued := e.result.Requeued
	r.setOnAccept(e, requeued, OnAccept{State: onAcceptPending})
	r.after.running++
	r.mu.Unlock()
	if err := r.append(ctx, r.record(kindRepeat, id, 0, onAcceptRecord{Requeued: requeued})); err != nil {
		r.fail(err)
		r.leaveAftermath()
		return err
	}
	r.exec.Go(func() { defer r.leaveAftermath(); r.runAgain(r.hard, e) })
	return nil
}

// mayRepeat reports why the command of a task cannot run now.
func mayRepeat(t *TaskResult) error {
	switch {
	case t == nil || !t.OK():
		return ErrNotAccepted
	case t.OnAccept != nil && (t.OnAccept.State == onAcceptPending || t.OnAccept.State == onAcceptRunning):
		return ErrOnAcceptRuns
	}
	return nil
}

// catchUp runs the commands that an earlier process has not begun. It is called before the
// plan learns of the tasks.
func (r *run) catchUp(entries []*entry) {
	if r.job.OnAccept == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		if e.result != nil && e.result.OnAccept != nil && e.result.OnAccept.State == onAcceptPending {
			r.after.running++
			r.exec.Go(func() { defer r.leaveAftermath(); r.runAgain(r.hard, e) })
		}
	}
}

func (r *run) leaveAftermath() {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.after
	if a.running--; a.running == 0 && a.idle != nil {
		a.idle.Resolve(struct{}{})
		a.idle = nil
	}
}

// closeAftermath waits until no command runs, and lets none begin after that.
func (r *run) closeAftermath(ctx context.Context) {
	for {
		r.mu.Lock()
		a := &r.after
		if a.running == 0 {
			a.closed = true
			r.mu.Unlock()
			return
		}
		if a.idle == nil {
			a.idle = kernel.NewPromise[struct{}]()
		}
		idle := a.idle
		r.mu.Unlock()
		_, _ = idle.Wait(ctx, r.exec) // Kill ends the commands
	}
}

// runAgain runs the command where no attempt has just ended.
func (r *run) runAgain(ctx context.Context, e *entry) {
	o, err := overlay(r.job.Options, e.task.Options)
	if err != nil { // it was checked before
		o = r.job.Options
	}
	r.mu.Lock()
	a := &attempt{task: e.task, opts: o, workspace: r.workspaceOf(e.task), space: e.space}
	if e.last != nil {
		a.fence = e.last.fence
	}
	r.mu.Unlock()
	r.afterAcceptance(ctx, e, a)
}

// afterAcceptance runs Job.OnAccept for the result of a task, if that is to run. It reports
// whether nothing is left to do.
func (r *run) afterAcceptance(ctx context.Context, e *entry, a *attempt) (settled bool) {
	r.mu.Lock()
	nothing := e.result == nil || e.result.OnAccept == nil
	r.mu.Unlock()
	if nothing {
		return true
	}
	leave, err := r.enterSetup(ctx)
	if err != nil { // it stays pending
		return false
	}
	defer leave()
	r.mu.Lock()
	t := e.result
	wanted := t != nil && t.OnAccept != nil && t.OnAccept.State == onAcceptPending && r.job.OnAccept != ""
	if wanted {
		r.setOnAccept(e, t.Requeued, OnAccept{State: onAcceptRunning})
	}
	r.mu.Unlock()
	if !wanted {
		return false
	}
	// It is not run again once this is durable: at most once, also if the host dies now.
	if err := r.append(ctx, r.record(kindAccepting, a.task.ID, 0, onAcceptRecord{Requeued: t.Requeued})); err != nil {
		r.fail(err)
		return false
	}
	said := OnAccept{State: onAcceptDone}
	out, err := r.runOnAccept(ctx, a)
	if err != nil {
		if said.State = onAcceptFailed; ctx.Err() != nil {
			said.State = onAcceptUnknown
		}
		said.Error = err.Error()
	}
	const most = 4 << 10
	said.Output = strings.ToValidUTF8(string(out[max(len(out)-most, 0):]), "\uFFFD")
	if err := r.append(ctx, r.record(kindOnAccept, a.task.ID, 0, onAcceptRecord{said, t.Requeued})); err != nil {
		r.fail(err)
		return false
	}
	r.mu.Lock()
	r.setOnAccept(e, t.Requeued, said)
	r.mu.Unlock()
	detail := string(said.State)
	if said.Error != "" {
		detail += ": " + said.Error + quoted(out)
	}
	r.tell(Event{Kind: EventOnAccept, Task: a.task.ID, Detail: detail})
	r.post(settledOnAccept{})
	return said.State == onAcceptDone
}

// setOnAccept replaces the result of a task by one that says so, also for a reader who has not
// had it; mu is held. requeued is the number of the result.
func (r *run) setOnAccept(e *entry, requeued int, said OnAccept) {
	if e.result == nil || e.result.Requeued != requeued {
		return
	}
	t := *e.result // others read the old one
	t.OnAccept = &said
	e.result = &t
	for i := range r.results[r.read:] {
		if o := &r.results[r.read+i]; o.ID == t.ID && o.Requeued == requeued {
			o.OnAccept = &said
		}
	}
}

// runOnAccept runs the command in the workspace.
func (r *run) runOnAccept(ctx context.Context, a *attempt) ([]byte, error) {
	s := a.space
	if s.Dir == "" {
		return nil, errors.New("the task had no workspace")
	}
	if err := r.useSpace(ctx, a, s); err != nil {
		return nil, err
	}
	env, leave, err := r.gitFor(ctx, a, s)
	defer leave()
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	env = append(env, "TROUPE_TASK="+a.task.ID, fmt.Sprintf("TROUPE_FENCE=%d", a.fence))
	if s.Base != "" {
		env = append(env, "TROUPE_BASE="+s.Base)
	}
	out, err := r.command(ctx, command{
		name: "sh", args: []string{"-c", "exec 2>&1\n" + r.job.OnAccept}, dir: s.work(), whole: hostgit.Clean(withoutSecrets(os.Environ(), a.opts)), env: env,
		limit: onAcceptLimit, most: maxOutput, spawn: r.job.CommandSpawner,
	})
	return out.output, err
}

const onAcceptLimit = 10 * time.Minute

// gitFor returns the variables that lead the git of a command to a git directory of the host's,
// and what is to be called when the command has ended. Where there was no repository before
// the agent ran, there is none for the command.
func (r *run) gitFor(ctx context.Context, a *attempt, s space) (env []string, leave func(), err error) {
	leave = func() {}
	if s.Git != "" {
		d, now, err := r.openGit(ctx, a, s)
		if err != nil {
			return nil, leave, err
		}
		env, err = d.Hand(ctx, now)
		return env, leave, err
	}
	none := []string{"GIT_DIR=" + os.DevNull}
	if a.workspace.owned() {
		return none, leave, nil
	}
	repo := s.Source
	if repo == nil {
		return nil, leave, errors.New("what the repository was before the agent ran is not known: start the job with the command")
	}
	if repo.Common == "" {
		return none, leave, nil
	}
	root, remove := r.gitRoot(s.Dir)
	own := filepath.Join(root, "accepted-"+a.task.ID)
	leave = func() { _ = os.RemoveAll(own); remove() }
	d, err := r.hostGit(ctx).Make(own, repo.Top, repo)
	if err != nil {
		return nil, leave, err
	}
	env, err = d.Hand(ctx, repo)
	return env, leave, err
}

// withoutSecrets is an environment without the secrets that are there for the job: those of
// the agents' providers, and those that the options name.
func withoutSecrets(env []string, o *sdk.Options) []string {
	names := slices.Concat([]string{"TROUPE_WEBHOOK_SECRET"}, claude.New().Traits().ProviderEnv, qoder.New().Traits().ProviderEnv)
	for name := range o.Env { //troupe:maporder a set
		names = append(names, name)
	}
	for _, server := range o.MCPServers { //troupe:maporder a set
		for name := range server.Env {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return secretName(name) && slices.Contains(names, name)
	})
}

// keepAfter reports whether a record after the result of a task says more about it.
func keepAfter(rec *journal.Record) bool {
	return rec.Kind == kindAccepting || rec.Kind == kindOnAccept || rec.Kind == kindRepeat
}
