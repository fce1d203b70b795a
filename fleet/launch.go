package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// launch starts an attempt.
func (r *runner) launch(l launch, h *handle) {
	a := &attempt{launch: l, handle: h, task: l.with.task, shellLimit: defaultVerifyTimeout, fence: l.with.fence, waits: kernel.NewPromise[struct{}]()}
	p := l.with.partial
	a.Text, a.Structured, a.ToolCalls = p.Text, p.Structured, p.ToolCalls
	h.began = true
	r.exec.Go(func() {
		defer h.over.Resolve(struct{}{})
		defer h.kill()
		o := outcome{status: Crashed, why: "panic"}
		if err := guard("the attempt", func() error { o = r.leased(h.ctx, a); return nil }); err != nil {
			a.err, o.why = err, err.Error()
		}
		if errors.As(a.err, new(*journal.FailedError)) {
			o.status = Interrupted
			r.fail(a.err)
		}
		o.asks = !a.waits.Fail(context.Canceled)
		o.left = r.leaves(a)
		r.post(ended{l.id, o})
	})
}

// jot has the queue know what the attempt has come to. waits: before it continues.
func (r *runner) jot(ctx context.Context, a *attempt, turns int, begins, waits bool) error {
	if r.shared == nil {
		return nil
	}
	j := jots{id: a.id, number: a.number, begins: begins, continues: a.mode == modeResume, session: a.session, agent: backendName(a.opts), turns: turns, kept: a.kept, unkept: a.unmoved}
	if waits {
		j.reply = kernel.NewPromise[struct{}]()
	}
	if r.tell(j); !waits {
		return nil
	}
	_, err := j.reply.Wait(ctx, r.exec)
	return err
}

// leaves is what others have to know of an attempt that is over.
func (r *runner) leaves(a *attempt) *report {
	left := a.report
	left.how, left.place = a.begins(), a.space
	left.remains = &remains{task: a.task, opts: a.opts, workspace: a.workspace, space: a.space, number: a.number, fence: a.fence}
	if a.opts != nil {
		left.remains.dir = a.Workspace
	}
	return &left
}

// leased runs the attempt of a task once this program has leased it.
func (r *runner) leased(ctx context.Context, a *attempt) outcome {
	if r.shared == nil || a.with.held {
		a.from = a.with.from
		return r.attempt(ctx, a)
	}
	l, sent, refused, wait, err := r.shared.lease(ctx, request{a.with.ticket, a.with.hash, a.with.offer})
	switch {
	case ctx.Err() != nil:
		if err == nil && !refused {
			r.shared.release(r.calls, l)
		}
		return outcome{status: Interrupted, why: "the job has stopped", refused: true}
	case err != nil:
		r.fail(&queueError{err})
		return outcome{status: Interrupted, why: err.Error(), refused: true}
	case refused:
		return outcome{status: Interrupted, why: "another program has the task", refused: true, after: wait}
	}
	if wait := r.reserved(a, &l); wait > 0 {
		r.shared.release(r.calls, l)
		return outcome{status: Interrupted, why: "the task is left to the program that has begun it", refused: true, after: wait}
	}
	armed := kernel.NewPromise[struct{}]()
	r.post(leased{a.id, a.number, l, sent, armed})
	if _, err := armed.Wait(context.WithoutCancel(ctx), r.exec); err != nil {
		return outcome{status: Interrupted, why: err.Error(), refused: true}
	}
	a.fence = l.Fence
	i, _ := question(r.env, func(to *kernel.Promise[inheritance]) note { return inherits{a.id, a.number, to} })
	if a.used, a.usd = i.used, i.usd; i.quarantined != "" {
		a.started, a.decided = r.clock.Now(), i.quarantined
		return outcome{status: Quarantined, why: i.quarantined}
	}
	if a.note = i.anew; i.from != nil {
		a.mode, a.from = modeMoved, i.from
	}
	return r.attempt(ctx, a)
}

// reserved is for how long a task that this program has leased is left to the one that has begun it.
func (r *runner) reserved(a *attempt, l *queue.Lease) time.Duration {
	var left TaskNote
	if r.job.Affinity <= 0 || len(l.Note) == 0 || json.Unmarshal(l.Note, &left) != nil {
		return 0
	}
	wait, _ := question(r.env, func(to *kernel.Promise[time.Duration]) note { return reserves{a.id, left.sticky(), to} })
	return wait
}
