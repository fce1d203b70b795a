package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// launch starts an attempt.
func (r *run) launch(l launch) {
	r.mu.Lock()
	e := r.tasks[l.id]
	a := &attempt{launch: l, task: e.task, shellLimit: defaultVerifyTimeout}
	ctx, stop := context.WithCancel(r.ctx)
	hard, kill := context.WithCancel(r.hard)
	a.stop, a.hard, a.kill = stop, hard, func() { kill(); stop() }
	if l.mode == modeResume {
		a.Text, a.Structured, a.ToolCalls = e.partial.Text, e.partial.Structured, e.partial.ToolCalls
	}
	e.number, e.since, e.doing, e.last, e.due = l.number, r.clock.Now(), "preparing", a, time.Time{}
	r.running = append(r.running, e)
	r.mu.Unlock()
	if r.job.Queue == nil { // the queue in this process does not refuse
		r.began(a)
	}
	r.exec.Go(func() {
		defer a.kill()
		o := outcome{status: Crashed, why: "panic"}
		if err := guard("the attempt", func() error { o = r.leased(ctx, e, a); return nil }); err != nil {
			a.err, o.why = err, err.Error()
		}
		if errors.As(a.err, new(*journal.FailedError)) {
			o.status = Interrupted
			r.fail(a.err)
		}
		r.mu.Lock()
		defer r.mu.Unlock() // so that a decision comes before the end, or after it
		if a.lost {
			o.status, o.lost, o.stops = Interrupted, true, ""
		}
		o.asks = o.status == Interrupted && !o.refused && !o.lost && r.ctx.Err() == nil && e.asking()
		r.put(ended{l.id, o})
	})
}

// began says that an attempt starts.
func (r *run) began(a *attempt) {
	r.tell(Event{Kind: EventStarted, Task: a.id, Attempt: a.number, Detail: string(a.mode)})
}
