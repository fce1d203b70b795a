package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// A task that was interrupted goes back to the program that comes again in its directory, and continues there.
func TestATaskGoesBackToItsProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, out := tasks(2), t.TempDir()
		all[1].After = []string{"t0"}
		p := newPeers(t, memory())
		options := private(t, backend(turn(scripted.Delay(time.Minute), scripted.Text("done by one"))))
		one := fast(fleet.Job{Tasks: all, Out: out, Queue: p.q, Worker: "one", Concurrency: 1, Options: options})
		h, err := fleet.Start(t.Context(), one)
		require.NoError(t, err)
		synctest.Wait()
		patient := func(j *fleet.Job) { j.Affinity = time.Hour }
		p.join("two", fleet.ShareAll, all, patient)
		time.Sleep(30 * time.Second)
		h.Cancel()
		<-h.Done()
		time.Sleep(10 * time.Minute)
		p.join("late", fleet.ShareAll, all, patient)
		time.Sleep(10 * time.Minute)
		assert.Zero(t, p.runs("t0"), "it is left to its program")
		p.join("again", fleet.ShareAll, all, func(j *fleet.Job) { j.Out, j.Resume, j.Options, j.Affinity = out, true, options, time.Hour })
		got := p.agree()
		assert.Equal(t, []string{"again"}, p.starts["t0"])
		assert.Equal(t, "again", got["t0"].Worker)
		require.Len(t, got["t0"].Attempts, 2)
		assert.Equal(t, fleet.Mode("resume"), got["t0"].Attempts[1].Mode)
		assert.Equal(t, got["t0"].Attempts[0].Session, got["t0"].Attempts[1].Session)
	})
}

// A program that does not come again has its task for so long, whichever way it has lost it. One that has no
// session has nothing that another program would lack.
func TestATaskWaitsNoLonger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		session  string
		released bool
		affinity time.Duration
		want     time.Duration // of the start
	}{
		"its lease ends":       {"s", false, 10 * time.Minute, 11 * time.Minute},
		"it was given back":    {"s", true, 10 * time.Minute, 10 * time.Minute},
		"nobody waits":         {"s", false, 0, time.Minute},
		"nobody has a session": {"", false, 10 * time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, all := memory(), tasks(1)
				require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: "t0", Hash: hashes(t, all)["t0"]}))
				began := time.Now()
				l := leave(t, q, "t0", 1, fleet.TaskNote{Worker: "gone", Session: c.session, Running: true})
				if c.released {
					require.NoError(t, q.Release(t.Context(), l))
				}
				p := newPeers(t, q)
				var started time.Duration
				for _, name := range []string{"one", "two"} {
					p.join(name, fleet.ShareAll, all, func(j *fleet.Job) {
						told := j.OnEvent
						j.Affinity, j.OnEvent = c.affinity, func(e fleet.Event) {
							if told(e); e.Kind == fleet.EventStarted {
								started = time.Since(began)
							}
						}
					})
				}
				assert.Equal(t, fleet.Accepted, p.agree()["t0"].Status)
				assert.Equal(t, 1, p.runs("t0"))
				assert.InDelta(t, c.want.Seconds(), started.Seconds(), 5)
			})
		})
	}
}
