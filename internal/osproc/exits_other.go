//go:build !linux

package osproc

import (
	"os"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// exitWatcher tells of exits by polling.
type exitWatcher struct {
	clock kernel.Clock
	exec  kernel.Executor
}

func (w *exitWatcher) init(clk kernel.Clock, exec kernel.Executor) { w.clock, w.exec = clk, exec }

func (w *exitWatcher) watch(p *Process) { pollExit(w.clock, p) }

// watchOutput reports false: nothing tells of output here.
func (w *exitWatcher) watchOutput(*os.File, func(), func()) (unwatch func(), ok bool) {
	return nil, false
}
