package fleet

import (
	"context"
	"iter"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Run runs a job and yields its results as they come, in any order. With Resume it first
// yields those of the earlier processes, so that a program which died between two results
// misses none. If there is an error, it is yielded last: mistakes in the job, which are
// found before anything starts, or a *[StoppedError]. A task that was not accepted is not
// an error.
//
// If the loop ends early, nothing more starts, and Run returns when what runs has ended.
// If ctx ends, the agents are interrupted. In both cases the job can be resumed.
func Run(ctx context.Context, job Job) iter.Seq2[TaskResult, error] {
	return func(yield func(TaskResult, error) bool) {
		h, err := Start(ctx, job)
		if err != nil {
			yield(TaskResult{}, err)
			return
		}
		h.play(ctx, yield)
	}
}

// Stream is [Run] with tasks that come one by one, as many as there is room for. An error
// of tasks stops the job. Job.Tasks must be empty. A task of After must come before the
// tasks that need it. A job is resumed with the same tasks, in any order; one that was
// there before and does not come again stays as it was.
func Stream(ctx context.Context, job Job, tasks iter.Seq2[Task, error]) iter.Seq2[TaskResult, error] {
	return func(yield func(TaskResult, error) bool) {
		h, err := start(ctx, job, tasks)
		if err != nil {
			yield(TaskResult{}, err)
			return
		}
		h.play(ctx, yield)
	}
}

// Handle is a job that runs. It is safe for concurrent use.
type Handle struct{ b *box }

// Start begins a job and returns at once. Read [Handle.Results] to its end.
func Start(ctx context.Context, job Job) (*Handle, error) {
	if len(job.Tasks) == 0 {
		return nil, noTasks()
	}
	return start(ctx, job, nil)
}

// Results yields the results of the job, as [Run] does. If the loop ends early, the next
// one continues.
func (h *Handle) Results(ctx context.Context) iter.Seq2[TaskResult, error] {
	return func(yield func(TaskResult, error) bool) { h.each(ctx, yield) }
}

func (h *Handle) play(ctx context.Context, yield func(TaskResult, error) bool) {
	defer func() { // on every way out, a panic of the loop included
		h.Drain()
		_ = h.b.exec.Await(context.WithoutCancel(ctx), h.b.over)
	}()
	h.each(context.WithoutCancel(ctx), yield) // the end of ctx comes as the last error
}

func (h *Handle) each(ctx context.Context, yield func(TaskResult, error) bool) {
	for {
		result, err, more := h.b.next(ctx)
		if !more {
			return
		}
		if !yield(result, err) || err != nil {
			return
		}
	}
}

// Drain stops starting attempts and lets running ones finish.
func (h *Handle) Drain() { h.b.post(drained{Stop{Reason: StopDrained}}) }

// Cancel interrupts what runs, and starts nothing more.
func (h *Handle) Cancel() {
	h.b.post(drained{Stop{Reason: StopCanceled}})
	h.b.cancel()
}

// Kill cancels the job and kills the agents at once.
func (h *Handle) Kill() {
	h.Cancel()
	h.b.kill()
}

// Retune sets how many attempts run at the same time; 0 is a pause. With fewer, running
// ones continue. A job with Job.Pace keeps the number from then on.
func (h *Handle) Retune(concurrency int) { h.b.post(retuned{concurrency}) }

// Progress returns where the job stands.
func (h *Handle) Progress() Progress {
	return ask(h.b, func(to *kernel.Promise[Progress]) note { return progressOf{to} })
}

// Done returns a channel that is closed when nothing of the job runs any more and its
// files are written.
func (h *Handle) Done() <-chan struct{} { return h.b.over }
