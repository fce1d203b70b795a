package runtime

import (
	"context"

	"github.com/agent-troupe/troupe/session"
)

// Unfinished returns an error that says what the session waits for. doing is the work
// that was not finished, and err is why its context ended. Call it before the session is
// closed.
func (s *Session) Unfinished(doing string, err error) *session.UnfinishedError {
	e := &session.UnfinishedError{Doing: doing, State: s.State(), Err: err}
	e.Waits, _, _, _ = s.waits(context.Background()) // none, if no actor answers
	if _, held := s.starts.wait(); e.State == session.StateAdmitting && !held {
		e.Waits = append([]session.Wait{{What: "start of the agent"}}, e.Waits...)
	}
	return e
}

// AwaitReady waits until the agent is initialized. If the session ends first, it returns
// why. If ctx ends first, it returns a *[session.UnfinishedError].
func (s *Session) AwaitReady(ctx context.Context) error {
	exec, user := s.rt.sys.Executor(), s.core.User
	err := exec.Await(ctx, user.Ready())
	if err == nil {
		if user.Usable() {
			return nil
		}
		err = exec.Await(ctx, user.Done())
	}
	if err != nil {
		return s.Unfinished("open session "+s.id, err)
	}
	return s.endedBy()
}

// Kill kills the agent and waits until the session has ended, at most until ctx ends.
// The errors are those of [Session.Close].
func (s *Session) Kill(ctx context.Context) error {
	if s.State().Terminal() {
		return nil
	}
	s.core.Link().Abort()
	return s.Close(ctx)
}
