package actors

import (
	"context"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// passivate asks for the end of the process, if it is not needed. From: the user.
type passivate struct{ reply *kernel.Promise[struct{}] }

func (passivate) ToSession() {}

// Passivate ends the session's process, if it is not needed, and waits until it is gone.
func (k *Core) Passivate(ctx context.Context) error {
	exec, reply := k.cfg.System.Executor(), kernel.NewPromise[struct{}]()
	watched, unwatch := context.WithCancel(ctx)
	defer unwatch()
	exec.Go(func() { // a session that has ended handles nothing
		if exec.Await(watched, k.User.Done()) == nil {
			reply.Fail(session.ErrClosed)
		}
	})
	k.session.Tell(nil, passivate{reply})
	_, err := reply.Wait(ctx, exec)
	return err
}

// rested reports the outcome to the callers of Passivate.
func (k *Core) rested(err error) {
	for _, reply := range k.resting {
		if err != nil {
			reply.Fail(err)
		} else {
			reply.Resolve(struct{}{})
		}
	}
	k.resting = nil
}
