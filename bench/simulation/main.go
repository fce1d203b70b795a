// Command simulation measures what histories cost, on one core, and prints a line of
// JSON for each measurement:
//
//	go run ./bench/simulation            # seeds and steps per second
//	go run ./bench/simulation -crowd 10000 -minutes 10
//
// seeds: a session of three turns with two callbacks, in which one actor is killed.
// steps: tasks that only yield, which is what the scheduler itself costs.
// crowd: sessions that have a turn with a hook each virtual minute, and store no transcripts.
package main

import (
	"context"
	"flag"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

func main() {
	testing.Init()
	n := flag.Int("seeds", 2000, "histories")
	crowd := flag.Int("crowd", 0, "sessions that run at once; 0: do not measure that")
	minutes := flag.Int("minutes", 10, "virtual minutes of -crowd")
	flag.Parse()
	if os.Getenv("TROUPE_SMOKE") != "" {
		*n, *crowd, *minutes = 20, 20, 2
	}
	runtime.GOMAXPROCS(1)
	ballast := make([]byte, 64<<20) // as in simtests.Main
	defer runtime.KeepAlive(ballast)
	measure := func(t *testing.T) {
		report("seeds", *n, seeds(t, *n))
		report("steps", *n*500, steps(t, *n*500))
		if *crowd > 0 {
			report("crowd", *crowd**minutes, turns(t, *crowd, *minutes))
		}
	}
	all := func(string, string) (bool, error) { return true, nil }
	// A bubble belongs to a test. Main prints PASS at the end, and exits.
	testing.Main(all, []testing.InternalTest{{Name: "simulation", F: measure}}, nil, nil)
}

// report prints what n of something took.
func report(what string, n int, took time.Duration) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	err := measure.Print(map[string]any{
		"what": what, "n": n, "seconds": took.Seconds(), "per_second": int(float64(n) / took.Seconds()), "heap_from_system_mb": m.HeapSys >> 20,
	})
	if err != nil {
		panic(err) // numbers and strings
	}
}

func allow(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
}

func turn(c *sdk.Client, w *simtests.World) {
	t, err := c.Send(w.Context(), sdk.UserText("go"))
	if err == nil {
		_, err = t.Result(w.Context())
	}
	if err != nil {
		w.Errorf("turn: %v", err)
	}
}

func tool() scripted.Step {
	return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Gate: agent.GateAsk}
}

// seeds plays n histories of a session with three turns, two callbacks and a crash.
func seeds(t *testing.T, n int) time.Duration {
	script := &scripted.Script{Turns: []scripted.Turn{
		{Steps: scripted.Steps{tool(), scripted.Text("done")}},
		{Steps: scripted.Steps{tool(), scripted.Text("done")}},
		{Steps: scripted.Steps{scripted.Text("again")}},
	}}
	start := time.Now()
	simtests.Explore(t, simtests.Config{Seeds: n, Twice: -1, AllFaults: true}, func(w *simtests.World) {
		w.Faults(simtests.KillActor(0.5).AtMost(1))
		c := w.Open(&sdk.Options{CanUseTool: allow}, script)
		for range 3 {
			turn(c, w)
		}
		if err := c.Close(w.Context()); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return time.Since(start)
}

// steps takes n steps of a scheduler whose tasks only yield.
func steps(t *testing.T, n int) time.Duration {
	var progress atomic.Int64
	start := time.Now()
	err := sim.Enter(t, &progress, time.Minute, "steps", func() {
		s := sim.InBubble(sim.Draw(1), 2*n)
		s.OnStep(func() { progress.Add(1) })
		for range 10 {
			s.Go(func() {
				var at kernel.Seat
				for s.Steps() < n {
					s.Yield(&at, false)
				}
			})
		}
		if err := s.Run(); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	if err != nil {
		t.Error(err)
	}
	return time.Since(start)
}

// turns plays one history in which each session has a turn with a hook per minute.
func turns(t *testing.T, sessions, minutes int) time.Duration {
	script := &scripted.Script{Default: scripted.Steps{tool(), scripted.Text("done")}}
	hook := sdk.OnPreToolUse(func(context.Context, *protocol.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{}, nil
	})
	start := time.Now()
	simtests.Explore(t, simtests.Config{Seeds: 1, Twice: -1, Shrink: -1, DoNotKeep: true, Steps: 1 << 40}, func(w *simtests.World) {
		for range sessions {
			w.Go(func() {
				c := w.Open(&sdk.Options{CanUseTool: allow, Hooks: []sdk.Hook{hook}, PersistSession: sdk.Some(false)}, script)
				for range minutes {
					turn(c, w)
					w.Sleep(time.Minute)
				}
				if err := c.Close(w.Context()); err != nil {
					w.Errorf("close: %v", err)
				}
			})
		}
		w.Run()
	})
	return time.Since(start)
}
