package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/bare"
	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/bench/internal/throughput"
	"github.com/agent-troupe/troupe/sdk"
)

// Requests to hosts; host.mjs understands the same.
const (
	doTurn  = "turn"  // MODE N SESSIONS
	doBatch = "batch" // MILLISECONDS TASKS AT-ONCE
	doFault = "fault" // NAME
)

// asHost is this program as one of its hosts: it does what args say with the agent, and prints a line.
func asHost(ctx context.Context, name string, args []string) error {
	if len(args) < 3 {
		return errors.New("a host needs an agent, and what to do")
	}
	agent, what, args := args[0], args[1], args[2:]
	if what == doFault {
		return show(fault(ctx, name, agent, args[0]))
	}
	if len(args) != 3 {
		return fmt.Errorf("%s needs 3 arguments, not %q", what, args)
	}
	mode := args[0]
	a, errA := strconv.Atoi(args[1])
	b, errB := strconv.Atoi(args[2])
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	switch {
	case what == doBatch:
		work, err := strconv.Atoi(mode)
		if err != nil {
			return err
		}
		return show(throughput.Jobs(ctx, throughput.Job{Tasks: a, AtOnce: b, Rounds: 1, Work: time.Duration(work) * time.Millisecond}))
	case name == bareLoop:
		return show(barely(agent, mode, a, b))
	default:
		return show(drive.Run(ctx, drive.Job{Backend: sdk.Claude(sdk.ClaudeConfig{Path: agent}), Env: minimal, Mode: mode, N: a, Sessions: b}))
	}
}

// minimal makes this program the minimal agent; another agent does not know it.
var minimal = map[string]string{fast.RoleEnv: fast.RoleAgent}

// barely has sessions in bare loops.
func barely(agent, mode string, n, sessions int) (line measure.Line, err error) {
	lines := make([]measure.Line, sessions)
	began, used := time.Now(), measure.CPU()
	err = drive.Each(sessions, sessions, func(i int) (err error) {
		lines[i], err = bare.Run([]string{agent}, []string{fast.RoleEnv + "=" + fast.RoleAgent}, mode, n)
		return err
	})
	if sessions == 1 || err != nil {
		return lines[0], err
	}
	line = measure.Line{Mode: mode, N: n, Sessions: sessions}
	line.WallMillis = float64(time.Since(began).Microseconds()) / 1e3
	line.CPUMillis = float64((measure.CPU() - used).Microseconds()) / 1e3
	line.Peak = measure.MB(measure.Peak())
	return line, nil
}

func show[T any](figures T, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}
