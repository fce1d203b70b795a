//go:build !linux

package osproc

import "github.com/agent-troupe/troupe/internal/kernel"

// exitWatcher tells of exits by polling.
type exitWatcher struct{ clock kernel.Clock }

func (w *exitWatcher) init(clk kernel.Clock, _ kernel.Executor) { w.clock = clk }

func (w *exitWatcher) watch(p *Process) { pollExit(w.clock, p) }
