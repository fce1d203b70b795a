package osproc

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Remains are what one host that died had left behind.
type Remains struct {
	Dir      string // the host's directory
	Launches int    // agents that it had not closed
	Err      error  // what could not be ended or removed; it stays for the next host
}

// SweepHosts ends what hosts have left that died: their temporary files and, where
// the state directory says so, the processes of their launches. Only the first call
// does something; the others wait for it. [Launcher.Start] calls it. The end of ctx
// ends the wait.
func (l *Launcher) SweepHosts(ctx context.Context) error {
	l.hosts.Do(func() {
		l.cfg.Executor.Go(func() {
			l.sweepHosts()
			l.hostsSwept.Resolve(struct{}{})
		})
	})
	return l.cfg.Executor.Await(ctx, l.hostsSwept.Done())
}

func (l *Launcher) sweepHosts() {
	for i, base := range l.bases() {
		dirs, err := deadHosts(base)
		if err != nil {
			continue // it is made when it is needed, or that fails with this error
		}
		for _, dir := range dirs {
			r := l.sweepHost(dir, i == 0 && l.cfg.StateDir != "")
			_ = dir.Close()
			if l.cfg.HostSwept != nil {
				l.cfg.HostSwept(r)
			}
		}
	}
}

// bases are the directories of host directories: first the one with the state.
func (l *Launcher) bases() []string {
	if l.state == nil || l.state == l.temp {
		return []string{l.temp.base}
	}
	return []string{l.state.base, l.temp.base}
}

// sweepHost ends what is in one locked host directory. Processes that could not be
// ended keep their record.
func (l *Launcher) sweepHost(dir *os.File, processes bool) Remains {
	r := Remains{Dir: dir.Name()}
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		r.Err = err
		return r
	}
	var launches []string
	for _, e := range entries {
		if isMarker(e.Name()) {
			launches = append(launches, e.Name())
		}
	}
	r.Launches = len(launches)
	survived := make(map[string]error)
	if processes {
		survived = l.sweepMarkers(launches)
	}
	problems := make([]error, 0, 1)
	for _, e := range entries {
		if err := survived[e.Name()]; err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, os.RemoveAll(filepath.Join(r.Dir, e.Name())))
	}
	if r.Err = errors.Join(problems...); r.Err == nil {
		r.Err = os.Remove(r.Dir)
	}
	return r
}

// sweepMarkers sweeps launches with common scans, and returns the errors by marker.
func (l *Launcher) sweepMarkers(markers []string) map[string]error {
	failed := make(map[string]error)
	results := make([]error, len(markers))
	done := make([]*kernel.Promise[struct{}], len(markers))
	for i, marker := range markers {
		done[i] = kernel.NewPromise[struct{}]()
		l.cfg.Executor.Go(func() {
			_, results[i] = l.SweepMarker(context.Background(), marker) // it has its own limits
			done[i].Resolve(struct{}{})
		})
	}
	for i, marker := range markers {
		_ = l.cfg.Executor.Await(context.Background(), done[i].Done())
		if results[i] != nil {
			failed[marker] = results[i]
		}
	}
	return failed
}
