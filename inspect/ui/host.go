package ui

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

func program() string { return filepath.Base(os.Args[0]) }

// reportAge is how old a report may be: readers that ask at the same time share one.
const reportAge = time.Second

// local is the runtime of this program.
type local struct {
	rt *runtime.Runtime

	mu   sync.Mutex
	last *inspect.Report // without sessions
	all  []group         // its sessions
	turn chan struct{}   // closed when the report that is being made is there; nil if no report is being made
}

// report describes the runtime as it was a moment ago; see reportAge. Only sessions that a tree shows are
// asked: the first ones of each state.
func (l *local) report(ctx context.Context) (*inspect.Report, []group, error) {
	for {
		l.mu.Lock()
		if l.last != nil && l.rt.Clock().Now().Sub(l.last.Tree.At) < reportAge {
			defer l.mu.Unlock()
			return l.last, l.all, nil
		}
		turn := l.turn
		if turn == nil {
			turn = make(chan struct{})
			l.turn = turn
			l.mu.Unlock()
			r, all := l.look(context.WithoutCancel(ctx))
			l.mu.Lock()
			l.last, l.all, l.turn = r, all, nil
			l.mu.Unlock()
			close(turn)
			return r, all, nil
		}
		l.mu.Unlock()
		if err := l.rt.Executor().Await(ctx, turn); err != nil {
			return nil, nil, err
		}
	}
}

func (l *local) look(ctx context.Context) (*inspect.Report, []group) {
	g := groupingOf(nil)
	g.add("", l.rt.Outline())
	var shown []*runtime.Session
	for i := range g.list {
		for k := range g.list[i].Sessions {
			if s := l.rt.Session(g.list[i].Sessions[k].ID); s != nil {
				shown = append(shown, s)
			}
		}
	}
	r := &inspect.Report{Host: inspect.Host{PID: os.Getpid(), Program: program()}, Tree: l.rt.TreeOf(ctx, shown...)}
	whole := map[string]*runtime.SessionTree{}
	for i := range r.Tree.Sessions {
		whole[r.Tree.Sessions[i].ID] = &r.Tree.Sessions[i]
	}
	for i := range g.list {
		for k := range g.list[i].Sessions {
			if of := &g.list[i].Sessions[k]; whole[of.ID] != nil {
				of.SessionTree = *whole[of.ID]
			}
		}
	}
	r.Tree.Sessions = []runtime.SessionTree{}
	return r, g.sorted()
}
