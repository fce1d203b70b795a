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

// RunOnAccept runs Job.OnAccept once more for a task that was accepted, such as one whose state
// is failed or unknown. When it returns nil the decision is durable; the command follows. The
// error matches [ErrNoTask], [ErrNotAccepted], [ErrOnAcceptRuns] or [ErrJobOver], is a
// *[sdk.ConfigError] if the job has no such command, or says that the journal cannot be written.
func (h *Handle) RunOnAccept(ctx context.Context, id string) error {
	b := h.b
	if b.job.OnAccept == "" {
		return &sdk.ConfigError{Option: "OnAccept", Problem: "is empty", Fix: "resume the job with the command"}
	}
	again, err := question(b.env, func(to *kernel.Promise[repetition]) note { return repeats{id, to} })
	if err != nil {
		return err
	}
	r := b.carrier.records
	if err := r.append(ctx, r.record(kindRepeat, id, 0, onAcceptRecord{Requeued: again.requeued})); err != nil {
		b.fail(err)
		b.post(ranAgain{})
		return err
	}
	b.exec.Go(func() { b.carrier.spaces.runAgain(b.hard, id, again) })
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

// runAgain runs the command where no attempt has just ended.
func (ws *workspaces) runAgain(ctx context.Context, id string, of repetition) {
	defer ws.post(ranAgain{})
	ws.afterAcceptance(ctx, id, of.requeued, ws.attemptOf(of.left, 0))
}

// attemptOf is what commands have to know of the attempt that has left a workspace.
func (ws *workspaces) attemptOf(left *remains, slot int) *attempt {
	a := &attempt{task: left.task, opts: left.opts, workspace: left.workspace, space: left.space, fence: left.fence, shellLimit: defaultVerifyTimeout}
	a.number, a.slot = left.number, slot
	if a.opts == nil {
		a.workspace = ws.job.workspaceOf(left.task)
		var err error
		if a.opts, err = overlay(ws.job.Options, left.task.Options); err != nil { // it was checked before
			a.opts = ws.job.Options
		}
	}
	return a
}

// afterAcceptance runs Job.OnAccept for the result of a task with the number requeued, which is that of
// the attempt a, if it is to run. It reports whether nothing is left to do.
func (ws *workspaces) afterAcceptance(ctx context.Context, id string, requeued int, a *attempt) (settled bool) {
	if ws.job.OnAccept == "" {
		return true
	}
	leave, err := ws.enterSetup(ctx)
	if err != nil { // it stays pending
		return false
	}
	defer leave()
	now, _ := question(ws.env, func(to *kernel.Promise[acceptance]) note { return accepting{id, requeued, to} })
	if !now.wanted {
		return now.nothing
	}
	// It is not run again once this is durable: at most once, also if the host dies now.
	if err := ws.records.append(ctx, ws.records.record(kindAccepting, id, 0, onAcceptRecord{Requeued: requeued})); err != nil {
		ws.fail(err)
		return false
	}
	said := OnAccept{State: onAcceptDone}
	out, err := ws.runOnAccept(ctx, a)
	if err != nil {
		if said.State = onAcceptFailed; ctx.Err() != nil {
			said.State = onAcceptUnknown
		}
		said.Error = err.Error()
	}
	const most = 4 << 10
	said.Output = strings.ToValidUTF8(string(out[max(len(out)-most, 0):]), "\uFFFD")
	if err := ws.records.append(ctx, ws.records.record(kindOnAccept, id, 0, onAcceptRecord{said, requeued})); err != nil {
		ws.fail(err)
		return false
	}
	detail := string(said.State)
	if said.Error != "" {
		detail += ": " + said.Error + quoted(out)
	}
	ws.post(settledOnAccept{id, requeued, said, detail})
	return said.State == onAcceptDone
}

// runOnAccept runs the command in the workspace.
func (ws *workspaces) runOnAccept(ctx context.Context, a *attempt) ([]byte, error) {
	s := a.space
	if s.Dir == "" {
		return nil, errors.New("the task had no workspace")
	}
	if err := ws.useSpace(ctx, a, s); err != nil {
		return nil, err
	}
	env, leave, err := ws.gitFor(ctx, a, s)
	defer leave()
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	env = append(env, "TROUPE_TASK="+a.task.ID, fmt.Sprintf("TROUPE_FENCE=%d", a.fence))
	if s.Base != "" {
		env = append(env, "TROUPE_BASE="+s.Base)
	}
	out, err := ws.command(ctx, command{
		name: "sh", args: []string{"-c", "exec 2>&1\n" + ws.job.OnAccept}, dir: s.work(), whole: hostgit.Clean(withoutSecrets(os.Environ(), a.opts)), env: env,
		limit: onAcceptLimit, most: maxOutput, spawn: ws.job.CommandSpawner,
	})
	return out.output, err
}

const onAcceptLimit = 10 * time.Minute

// gitFor returns the variables that lead the git of a command to a git directory of the host's,
// and a function to call when the command has ended. Without a repository before the agent ran,
// the command has no repository.
func (ws *workspaces) gitFor(ctx context.Context, a *attempt, s space) (env []string, leave func(), err error) {
	leave = func() {}
	if s.Git != "" {
		d, now, err := ws.openGit(ctx, a, s)
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
	root, remove := ws.gitRoot(s.Dir)
	own := filepath.Join(root, "accepted-"+a.task.ID)
	leave = func() { _ = os.RemoveAll(own); remove() }
	d, err := ws.hostGit(ctx).Make(own, repo.Top, repo)
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
