package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// stallKill is the default of Limits.StallKill in a job.
const stallKill = time.Minute

// stalled is the end of a turn that the session interrupted because it made no progress.
type stalled struct {
	limit time.Duration
	err   error
}

func (e *stalled) Error() string {
	return fmt.Sprintf("the turn made no progress for %v and was interrupted (Limits.Stall)", e.limit)
}

func (e *stalled) Unwrap() error { return e.err }

// stallWatch remembers the last stall of a session. Options.OnEvent runs on a separate task,
// so a result can arrive before the event that explains it.
type stallWatch struct {
	ended *kernel.Promise[struct{}] // the session's last event was seen, and the rest may be read
	at    time.Time
	last  *session.TurnStalled
}

// watchStalls adds a watch to the options of a session.
func watchStalls(o *sdk.Options) *stallWatch {
	w := &stallWatch{ended: kernel.NewPromise[struct{}]()}
	next := o.OnEvent
	o.OnEvent = func(r session.EventRecord) {
		switch e := r.Event.(type) {
		case *session.TurnStalled:
			w.at, w.last = r.At, e
		case *session.Ended:
			w.ended.Resolve(struct{}{})
		}
		if next != nil {
			next(r)
		}
	}
	return w
}

// explain returns err as a *stalled if a stall interrupted the turn that began at began. The
// session must be closed.
func (w *stallWatch) explain(ctx context.Context, exec session.Executor, began time.Time, err error) error {
	var failed *sdk.ResultError
	if !errors.As(err, &failed) || !failed.Result.Interrupted() && failed.Result.Subtype != protocol.ResultErrorDuringExecution {
		return err
	}
	if _, killed := w.ended.Wait(ctx, exec); killed != nil {
		return err
	}
	if w.last == nil || w.at.Before(began) {
		return err
	}
	return &stalled{w.last.Limit, err}
}
