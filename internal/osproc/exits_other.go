//go:build !linux

package osproc

import (
	"os"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// exitWatcher reports exits by polling.
type exitWatcher struct {
	clock kernel.Clock
	exec  kernel.Executor
}

func (w *exitWatcher) init(clk kernel.Clock, exec kernel.Executor) { w.clock, w.exec = clk, exec }

func (w *exitWatcher) watch(p *Process) { pollExit(w.clock, p) }

// watchOutput reports false: this system cannot report output.
func (w *exitWatcher) watchOutput(*os.File, func(), func()) (unwatch func(), ok bool) {
	return nil, false
}
