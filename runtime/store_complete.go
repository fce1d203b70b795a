package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/mirror"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// completion appends to the session's store what the agent's transcript has and the store
// lacks. The store gets what the agent reports, and an agent that is killed reports no more.
// It is done between two processes and before the session ends, if the process did not end
// in order, or if entries were dropped. No process runs meanwhile. Its methods are safe for
// concurrent use.
type completion struct {
	s        *Session
	missing  func(ctx context.Context, id string) (transcript.Imported, error)
	attempts int

	mu      sync.Mutex
	clean   bool // the last process has ended in order, so it has reported everything
	dropped bool // reports of the agent's did not come into the store
}

// completionTime is how long the start of a process and the end of the session wait for a
// completion. It is less than the time that the mirror's child has after its last append.
const completionTime = 4 * time.Second

// completes returns the completion of the session, or nil, because the agent may run
// elsewhere or stores nothing, or because the store lacks the session's beginning, which
// this machine has.
func (s *Session) completes(spec *Spec, in *dialect.Input, store session.Store) *completion {
	headless := in.Resume != "" && s.stored.dir == "" && !in.ForkSession
	if headless || spec.Options.Spawner != nil || spec.Translate != nil {
		return nil
	}
	c := &completion{s: s, attempts: in.SessionStoreOptions.WithDefaults().Attempts}
	if spec.Program != nil {
		c.missing = s.missingOf(spec.Program, in, store)
	} else if root := s.configRoot(in); root != "" {
		local := &transcript.Sessions{Vendor: s.vendor(in), Root: root}
		c.missing = func(ctx context.Context, id string) (transcript.Imported, error) {
			return local.Import(ctx, id, store, transcript.ImportOptions{Missing: true})
		}
	}
	if c.missing == nil {
		return nil
	}
	return c
}

// missingOf is for an agent in memory; nil if it stores nothing that can be read.
func (s *Session) missingOf(program agent.Program, in *dialect.Input, store session.Store) func(context.Context, string) (transcript.Imported, error) {
	archive, ok := program.(agent.Archive)
	launch, err := s.dialect.Launch(in)
	if !ok || err != nil {
		return nil
	}
	at := agent.Launch{Dir: launch.Dir, Env: environment(launch, in.ParentEnv)}
	project := s.project(s.vendor(in), in)
	return func(ctx context.Context, id string) (transcript.Imported, error) {
		content, err := archive.ReadSession(at, id)
		if err != nil {
			return transcript.Imported{}, err
		}
		return transcript.Complete(ctx, store, session.StoreKey{Project: project, Session: id}, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		})
	}
}

// note takes note of an event: entries that were dropped are in the transcript.
func (c *completion) note(e session.Event) {
	if _, dropped := e.(*session.MirrorFailed); dropped && c != nil {
		c.mu.Lock()
		c.dropped = true
		c.mu.Unlock()
	}
}

// parted takes note of how the last process has ended, and reports whether it has.
func (c *completion) parted() bool {
	l := c.s.core.Link().Status()
	if l.Phase != machine.Gone {
		return false // the agent has only left a session for another one
	}
	c.mu.Lock()
	c.clean = l.Exit == (session.ExitStatus{}) && l.Err.Err == nil && l.Signal == ""
	c.mu.Unlock()
	return true
}

// begins completes the agent's session before another process of it starts.
func (c *completion) begins(ctx context.Context, id string) {
	l := c.s.core.Link().Status()
	if l.Phase != machine.Launching {
		return // it runs, and has named its session
	}
	if l.Gen > 1 {
		c.run(ctx, id, c.s.stored.mirror)
	}
	c.mu.Lock()
	c.clean = false
	c.mu.Unlock()
}

// ends completes the agent's session before the session ends.
func (c *completion) ends() {
	if c != nil && c.parted() {
		c.run(context.Background(), c.s.AgentSessionID(), nil)
	}
}

// run completes the store, if that is due. It first waits for the entries of first, if that
// is not nil. A failure is an event; the next run tries again.
func (c *completion) run(ctx context.Context, id string, first *mirror.Mirror) {
	c.mu.Lock()
	due := id != "" && (!c.clean || c.dropped)
	c.dropped = c.dropped && !due
	c.mu.Unlock()
	if !due {
		return
	}
	limit := &session.TimeoutError{What: "completion of the session in the store", Limit: completionTime}
	within, cancel := kernel.WithTimeout(ctx, c.s.rt.sys.Clock(), limit)
	defer cancel()
	var done transcript.Imported
	var err error
	if first != nil {
		err = first.Wait(within)
	}
	if err == nil {
		done, err = c.try(within, id)
	}
	c.mu.Lock()
	c.dropped = c.dropped || err != nil
	c.mu.Unlock()
	switch {
	case ctx.Err() != nil: // the process is not wanted any more, and the end of the session follows
		return
	case err != nil && within.Err() != nil:
		err = fmt.Errorf("%w: %w", limit, err)
	case err == nil && done.Foreign > 0:
		err = fmt.Errorf("%w: %s", session.ErrStoreAhead, shown.Count(done.Foreign, "message"))
	}
	if done.Entries > 0 {
		c.s.emit(&session.Mirrored{Entries: done.Entries, Unreported: done.Entries})
	}
	if err != nil {
		c.s.emit(&session.MirrorFailed{Key: done.Key, Err: &session.StoreError{Doing: "complete", Key: done.Key, Err: err}})
	}
}

// try returns what was appended by all attempts. An attempt begins where the one before has
// failed: what was appended is not missing any more.
func (c *completion) try(ctx context.Context, id string) (done transcript.Imported, err error) {
	for pause, n := 200*time.Millisecond, 1; ; pause, n = 2*pause, n+1 {
		var more transcript.Imported
		more, err = c.attempt(ctx, id)
		more.Entries += done.Entries
		done = more
		lease, _ := errors.AsType[*session.LeaseError](err)
		switch {
		case errors.Is(err, fs.ErrNotExist): // the agent has stored nothing
			return done, nil
		case err == nil, ctx.Err() != nil, n >= c.attempts, lease != nil && lease.Err == nil:
			return done, err
		}
		wait, cancel := kernel.WithTimeout(ctx, c.s.rt.sys.Clock(), &session.TimeoutError{What: "pause", Limit: pause})
		_ = c.s.rt.sys.Executor().Await(wait, nil) // nothing but the time ends it
		cancel()
	}
}

// attempt guards against a store that panics.
func (c *completion) attempt(ctx context.Context, id string) (done transcript.Imported, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &session.PanicError{Value: p, Message: "SessionStore", Stack: debug.Stack()}
		}
	}()
	return c.missing(ctx, id)
}

// completedLeases complete the store before a process of the session starts.
type completedLeases struct {
	transport.Leases // nil if no lease is needed
	s                *Session
}

// Acquire implements [transport.Leases].
func (l completedLeases) Acquire(ctx context.Context, id string, lost func(error)) (func(), error) {
	release := func() {}
	if l.Leases != nil {
		var err error
		if release, err = l.Leases.Acquire(ctx, id, lost); err != nil {
			return nil, err
		}
	}
	c := l.s.stored.completion
	if c == nil {
		return release, nil
	}
	c.begins(ctx, id)
	return func() {
		c.parted()
		release()
	}, nil
}
