package fleet

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// suspicion says why a success without a verifier does not count, or "".
func (r *runner) suspicion(ctx context.Context, a *attempt) (string, error) {
	switch {
	case strings.TrimSpace(a.Text) == "" && len(a.Structured) == 0:
		return "the answer is empty", nil
	case a.task.ExpectTools && a.ToolCalls == 0:
		return "the agent called no tool", nil
	case a.task.ExpectChange:
		now, err := r.spaces.stateOf(ctx, a, a.space)
		if err != nil {
			return "", &badWorkspace{dir: a.space.Dir, err: err}
		}
		if now == a.space.State {
			return "no file has changed", nil
		}
	}
	return "", nil
}

// judge decides whether the answer counts.
func (r *runner) judge(ctx context.Context, a *attempt) error {
	if why := a.unasked(); why != "" {
		return &suspicious{why}
	}
	if a.verify == nil {
		why, err := r.suspicion(ctx, a)
		if err == nil && why != "" {
			err = &suspicious{why}
		}
		return err
	}
	r.doing(a, "verifying")
	said, err := r.verify(ctx, a, Candidate{Task: a.task, Attempt: a.number, Dir: a.space.work(), Text: a.Text, Structured: a.Structured})
	if err != nil {
		return err
	}
	if said.Rounds = 1; a.Verdict != nil {
		said.Rounds += a.Verdict.Rounds
	}
	a.Verdict = &said
	status := Accepted
	if !said.OK {
		status = Rejected
	}
	r.say(Event{Kind: EventVerified, Task: a.task.ID, Attempt: a.number, Status: status, Detail: short(said.Output)})
	return r.records.verified(ctx, a)
}

// suspicious says why a success is doubted.
type suspicious struct{ why string }

func (e *suspicious) Error() string { return "the agent reports a success, but " + e.why }

// conclude turns the end of an attempt into its outcome.
func (r *runner) conclude(ctx context.Context, a *attempt, err error) outcome {
	a.err = err
	o := outcome{status: Accepted}
	var doubt *suspicious
	var alive *stillRuns
	switch {
	case errors.As(err, &doubt):
		o = outcome{status: Suspicious, why: err.Error()}
	case errors.As(err, &alive):
		o = outcome{status: Incomplete, why: err.Error()}
	case err != nil:
		o = verdictOf(err)
	case a.Verdict != nil && !a.Verdict.OK:
		o = outcome{status: Rejected, why: "the verification rejected it"}
		a.err = errors.New(o.why)
	}
	if err := r.keepTranscript(a); err != nil {
		a.err = err
	}
	if a.space.Dir != "" && o.status != BadWorkspace {
		r.keepDiff(ctx, a)
	}
	if o.status == Interrupted {
		r.keepLast(a)
	}
	o.turns, o.space = a.turns, a.space.Dir
	if a.opts != nil && a.opts.PersistSession.Or(true) && (a.client != nil || a.mode == modeResume) {
		o.session = a.session
	}
	r.blame(a, err, &o)
	o.usage = a.spent
	o.usage.Wall = Duration(r.clock.Now().Sub(a.started))
	return o
}

// keepTranscript closes the transcript, durably. The result will name it, so an error is one
// of the journal.
func (r *runner) keepTranscript(a *attempt) error {
	f := a.script
	if a.script = nil; f == nil {
		return a.unkept
	}
	if err := r.records.keeper.Keep(f, a.Transcript, transcriptsDir); err != nil {
		return &journal.FailedError{Op: "sync", Err: fmt.Errorf("%s: %w", a.Transcript, err)}
	}
	if err := r.records.lend(r.hard, a.fence, a.Transcript); err != nil {
		a.warnings = append(a.warnings, "the transcript is not in the store: "+err.Error())
	}
	return nil
}

// keepDiff writes what the task has changed, if its workspace is its own and in git.
func (r *runner) keepDiff(ctx context.Context, a *attempt) {
	if r.root == "" || !a.workspace.owned() || a.Diff != "" || a.space.Base == "" || a.workspace.Make != nil {
		return
	}
	text, err := r.spaces.diff(ctx, a, a.space)
	if err == nil && text != "" {
		name := path.Join(place(a.task.ID, a.number), "diff.patch")
		if err = r.records.store.Put(ctx, name, strings.NewReader(text)); err == nil {
			a.Diff = name
			err = r.records.lend(ctx, a.fence, name)
		}
	}
	if err != nil {
		a.warnings = append(a.warnings, "the diff is not kept: "+err.Error())
	}
}
