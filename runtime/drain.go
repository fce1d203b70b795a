package runtime

import (
	"context"
	"errors"

	"github.com/agent-troupe/troupe/internal/kernel"
)

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
