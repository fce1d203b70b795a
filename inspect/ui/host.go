package ui

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	last *inspect.Report       // without sessions
	all  []runtime.SessionTree // as an outline, but the first ones of each state whole
	turn chan struct{}         // closed when the report that is being made is there; nil if no report is being made
}

// report describes the runtime as it was a moment ago; see reportAge. Only sessions that a tree shows are
// asked: the first ones of each state.
func (l *local) report(ctx context.Context) (*inspect.Report, []runtime.SessionTree, error) {
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

func (l *local) look(ctx context.Context) (*inspect.Report, []runtime.SessionTree) {
	all := l.rt.Outline()
	var shown []*runtime.Session
	for _, g := range groupsOf(hostedOf(all, nil)) {
		for i := range g.Sessions {
			if s := l.rt.Session(g.Sessions[i].ID); s != nil {
				shown = append(shown, s)
			}
		}
	}
	r := &inspect.Report{Host: inspect.Host{PID: os.Getpid(), Program: program()}, Tree: l.rt.TreeOf(ctx, shown...)}
	for i := range r.Tree.Sessions {
		of := &r.Tree.Sessions[i]
		if at, ok := slices.BinarySearchFunc(all, of.ID, func(t runtime.SessionTree, id string) int { return strings.Compare(t.ID, id) }); ok {
			all[at] = *of
		}
	}
	r.Tree.Sessions = []runtime.SessionTree{}
	return r, all
}
