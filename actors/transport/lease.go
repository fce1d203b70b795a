package transport

import (
	"context"
	"runtime/debug"
	"strings"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Leases hand out the right to run the agent's session, as [session.Leases] do.
type Leases interface {
	// Acquire gets it. lost is called when it is lost before it was given back; from then
	// on the process must not run.
	Acquire(ctx context.Context, sessionID string, lost func(error)) (release func(), err error)
}

// lease is the right to run the agent's session. An agent is in one session at a time, and
// may name others as often as it likes, so there is one. Under the link's lock.
type lease struct {
	id      string // of the session whose lease is held; "": none is
	release func()
	named   string             // the session that the agent has named last
	task    chan struct{}      // closed when the task that gets the lease of that one has ended; nil if no task does
	stop    context.CancelFunc // ends that task
	over    bool               // no process is left: no lease is kept any more
}

// hold gets the right to run the agent's session id, before the process is started.
func (k *Link) hold(ctx context.Context, id string) error {
	if k.cfg.Leases == nil || id == "" {
		return nil
	}
	release, err := k.acquire(ctx, id)
	if err != nil {
		return err
	}
	k.keep(id, release)
	return nil
}

// acquire guards against an implementation of the user's that panics.
func (k *Link) acquire(ctx context.Context, id string) (release func(), err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &session.LeaseError{SessionID: id, Err: &session.PanicError{Value: r, Message: "Leases.Acquire", Stack: debug.Stack()}}
		}
	}()
	return k.cfg.Leases.Acquire(ctx, id, k.lost)
}

// keep takes a lease, and gives back the one of the session that the agent was in before.
func (k *Link) keep(id string, release func()) {
	k.mu.Lock()
	old := release // a link that is gone keeps none
	if !k.lease.over {
		old = k.lease.release
		k.lease.id, k.lease.release = id, release
	}
	k.mu.Unlock()
	k.release(old)
}

// release gives a lease back, and guards against an implementation of the user's that panics.
func (k *Link) release(back func()) {
	if back == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			err := &session.PanicError{Value: r, Message: "the release of a lease", Stack: debug.Stack()}
			k.cfg.Emit(&session.WarningIssued{Problem: "the lease of an agent's session may not have been given back: " + err.Error()})
		}
	}()
	back()
}

// Named takes note that the agent has named the session that it is in. If another program
// has the right to run that one, this agent cannot be used.
func (k *Link) Named(id string) {
	if k.cfg.Leases == nil || id == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lease.named = id
	if k.lease.task == nil && !k.lease.over && !strings.EqualFold(id, k.lease.id) {
		done := make(chan struct{})
		ctx, stop := context.WithCancel(k.life)
		k.lease.task, k.lease.stop = done, stop
		k.cfg.Exec.Go(func() {
			defer close(done)
			defer stop()
			k.follow(ctx)
		})
	}
}

// lost ends the session, whose lease another host may have: the process is killed at once.
func (k *Link) lost(err error) {
	k.cfg.Session(machine.Unusable{Err: err}) // the reason comes before the exit
	k.Abort()
}

// follow gets the lease of the session that the agent has named last.
func (k *Link) follow(ctx context.Context) {
	id, returned := "", false
	defer func() { // the user's code may have ended the goroutine
		if !returned && ctx.Err() == nil {
			k.cfg.Session(machine.Unusable{Err: &session.LeaseError{SessionID: id, Err: errNoReturn}})
		}
	}()
	for {
		k.mu.Lock()
		id = k.lease.named
		if k.lease.over || strings.EqualFold(id, k.lease.id) {
			k.lease.task, returned = nil, true
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		release, err := k.acquire(ctx, id)
		if err != nil { // the agent is ended, so nothing follows
			returned = true
			if ctx.Err() == nil {
				k.cfg.Session(machine.Unusable{Err: err})
			}
			return
		}
		k.keep(id, release)
	}
}

// giveBack gives the lease back: no process is left. The task that gets the next one is ended
// first, so that the session has no lease any more when its end is seen.
func (k *Link) giveBack() {
	k.mu.Lock()
	k.lease.over = true
	task, stop := k.lease.task, k.lease.stop
	k.mu.Unlock()
	if task != nil {
		stop()
		limit, cancel := kernel.WithTimeout(context.Background(), k.cfg.Clock, &session.TimeoutError{What: "Leases.Acquire", Limit: k.cfg.Graces.Sweep})
		_ = k.cfg.Exec.Await(limit, task) // an implementation that ignores its context does not hold up the end
		cancel()
	}
	k.mu.Lock()
	release := k.lease.release
	k.lease.release = nil
	k.mu.Unlock()
	k.release(release)
}
