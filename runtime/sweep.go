package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// NewMarker returns the name of a new launch marker. A process that has it in its
// environment (Options.Env, with any value), and all that it starts, can be ended with
// [Runtime.SweepMarker], also by a later program: write the marker down before the start.
func (rt *Runtime) NewMarker() string {
	return fmt.Sprintf("TROUPE_LAUNCH_%d_%s", os.Getpid(), kernel.NewID(rt.sys.Rand()))
}

// SweepMarker kills every process of this machine that carries the marker, and returns
// those that it could not kill. It is meant for what a program that was killed has left.
// Linux only; see docs/deployment.md for the limits.
func (rt *Runtime) SweepMarker(ctx context.Context, marker string) ([]session.ProcInfo, error) {
	sweeper, ok := rt.spawner.(interface {
		SweepMarker(context.Context, string) ([]session.ProcInfo, error)
	})
	if !ok {
		return nil, errors.New("sweep: the spawner of this runtime cannot find processes by a marker")
	}
	return sweeper.SweepMarker(ctx, marker)
}
