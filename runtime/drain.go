package runtime

import (
	"context"
	"errors"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Drain ends the runtime's sessions without cutting a turn short. It takes no new
// sessions ([session.ErrShutdown]), and the sessions take no new messages
// ([session.ErrDraining]). Each session is closed when its turns have ended, see
// [Session.Drain]. Call [Runtime.Shutdown] afterwards.
//
// When ctx ends first, the error names the sessions that are left. They still take
// no messages, and Shutdown ends them. Other errors are those of closing sessions.
func (rt *Runtime) Drain(ctx context.Context) error {
	rt.stopIntake()
	all := rt.Sessions()
	for _, s := range all {
		s.core.Ledger.RefuseTurns()
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

// Drain ends the session without cutting a turn short. [Session.Send] fails from now
// on, with [session.ErrDraining]. The messages that were sent before are answered,
// and background tasks are waited for as long as Limits.Background says; then the
// session is closed as by [Session.Close]. Control requests and callbacks work until
// then. Somebody must read the messages meanwhile, unless they are few: an agent
// whose output nobody reads comes to a halt.
//
// When ctx ends before the turns have, the error is a *[session.UnfinishedError] that
// says what was waited for. The session is not closed then, and still takes no
// messages: close it, or call Drain again. An end of ctx during the close is that of
// Close.
func (s *Session) Drain(ctx context.Context) error {
	if err := s.FinishTurns(ctx); err != nil {
		return err
	}
	return s.Close(ctx)
}

// FinishTurns is [Session.Drain] without the close.
func (s *Session) FinishTurns(ctx context.Context) error {
	s.core.Ledger.RefuseTurns()
	if _, err := s.AwaitDone(ctx); err != nil {
		return s.Unfinished("drain session "+s.id, err)
	}
	return nil
}
