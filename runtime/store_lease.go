package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// storeLeases are the leases that one session of this runtime has of its store. It holds
// that of the session which its agent is in until it ends, also while it is passivated: it
// resumes from a copy on this machine, which would be outdated once another host continued
// the session. The mirror's appends to other sessions, such as one that the agent has left,
// have a lease only meanwhile. Its methods are safe for concurrent use, and block.
type storeLeases struct {
	store  session.Store
	leaser session.LeaseStore // nil: the store gives out none
	leases session.Leases     // the same for its leases that need no renewal
	ttl    time.Duration
	clock  kernel.Clock
	exec   kernel.Executor
	holder session.LeaseHolder
	warn   func(problem string)

	mu      sync.Mutex
	held    map[string]*storeLease // by the session's id, in small letters
	gone    map[string]error       // why the lease of a session was lost, by the id: another host continues it
	current *storeLease            // of the session that the agent is in
	warned  bool
}

// storeLease is one lease, under the lock of its storeLeases.
type storeLease struct {
	id      string
	lease   session.Lease
	release func() // of session.Leases; nil: none
	none    bool   // the store has no lease to give at present
	uses    int
	got     *kernel.Promise[struct{}] // it was acquired, or that has failed
	left    *kernel.Promise[struct{}] // fulfilled when it was given back; nil while it is in use

	failed func(error) // of the process that runs in the session; nil without a process
	lost   error       // a *session.LeaseError
	late   bool        // it was not renewed in time, and no process runs
	renew  kernel.Timer
	end    kernel.Timer // at until
	until  time.Time    // when it counts as lost, unless it is renewed
}

// newStoreLeases returns nil if the store has no leases.
func newStoreLeases(store session.Store, ttl time.Duration, rt *Runtime, warn func(string)) *storeLeases {
	l := &storeLeases{store: store, ttl: ttl, clock: rt.sys.Clock(), exec: rt.sys.Executor(), warn: warn, held: make(map[string]*storeLease)}
	l.leaser, _ = store.(session.LeaseStore)
	l.leases, _ = store.(session.Leases)
	if l.leaser == nil && l.leases == nil {
		return nil
	}
	l.holder = session.LeaseHolder{PID: os.Getpid(), Since: rt.sys.Clock().Now(), Boot: bootID()}
	l.holder.Host, _ = os.Hostname() // "" says that it is not known
	return l
}

// dead reports whether a holder was a program of this machine that does not run any more.
func (l *storeLeases) dead(h session.LeaseHolder) bool {
	return h.Boot != "" && h.Boot == l.holder.Boot && h.Host == l.holder.Host && h.PID > 0 && !alive(h.PID)
}

