package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/internal/kernel"
)

const defaultSetups = 2

// turns limits how many commands in workspaces run at the same time.
type turns struct {
	running int
	queue   []*kernel.Promise[struct{}]
}

// enterSetup waits until one more command may run, and returns what ends its turn.
func (ws *workspaces) enterSetup(ctx context.Context) (leave func(), err error) {
	ws.mu.Lock()
	if ws.turns.running < ws.job.Setups {
		ws.turns.running++
		ws.mu.Unlock()
		return ws.leaveSetup, nil
	}
	turn := kernel.NewPromise[struct{}]()
	ws.turns.queue = append(ws.turns.queue, turn)
	ws.mu.Unlock()
	if _, err := turn.Wait(ctx, ws.exec); err != nil {
		ws.mu.Lock()
		at := slices.Index(ws.turns.queue, turn)
		if at >= 0 {
			ws.turns.queue = slices.Delete(ws.turns.queue, at, at+1)
		}
		ws.mu.Unlock()
		if at < 0 { // its turn came with the end of ctx
			ws.leaveSetup()
		}
		return nil, err
	}
	return ws.leaveSetup, nil
}

// leaveSetup gives the turn to the command that waits longest.
func (ws *workspaces) leaveSetup() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.turns.queue) == 0 {
		ws.turns.running--
		return
	}
	ws.turns.queue[0].Resolve(struct{}{})
	ws.turns.queue = slices.Delete(ws.turns.queue, 0, 1)
}

// setup runs the Setup of a new workspace.
func (ws *workspaces) setup(ctx context.Context, a *attempt, dir string) error {
	if a.workspace.Setup == "" {
		return nil
	}
	leave, err := ws.enterSetup(ctx)
	if err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: waiting for another one: %w", err), true}
	}
	defer leave()
	out, err := ws.shell(ctx, a, dir, a.workspace.Setup)
	if err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: %w%s", err, quoted(out)), true}
	}
	return nil
}

func (ws *workspaces) runTeardown(ctx context.Context, a *attempt, dir string) error {
	leave, err := ws.enterSetup(ctx)
	if err != nil {
		return fmt.Errorf("teardown: waiting for another one: %w", err)
	}
	defer leave()
	out, err := ws.shell(ctx, a, dir, a.workspace.Teardown)
	if err != nil {
		return fmt.Errorf("teardown: %w%s", err, quoted(out))
	}
	return nil
}
