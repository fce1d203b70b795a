package simtests_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// contents are the files below a directory.
func contents(w *simtests.World, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(w, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = string(content)
		return err
	}))
	return all
}

// Under all faults, a rewind gives each file back what it had when the prompt was sent. One that fails
// leaves each file as it was, or as it was to be; one that is refused changes nothing.
func TestRewinds(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Cost: 5, Twice: 1, First: 5_000_000}, rewindWork)
}

// The same with subagents, two of which change files at the same time, also the same file.
func TestRewindsOfSubagents(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Cost: 8, Twice: 1, First: 6_000_000}, subagentRewindWork)
}

// TestPlantedBugsOfRewinds is for tools/simmutate.
func TestPlantedBugsOfRewinds(t *testing.T) {
	t.Parallel()
	planted(t, 5, func(w *simtests.World) {
		if w.Rand().IntN(3) == 0 {
			subagentRewindWork(w)
			return
		}
		rewindWork(w)
	})
}

func rewindWork(w *simtests.World) { rewinds(w, worker) }

func subagentRewindWork(w *simtests.World) { rewinds(w, foreman) }

func rewinds(w *simtests.World, script func(*modeltest.Request) *modeltest.Answer) {
	dir := workplace(w)
	w.Faults(embeddedWeather()...)
	c, err := w.DialEmbedded(&sdk.Options{
		Cwd: dir, EnableFileCheckpointing: sdk.Some(true), MaxRestarts: w.Rand().IntN(3), MaxTurns: sdk.Some(4 + w.Rand().IntN(12)), CanUseTool: allowAll,
	}, &simtests.Embedded{Server: &modeltest.Server{Script: script}, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "}})
	if err != nil {
		return
	}
	w.Go(func() { _ = w.Read(c, nil) }) // its error is that of the session
	var prompts []string
	had := map[string]map[string]string{} // by prompt
	for range 2 + w.Rand().IntN(3) {
		before := contents(w, dir)
		turn, err := c.Send(w.Context(), sdk.UserText(strings.Replace(task(w), " and watch", "", 1))) // a command in the background may have no end
		if err != nil {
			break
		}
		prompts = append(prompts, turn.UUID())
		had[turn.UUID()] = before
		if w.Rand().IntN(4) == 0 {
			w.Sleep(time.Duration(w.Rand().IntN(8000)) * time.Millisecond)
			_, _ = c.Interrupt(w.Context()) // it may have died
		}
		_, _ = turn.Result(w.Context()) // what a turn has not done has no checkpoint either
		ctx, cancel := context.WithTimeout(w.Context(), 6*time.Hour)
		_, _ = c.AwaitDone(ctx) // subagents in the background change files; it may have died
		_ = c.AwaitIdle(ctx)
		cancel()
		if w.Rand().IntN(4) == 0 {
			_ = c.Passivate(w.Context()) // it may be in use, or over
		}
		for range w.Rand().IntN(3) {
			to := prompts[w.Rand().IntN(len(prompts))]
			rewindTo(w, c, dir, to, had[to])
		}
	}
	_ = c.Close(w.Context()) // one that has died says so
	w.Run()
}

// rewindTo rewinds the files of a session that rests.
func rewindTo(w *simtests.World, c *sdk.Client, dir, prompt string, want map[string]string) {
	before := contents(w, dir)
	r, err := c.RewindFiles(w.Context(), prompt, false)
	after := contents(w, dir)
	var refused *session.ControlError
	names := maps.Clone(before)
	maps.Copy(names, want)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, was := before[name]
		next, is := after[name]
		wanted, there := want[name]
		kept, restored := old == next && was == is, next == wanted && is == there
		switch {
		case err == nil && r.SkippedFiles[filepath.Join(dir, name)] != "":
			w.Sometimes("a rewind leaves a file alone", true)
			restored = kept
		case err != nil && errors.As(err, &refused) && refused.Code != "rewind_failed":
			restored = kept
		case err != nil:
			restored = restored || kept
		}
		if !restored {
			w.Errorf("rewound: %s had %q and now has %q, and at the prompt %q; the rewind: %v", name, old, next, wanted, err)
		}
	}
	w.Sometimes("a rewind restores files", err == nil && !maps.Equal(before, after))
	w.Sometimes("a rewind fails", err != nil)
}
