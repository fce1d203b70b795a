package fleet_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/sdk"
)

// projections are the times at which results.jsonl was written.
type projections struct {
	journal.FS
	began time.Time

	mu  sync.Mutex
	all []time.Duration
}

func (p *projections) Rename(from, to string) error {
	if to == "results.jsonl" {
		p.mu.Lock()
		p.all = append(p.all, time.Since(p.began).Truncate(time.Second))
		p.mu.Unlock()
	}
	return p.FS.Rename(from, to)
}

func (p *projections) times() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

// A result is in results.jsonl after 5 s, also when nothing else happens; several results
// are written together, and without news nothing is written.
func TestResultsAreWrittenInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := func() *sdk.Options {
			return private(t, &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Turns: []scripted.Turn{
				when("do 0", scripted.Delay(time.Minute), scripted.Text("done")),
				when("do 1", scripted.Delay(time.Minute+3*time.Second), scripted.Text("done")),
				when("do 2", scripted.Delay(2*time.Minute), scripted.Text("done")),
				when("do 3", scripted.Delay(time.Hour), scripted.Text("done")),
			}}))})
		}
		out := t.TempDir()
		written := &projections{FS: journal.Dir(out), began: time.Now()}
		job := fleet.Job{Tasks: tasks(4), Options: agent(), Out: out, FS: written}
		h, err := fleet.Start(t.Context(), job)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []time.Duration{65 * time.Second, 125 * time.Second}, written.times())
		text := read(t, out, "results.jsonl")
		assert.Len(t, lines(text), 3)
		assert.NotContains(t, text, "t3")
		h.Cancel()
		for _, err := range h.Results(t.Context()) {
			if err != nil {
				require.ErrorAs(t, err, new(*fleet.StoppedError))
			}
		}
		require.Len(t, written.times(), 1, "at the end")

		// What the journal has is in the file soon after a resume: the earlier process may
		// have died before it wrote it.
		job.Resume, job.Options, written.began = true, agent(), time.Now()
		h, err = fleet.Start(t.Context(), job)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []time.Duration{5 * time.Second}, written.times())
		require.NoError(t, h.Requeue(t.Context(), "t2"))
		time.Sleep(10 * time.Second)
		assert.Equal(t, []time.Duration{10*time.Minute + 5*time.Second}, written.times(), "its result is void")
		assert.Len(t, lines(read(t, out, "results.jsonl")), 2)
		h.Cancel()
		for _, err := range h.Results(t.Context()) {
			if err != nil {
				require.ErrorAs(t, err, new(*fleet.StoppedError))
			}
		}
	})
}
