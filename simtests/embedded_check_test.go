package simtests_test

import (
	"context"
	"testing"
	"time"

	loop "github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/simtests"
)

// Under all faults, one check of a session runs at a time, its turn ends, and no check runs any more when
// the session is over. The kit holds the ends of turns against the results of a command.
func TestEmbeddedWithACheck(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Cost: 5, Twice: 1, First: 4_000_000}, checkWork)
}

// TestPlantedBugsOfChecks is for tools/simmutate.
func TestPlantedBugsOfChecks(t *testing.T) {
	t.Parallel()
	planted(t, 5, checkWork)
}

func checkWork(w *simtests.World) {
	dir := workplace(w)
	running, asked, most := 0, 0, 1+w.Rand().IntN(3)
	e := &simtests.Embedded{Server: &modeltest.Server{Script: worker}, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "}}
	if w.Rand().IntN(2) == 0 {
		e.Config.Check = &loop.Check{Rounds: most, Command: "verify"}
		e.Run = func(command string) simtests.Ran {
			if command != "verify" {
				return simtests.Ran{}
			}
			asked++
			return simtests.Ran{Output: "it is not good", Code: w.Rand().IntN(2), Takes: time.Duration(w.Rand().IntN(20)) * time.Second}
		}
		w.Faults(embeddedWeather()...)
		embeddedTalk(w, e, &sales{bought: map[string]bool{}, allowed: map[string]bool{}}, dir, "", false)
		w.Run()
		w.Sometimes("a check is a command", asked > 0)
		return
	}
	e.Config.Check = &loop.Check{Rounds: most, Func: func(ctx context.Context, _ string) (string, error) {
		if running++; running > 1 {
			w.Errorf("one check: %d run at once", running)
		}
		defer func() { running-- }()
		asked++
		for range w.Rand().IntN(20) {
			if w.Sleep(time.Second); ctx.Err() != nil {
				w.Sometimes("a check is cut off", true)
				return "", ctx.Err()
			}
		}
		if w.Rand().IntN(2) == 0 {
			w.Sometimes("a check fails", true)
			return "it is not good", nil
		}
		return "", nil
	}}
	w.Faults(embeddedWeather()...)
	embeddedTalk(w, e, &sales{bought: map[string]bool{}, allowed: map[string]bool{}}, dir, "", false)
	w.Run()
	if running != 0 {
		w.Errorf("no check outlives its session: %d run", running)
	}
	w.Sometimes("a check is asked", asked > 0)
}
