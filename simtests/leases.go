package simtests

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

// leases are the world's own: what the operating system's file locks are in production.
// Guarded by the world's mutex.
type leases struct {
	w    *World
	held map[string]bool
	runs map[string]*faulty // the process of a session
}

// Acquire implements [session.Leases].
func (l *leases) Acquire(_ context.Context, id string) (func(), error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.held[id] {
		return nil, &session.LeaseError{SessionID: id}
	}
	l.held[id] = true
	given := false
	return func() {
		l.w.mu.Lock()
		twice, runs := given, l.runs[id]
		given = true
		delete(l.held, id)
		l.w.mu.Unlock()
		switch {
		case twice:
			l.w.Errorf("leased: the lease of session %s was given back twice", id)
		case runs.alive():
			l.w.Errorf("leased: the lease of session %s was given back while %s ran", id, runs.lane)
		}
	}, nil
}

// begins checks the start of a process for leased: no other process runs its session, and
// the host has the lease. It returns the session, or "".
func (l *leases) begins(f *faulty, start agent.Launch) (id string) {
	if id = named(start.Args); id == "" {
		return ""
	}
	l.w.mu.Lock()
	other, held := l.runs[id], l.held[id]
	l.runs[id] = f
	own := l.w.leased
	l.w.mu.Unlock()
	switch {
	case other.alive():
		l.w.Errorf("leased: %s runs session %s, which %s runs", f.lane, id, other.lane)
	case own && !held:
		l.w.Errorf("leased: %s runs session %s without its lease", f.lane, id)
	}
	return id
}

// ends is the end of the process.
func (l *leases) ends(f *faulty, id string) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.runs[id] == f {
		delete(l.runs, id)
	}
}

// left looks for leases that are never given back.
func (l *leases) left() {
	l.w.mu.Lock()
	left := slices.Sorted(maps.Keys(l.held))
	l.w.mu.Unlock()
	if len(left) > 0 {
		l.w.Errorf("leased: the leases of %s were never given back", strings.Join(left, ", "))
	}
}

// named is the session that the arguments name; "": the agent chooses one itself.
func named(args []string) string {
	id := ""
	for i, a := range args {
		name, value, joined := strings.Cut(a, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "--fork-session":
			return ""
		case "--session-id", "--resume":
			id = value
		}
	}
	return id
}
