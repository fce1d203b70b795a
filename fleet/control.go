package fleet

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Pause stops new attempts until [Handle.Unpause]; running attempts continue. The number of
// [Handle.Retune] stays. A job that is resumed by another process is not paused. Pause waits
// for nothing, so it may be called from Job.OnEvent; Progress says at once that the job is
// paused, and a start that is being decided may still follow. With Job.Queue only this program
// pauses; [Decide] pauses all of them.
func (h *Handle) Pause() { h.pause(true) }

// Unpause ends a [Handle.Pause].
func (h *Handle) Unpause() { h.pause(false) }

func (h *Handle) pause(on bool) {
	h.b.tell(pauses{on})
	h.b.post(paused{on})
}

// CancelTask ends a task with the status [Canceled]: its attempt is interrupted, and its
// outcome does not count. Tasks that come after it are skipped. When it returns nil the
// decision is durable; the result follows when the agent's processes are gone. The error
// matches [ErrNoTask], [ErrTaskOver] or [ErrJobOver], or says that the journal cannot be
// written. Canceling a canceled task is not an error. It waits for the job, so
// Job.OnEvent must not call it, nor Requeue.
//
// With Job.Queue the decision is in the queue, and the program that has the task obeys it; the
// error may also be that of the queue. A result that the queue has before counts.
func (h *Handle) CancelTask(ctx context.Context, id string) error {
	return h.steer(ctx, id, steerCancel)
}

// Requeue lets a task run again from the beginning: in a new session and a new workspace,
// with all of its attempts and its budget. An attempt that is under way is interrupted. A
// result that the task has is void: it is taken out of results.jsonl, and the next one
// comes with a higher TaskResult.Requeued, even if the earlier result was already
// delivered. Tasks that were skipped because of it are requeued, too; those that have
// begun stay as they are. A task that has not begun stays in the queue. The usage of all
// attempts counts for the job. When it returns nil the decision is durable. The error
// matches [ErrNoTask] or [ErrJobOver], or says that the journal cannot be written.
//
// A job ends with its last task. Use [Amend] for a job that has ended.
func (h *Handle) Requeue(ctx context.Context, id string) error {
	return h.steer(ctx, id, steerRequeue)
}

func (h *Handle) steer(ctx context.Context, id string, what steer) error {
	reply := kernel.NewPromise[struct{}]()
	h.b.post(steered{id: id, what: what, reply: reply})
	if _, err := reply.Wait(ctx, h.b.exec); err != nil {
		return fmt.Errorf("task %q: %w", id, err)
	}
	return nil
}

// tooLate answers a decision that the job cannot take any more.
func tooLate(in input) {
	switch in := in.(type) {
	case steered:
		answered{to: in.reply, err: ErrJobOver}.settle(nil)
	case leased:
		in.reply.Fail(ErrJobOver)
	case ordered:
		in.reply.Resolve(struct{}{})
	case answers:
		answered{to: in.reply, err: ErrJobOver}.settle(nil)
	case recorded: // it is durable, and obeyed by the next program
		answered{to: in.reply, err: in.failed()}.settle(nil)
	}
}
