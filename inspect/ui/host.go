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

// reportAge is how old a report may be: readers that ask at the same time share one. That of many
// sessions, each of which is asked, may be five times as old.
const reportAge = time.Second

// local is the runtime of this program.
type local struct {
	rt *runtime.Runtime

	mu   sync.Mutex
	last *inspect.Report
	turn chan struct{} // closed when the report that is being made is there; nil if no report is being made
}

// report describes the runtime as it was a moment ago; see reportAge.
func (l *local) report(ctx context.Context) (*inspect.Report, error) {
	for {
		l.mu.Lock()
		most := reportAge
		if l.last != nil && len(l.last.Tree.Sessions) > sweepMany {
			most *= 5
		}
		if l.last != nil && l.rt.Clock().Now().Sub(l.last.Tree.At) < most {
			defer l.mu.Unlock()
			return l.last, nil
		}
		turn := l.turn
		if turn == nil {
			turn = make(chan struct{})
			l.turn = turn
			l.mu.Unlock()
			r := &inspect.Report{Host: inspect.Host{PID: os.Getpid(), Program: program()}, Tree: l.rt.Tree(context.WithoutCancel(ctx))}
			l.mu.Lock()
			l.last, l.turn = r, nil
			l.mu.Unlock()
			close(turn)
			return r, nil
		}
		l.mu.Unlock()
		if err := l.rt.Executor().Await(ctx, turn); err != nil {
			return nil, err
		}
	}
}
