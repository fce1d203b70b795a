package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/inspect/ui"
)

// Job is a job that runs, for the window of package inspect/ui. dir is Job.Out, where the
// transcripts are; without one ("") none can be shown.
func Job(h *fleet.Handle, dir string) ui.Job { return &pages{h, dir, h.Snapshot().Job} }

type pages struct {
	h       *fleet.Handle
	dir, id string
}

// ID implements [ui.Job].
func (p *pages) ID() string { return p.id }

// State implements [ui.Job].
func (p *pages) State(context.Context) (ui.JobState, error) {
	s := p.h.Snapshot()
	var state ui.JobState
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.OnAccept != nil { // what a command prints may be a secret, and no page shows it
			t.OnAccept = &fleet.OnAccept{State: t.OnAccept.State, Error: t.OnAccept.Error}
		}
		state.Tasks = append(state.Tasks, ui.JobTask{ID: t.ID, State: string(t.State), Status: string(t.Status), Error: t.Error, Since: t.Since, Value: *t})
	}
	for i := range s.Approvals {
		state.Approvals = append(state.Approvals, approvalOf(&s.Approvals[i]))
	}
	s.Tasks, s.Approvals = nil, nil
	state.Summary = s
	return state, nil
}

func approvalOf(a *fleet.Approval) ui.Approval {
	return ui.Approval{
		ID: a.ID, Task: a.Task, Attempt: a.Attempt, Session: a.Session, Tool: a.Tool, Input: a.Input, Cwd: a.Cwd, Said: a.Said, At: a.At,
		HoldUntil: a.HoldUntil, Rule: a.Rule, RuleList: a.RuleList, RuleFrom: a.RuleFrom, Reason: a.Reason, Diff: a.Diff,
	}
}

// Transcript implements [ui.Job].
func (p *pages) Transcript(_ context.Context, task string, at int64) (io.ReadCloser, error) {
	if p.dir == "" {
		return nil, fmt.Errorf("control: the job has no directory: %w", fs.ErrNotExist)
	}
	s := p.h.Snapshot()
	k := slices.IndexFunc(s.Tasks, func(t fleet.TaskInfo) bool { return t.ID == task && t.Transcript != "" })
	if k < 0 {
		return nil, fmt.Errorf("control: task %s has no transcript: %w", task, fs.ErrNotExist)
	}
	f, err := journal.Dir(p.dir).Read(s.Tasks[k].Transcript)
	if err != nil {
		return nil, err
	}
	if seeker, ok := f.(io.Seeker); ok {
		_, err = seeker.Seek(at, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f, at)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Do implements [ui.Job].
func (p *pages) Do(ctx context.Context, c ui.Command) error {
	switch c.Op {
	case ui.Pause:
		p.h.Pause()
	case ui.Resume:
		p.h.Unpause()
	case ui.Retune:
		p.h.Retune(c.Limit)
	case ui.CancelJob:
		p.h.Cancel()
	case ui.CancelTask:
		return said(p.h.CancelTask(ctx, c.Task))
	case ui.RequeueTask:
		return said(p.h.Requeue(ctx, c.Task))
	case ui.Decide:
		v := &c.Verdict
		return said(p.h.Answer(ctx, fleet.Answer{ID: c.Approval, Allow: v.Allow, Reason: v.Reason, Input: v.Input, By: v.Who}))
	default:
		return ui.ErrUnsupported
	}
	return nil
}

// said makes an error of a job match that of the window.
func said(err error) error {
	var first *fleet.DecidedError
	if errors.As(err, &first) {
		return &ui.DecidedError{Verdict: ui.Verdict{Allow: first.Allow, Reason: first.Reason, Who: first.By}, At: first.At}
	}
	for _, m := range []struct{ is, as error }{
		{fleet.ErrNoTask, ui.ErrNoTask}, {fleet.ErrTaskOver, ui.ErrOver}, {fleet.ErrJobOver, ui.ErrOver}, {fleet.ErrNoApproval, ui.ErrDecided},
	} {
		if errors.Is(err, m.is) {
			return fmt.Errorf("%w: %w", m.as, err)
		}
	}
	return err
}
