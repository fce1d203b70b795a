package runtime

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Stop stops a part of what the session does, and says what has stopped, what still runs
// and what is still queued. It waits until the agent has confirmed, and up to
// Options.InterruptGrace until the interrupted turn has its result; a turn without one is
// in the receipt as running. If a part fails, the receipt says what was stopped
// nevertheless. Of a session that has ended the receipt is that of a kill.
func (s *Session) Stop(ctx context.Context, scope session.StopScope) (*session.StopReceipt, error) {
	before, err := s.inventory(ctx, scope.Kill)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	if scope.Kill || s.State().Terminal() {
		return killed(&before), s.Kill(ctx)
	}
	var errs []error
	if open := before.Running != "" || before.OwnTurn || len(before.Queued) > 0; open && (scope.Turn || scope.Queued) {
		// An idle session is left alone: one without a process would start it for this.
		errs = append(errs, s.interrupt(ctx, scope.Queued, before.Running))
	}
	tasks := scope.Tasks
	if scope.AllTasks {
		for _, t := range before.Tasks {
			tasks = append(slices.Clip(tasks), t.TaskID)
		}
	}
	for _, id := range tasks {
		errs = append(errs, s.Call(ctx, protocol.StopTaskRequest{TaskID: id}, nil, 0))
	}
	after, err := s.inventory(ctx, false)
	if err != nil && ctx.Err() != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	return compare(&before, &after), errors.Join(errs...)
}

// lookAgain is how long Stop waits for an actor that restarts.
const lookAgain = 20 * time.Millisecond

// inventory asks what is under way. While the router restarts no actor can say so, and the
// session goes to work with the next one, so it asks again. A kill does not wait for that, nor
// is there anything to wait for in a session without actors: it has not begun, or has ended.
func (s *Session) inventory(ctx context.Context, once bool) (machine.Inventory, error) {
	for {
		all, err := s.core.Inventory(ctx)
		if !errors.Is(err, kernel.ErrStopped) || once || s.lived.Load() == 0 || s.core.User.Terminated() {
			return all, err
		}
		wait, cancel := kernel.WithTimeout(ctx, s.rt.sys.Clock(), &session.TimeoutError{What: "restart of the router", Limit: lookAgain})
		_ = s.rt.sys.Executor().Await(wait, s.Done())
		cancel()
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
	}
}

// interrupt interrupts the turn that runs, and waits for its end.
func (s *Session) interrupt(ctx context.Context, queued bool, running string) error {
	if err := s.Call(ctx, protocol.InterruptRequest{CancelQueued: queued}, nil, 0); err != nil {
		return err
	}
	over := s.core.User.TurnOver(running)
	if over == nil {
		return nil
	}
	limit := &session.TimeoutError{What: "end of the interrupted turn", Limit: s.core.InterruptGrace(), SetBy: "InterruptGrace"}
	bounded, cancel := kernel.WithTimeout(ctx, s.rt.sys.Clock(), limit)
	defer cancel()
	_ = s.rt.sys.Executor().Await(bounded, over) // the receipt says whether it runs
	return nil
}

// killed is the receipt of a session that has ended.
func killed(before *machine.Inventory) *session.StopReceipt {
	r := &session.StopReceipt{Turn: before.Running, Cancelled: before.Queued, Killed: true}
	for _, t := range before.Tasks {
		if t.OffHost {
			r.RunningTasks = append(r.RunningTasks, t)
		} else {
			r.Tasks = append(r.Tasks, t)
		}
	}
	return r
}

// compare is what became of what was under way.
func compare(before, after *machine.Inventory) *session.StopReceipt {
	r := &session.StopReceipt{Running: after.Running, OwnTurn: after.OwnTurn, Queued: after.Queued, RunningTasks: after.Tasks}
	open := func(id string) bool { return id == after.Running || slices.Contains(after.Queued, id) }
	if !open(before.Running) {
		r.Turn = before.Running
	}
	for _, id := range before.Queued {
		if !open(id) {
			r.Cancelled = append(r.Cancelled, id)
		}
	}
	for _, t := range before.Tasks {
		if !slices.ContainsFunc(after.Tasks, func(a protocol.BackgroundTask) bool { return a.TaskID == t.TaskID }) {
			r.Tasks = append(r.Tasks, t)
		}
	}
	return r
}

// Drain ends the runtime's sessions after their turns. From now on the runtime accepts
// no new sessions ([session.ErrShutdown]), and its sessions accept no new messages
// ([session.ErrDraining]). Each session is closed when its turns have ended; see
// [Session.Drain]. Call [Runtime.Shutdown] afterwards.
//
// If ctx ends first, the error names the sessions that are still open. They still
// accept no messages, and Shutdown ends them. All other errors are those of closing
// sessions.
func (rt *Runtime) Drain(ctx context.Context) error {
	rt.stopIntake()
	all := rt.Sessions()
	for _, s := range all {
		s.core.User.RefuseTurns()
	}
	drained := make([]*kernel.Promise[struct{}], len(all))
	for i, s := range all {
		drained[i] = kernel.NewPromise[struct{}]()
		rt.sys.Executor().Go(func() { drained[i].Fail(s.Drain(ctx)) })
	}
	errs := make([]error, len(all))
	for i := range drained {
		_, errs[i] = drained[i].Wait(context.WithoutCancel(ctx), rt.sys.Executor()) // each ends with ctx
	}
	if ctx.Err() != nil && len(rt.Sessions()) > 0 {
		return rt.unstopped(context.Cause(ctx))
	}
	return errors.Join(errs...)
}

// Drain ends the session after its turns. From now on [Session.Send] fails with
// [session.ErrDraining]. Drain waits for the answers to the messages that were sent
// before, and up to Limits.Background for background tasks. Then it closes the session
// as [Session.Close] does. Control requests and callbacks work until the close. Another
// goroutine must read the messages meanwhile, unless they are few: an agent stops when
// its output is not read.
//
// If ctx ends before the turns, the error is a *[session.UnfinishedError] that says what
// Drain waited for. The session is then still open, and still accepts no messages: close
// it, or call Drain again. If ctx ends during the close, the error is that of Close.
func (s *Session) Drain(ctx context.Context) error {
	if err := s.FinishTurns(ctx); err != nil {
		return err
	}
	return s.Close(ctx)
}

// FinishTurns is [Session.Drain] without the close.
func (s *Session) FinishTurns(ctx context.Context) error {
	s.core.User.RefuseTurns()
	if _, err := s.AwaitDone(ctx); err != nil {
		return s.Unfinished("drain session "+s.id, err)
	}
	return nil
}