// take makes the lease of a session the one that is held. failed is called at most once,
// when it is lost while a process runs, until release is called; nil: no process runs yet.
func (l *storeLeases) take(ctx context.Context, id string, failed func(error)) (release func(), err error) {
	h, err := l.hold(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := l.confirm(ctx, h); err != nil {
		l.drop(h)
		return nil, err
	}
	l.mu.Lock()
	old := l.current
	l.current, h.failed = h, failed
	err = h.lost
	l.mu.Unlock()
	if old != nil { // h itself, perhaps, which then has one use
		l.drop(old)
	}
	release = func() {
		l.mu.Lock()
		h.failed = nil
		l.mu.Unlock()
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// leave gives back all leases. It is called when no process of the session is left, and
// does nothing as long as one is.
func (l *storeLeases) leave() {
	l.mu.Lock()
	h := l.current
	if h == nil || h.failed != nil {
		l.mu.Unlock()
		return
	}
	l.current = nil
	l.mu.Unlock()
	l.drop(h)
}

// hold acquires the lease of a session, or takes part in one that is held. Each hold needs a
// drop. A lease that was lost is not acquired again: another host may have continued without
// the entries that this one had to append, and may have ended since.
func (l *storeLeases) hold(ctx context.Context, id string) (*storeLease, error) {
	key := strings.ToLower(id)
	for {
		l.mu.Lock()
		if lost := l.gone[key]; lost != nil {
			l.mu.Unlock()
			return nil, lost
		}
		h := l.held[key]
		if h != nil && h.left != nil { // another goroutine gives it back
			l.mu.Unlock()
			if _, err := h.left.Wait(ctx, l.exec); err != nil {
				return nil, err
			}
			continue
		}
		first := h == nil
		if first {
			h = &storeLease{id: key, got: kernel.NewPromise[struct{}]()}
			l.held[key] = h
		}
		h.uses++
		l.mu.Unlock()
		if first {
			if err := l.acquire(ctx, h); err != nil {
				h.got.Fail(err)
			} else {
				h.got.Resolve(struct{}{})
			}
		}
		if _, err := h.got.Wait(ctx, l.exec); err != nil {
			l.drop(h)
			return nil, err
		}
		return h, nil
	}
}

// acquire gets the lease from the store.
func (l *storeLeases) acquire(ctx context.Context, h *storeLease) (err error) {
	defer l.guard("AcquireLease", h.id, &err)
	ctx, cancel := kernel.WithTimeout(ctx, l.clock, l.limit("lease of the session from the store"))
	defer cancel()
	if l.leases != nil {
		if h.release, err = l.leases.Acquire(ctx, h.id); err != nil {
			return leaseError(h.id, err)
		}
	}
	if l.leaser == nil {
		return nil
	}
	asked := l.clock.Now()
	h.lease, err = l.leaser.AcquireLease(ctx, session.LeaseRequest{Session: h.id, Holder: l.holder, TTL: l.ttl, Dead: l.dead})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		h.none = true
		l.warnOnce(fmt.Sprintf("SessionStore gives out no lease (%v); nothing keeps another host from running the session", err))
		return nil
	case err != nil:
		if h.release != nil {
			h.release()
			h.release = nil
		}
		return leaseError(h.id, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed(h, asked)
	return nil
}

func (l *storeLeases) warnOnce(problem string) {
	l.mu.Lock()
	was := l.warned
	l.warned = true
	l.mu.Unlock()
	if !was {
		l.warn(problem)
	}
}

// limit is how long one call of the store for a lease may take.
func (l *storeLeases) limit(what string) *session.TimeoutError {
	return &session.TimeoutError{What: what, Limit: l.ttl / 6, SetBy: "SessionStoreOptions.Lease"}
}

// guard turns a panic of the store into an error.
func (l *storeLeases) guard(method, id string, err *error) {
	if p := recover(); p != nil {
		*err = &session.LeaseError{SessionID: id, Err: &session.PanicError{Value: p, Message: "SessionStore." + method, Stack: debug.Stack()}}
	}
}

// leaseError says of which session's lease the error is.
func leaseError(id string, err error) error {
	if _, ok := errors.AsType[*session.LeaseError](err); ok {
		return err
	}
	return &session.LeaseError{SessionID: id, Err: err}
}

// renewed sets the timers anew; the caller has the lock. The lease counts as lost a sixth
// of its time before it runs out at the store, which was asked for it at the time asked: its
// process must be gone by then.
func (l *storeLeases) renewed(h *storeLease, asked time.Time) {
	h.late = false
	l.renewIn(h, l.ttl/3)
	if h.end != nil {
		h.end.Stop()
	}
	h.until = asked.Add(l.ttl * 5 / 6)
	h.end = l.clock.AfterFunc(h.until.Sub(l.clock.Now()), func() { l.overdue(h) })
}

func (l *storeLeases) renewIn(h *storeLease, d time.Duration) {
	if h.renew != nil {
		h.renew.Stop()
	}
	h.renew = l.clock.AfterFunc(d, func() { l.exec.Go(func() { l.renewal(h) }) })
}

// renewal is one attempt.
func (l *storeLeases) renewal(h *storeLease) {
	asked := l.clock.Now()
	err := l.tryRenewal(context.Background(), h)
	l.mu.Lock()
	if h.left != nil || h.lost != nil {
		l.mu.Unlock()
		return
	}
	if err != nil {
		l.renewIn(h, l.ttl/12)
	} else {
		l.renewed(h, asked)
	}
	l.mu.Unlock()
	if over, ok := errors.AsType[*session.LeaseError](err); ok && over.Err == nil {
		l.lose(h, over)
	}
}

func (l *storeLeases) tryRenewal(ctx context.Context, h *storeLease) (err error) {
	defer l.guard("RenewLease", h.id, &err)
	ctx, cancel := kernel.WithTimeout(ctx, l.clock, l.limit("renewal of the session's lease"))
	defer cancel()
	if err := l.leaser.RenewLease(ctx, h.lease, l.ttl); err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	return nil
}

// confirm renews a lease that could not be renewed while no process ran. If that succeeds,
// no other host has had it since.
func (l *storeLeases) confirm(ctx context.Context, h *storeLease) error {
	l.mu.Lock()
	late, lost := h.late, h.lost
	l.mu.Unlock()
	if lost != nil || !late {
		return lost
	}
	asked := l.clock.Now()
	if err := l.tryRenewal(ctx, h); err != nil {
		return leaseError(h.id, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.left == nil && h.lost == nil {
		l.renewed(h, asked)
	}
	return h.lost
}

// overdue is called when the lease could not be renewed in time.
func (l *storeLeases) overdue(h *storeLease) {
	l.mu.Lock()
	h.late = !l.clock.Now().Before(h.until) // else it was renewed at this moment
	runs := h.late && h.failed != nil
	l.mu.Unlock()
	if runs {
		l.lose(h, &session.LeaseError{SessionID: h.id, Err: &session.TimeoutError{What: "renewal of the session's lease", Limit: l.ttl * 5 / 6, SetBy: "SessionStoreOptions.Lease"}})
	}
}

// lose ends the use of a lease that another host may have by now.
func (l *storeLeases) lose(h *storeLease, why *session.LeaseError) {
	lost := *why
	lost.SessionID, lost.Lost = h.id, true
	l.mu.Lock()
	if h.left != nil || h.lost != nil {
		l.mu.Unlock()
		return
	}
	h.lost = &lost
	l.stop(h)
	failed := h.failed
	h.failed = nil
	l.mu.Unlock()
	if failed != nil {
		failed(&lost)
	}
}

// stop ends the timers; the caller has the lock.
func (l *storeLeases) stop(h *storeLease) {
	for _, t := range []kernel.Timer{h.renew, h.end} {
		if t != nil {
			t.Stop()
		}
	}
}

// drop ends a hold. The last one gives the lease back.
func (l *storeLeases) drop(h *storeLease) {
	l.mu.Lock()
	h.uses--
	if h.uses > 0 {
		l.mu.Unlock()
		return
	}
	h.left = kernel.NewPromise[struct{}]()
	l.stop(h)
	lost := h.lost
	if lost != nil {
		if l.gone == nil {
			l.gone = make(map[string]error)
		}
		l.gone[h.id] = lost
	}
	l.mu.Unlock()
	if lost == nil && h.lease != (session.Lease{}) {
		_ = l.giveBack(h.lease) // else it runs out
	}
	if h.release != nil {
		h.release()
	}
	l.mu.Lock()
	delete(l.held, h.id)
	l.mu.Unlock()
	h.left.Resolve(struct{}{})
}

func (l *storeLeases) giveBack(lease session.Lease) (err error) {
	defer l.guard("ReleaseLease", lease.Session, &err)
	ctx, cancel := kernel.WithTimeout(context.Background(), l.clock, l.limit("end of the session's lease"))
	defer cancel()
	return l.leaser.ReleaseLease(ctx, lease)
}

// Append implements [session.Store] for the mirror: under the lease of the session. Nothing
// is appended to a session whose lease was lost.
func (l *storeLeases) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	h, err := l.hold(ctx, key.Session)
	if err != nil {
		return err
	}
	defer l.drop(h)
	l.mu.Lock()
	lost := h.lost
	l.mu.Unlock()
	if lost != nil {
		return lost
	}
	if h.lease != (session.Lease{}) {
		ctx = session.WithLease(ctx, h.lease)
	}
	err = l.store.Append(ctx, key, entries)
	if over, ok := errors.AsType[*session.LeaseError](err); ok && over.Err == nil {
		l.lose(h, over)
	}
	return err
}

// Load implements [session.Store].
func (l *storeLeases) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return l.store.Load(ctx, key)
}

// Sessions implements [session.Store].
func (l *storeLeases) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	return l.store.Sessions(ctx, project)
}

// Subpaths implements [session.Store].
func (l *storeLeases) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	return l.store.Subpaths(ctx, project, id)
}

// Delete implements [session.Store].
func (l *storeLeases) Delete(ctx context.Context, key session.StoreKey) error {
	return l.store.Delete(ctx, key)
}

// bothLeases are what a process needs: the right on this machine, and that of the store.
type bothLeases struct {
	local session.Leases // nil: none
	store *storeLeases   // nil: none
}

// Acquire implements [link.Leases].
func (b bothLeases) Acquire(ctx context.Context, id string, lost func(error)) (release func(), err error) {
	local := func() {}
	if b.local != nil {
		if local, err = b.local.Acquire(ctx, id); err != nil {
			return nil, err
		}
	}
	if b.store == nil {
		return local, nil
	}
	stored, err := b.store.take(ctx, id, lost)
	if err != nil {
		local()
		return nil, err
	}
	return func() {
		stored()
		local()
	}, nil
}
