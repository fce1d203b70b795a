package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// both runs jobs at the same time and collects their results.
func both(t *testing.T, jobs ...fleet.Job) []map[string]fleet.TaskResult {
	t.Helper()
	all := make([]map[string]fleet.TaskResult, len(jobs))
	var running sync.WaitGroup
	for i := range jobs {
		running.Go(func() {
			results, err := collect(t, jobs[i])
			assert.NoError(t, err)
			all[i] = results
		})
	}
	running.Wait()
	return all
}

// Two jobs of one runtime find out together that the API takes ten agents, and share them.
func TestJobsShareThePaceOfTheirAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes = 10
		o := private(t, &sdk.Options{})
		rt, _ := o.Runtime.(*runtime.Runtime)
		var mu sync.Mutex
		var now, late int
		by, most := map[string]int{}, map[string]int{}
		begun := time.Now()
		job := func(id string) fleet.Job {
			return fleet.Job{
				ID: id, Account: "one", Tasks: tasks(150), Options: o, Pace: &fleet.Pace{Ceiling: 100, Starved: func() bool { return false }},
				Configure: func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
					mu.Lock()
					defer mu.Unlock()
					steps := scripted.Steps{scripted.Delay(10 * time.Second), scripted.Text("done")}
					if now++; now > takes {
						steps = append(scripted.Steps{&scripted.APIRetry{Status: 429, Delay: time.Second}}, steps...)
						if time.Since(begun) > 2*time.Minute && now > takes+1 {
							late++
						}
					}
					by[id]++
					most[id] = max(most[id], by[id])
					o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Default: steps}))
					return nil
				},
				OnEvent: func(e fleet.Event) {
					if e.Kind == fleet.EventFinished {
						mu.Lock()
						defer mu.Unlock()
						now--
						by[id]--
					}
				},
			}
		}
		for i, results := range both(t, job("a"), job("b")) {
			require.Len(t, results, 150, i)
			for id, r := range results {
				require.Equal(t, fleet.Accepted, r.Status, id)
			}
		}
		require.Zero(t, late, "more than the two jobs may have together")
		require.GreaterOrEqual(t, min(most["a"], most["b"]), takes/2, "each has its half")
		accounts := rt.Tree(t.Context()).Accounts
		require.Len(t, accounts, 1)
		require.Equal(t, "one", accounts[0].Label)
		require.Zero(t, accounts[0].Jobs)
		require.Zero(t, accounts[0].Working)
		require.Equal(t, 16, accounts[0].Changes[2].To)
		require.Equal(t, 8, accounts[0].Changes[3].To)
		require.InDelta(t, takes, accounts[0].Limit, takes/2+1)
		rt.Account("one").Retune(time.Now(), 3)
		mu.Lock()
		clear(most)
		mu.Unlock()
		third := job("c")
		third.Tasks = tasks(9)
		both(t, third)
		require.Equal(t, 3, most["c"], "the next job begins with what is known")
	})
}

// What one job of an account finds spent holds for the others of the account, of which one
// task finds out for all. Jobs of another account go on.
func TestJobsParkWithTheirAccount(t *testing.T) {
	t.Parallel()
	outs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		began, history := time.Now(), &scripted.MemoryHistory{}
		reset := began.Add(5 * time.Hour)
		o := private(t, &sdk.Options{})
		var mu sync.Mutex
		var starts, parked []string
		job := func(i int, account string) fleet.Job {
			return fleet.Job{
				ID: fmt.Sprint(i), Account: account, Tasks: tasks(4), Concurrency: 1, Out: outs[i], Options: o,
				Configure: func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
					o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Delay(time.Minute), scripted.Text("done")}}), scripted.WithHistory(history))
					if account == "spent" && i == 0 && time.Now().Before(reset) {
						o.Backend = spent(reset, history, scripted.Delay(time.Second)) // the other job has started by then
					}
					return nil
				},
				OnEvent: func(e fleet.Event) {
					mu.Lock()
					defer mu.Unlock()
					switch e.Kind {
					case fleet.EventStarted:
						if account == "spent" {
							starts = append(starts, fmt.Sprint(i, " ", e.At.Sub(began).Truncate(2*time.Minute)))
						}
					case fleet.EventParked, fleet.EventUnparked:
						parked = append(parked, fmt.Sprint(i, " ", e.Kind))
					}
				},
			}
		}
		all := both(t, job(0, "spent"), job(1, "spent"), job(2, "another"))
		for i := range all {
			require.Len(t, all[i], 4)
			for id, r := range all[i] {
				require.Equal(t, fleet.Accepted, r.Status, id)
				if i == 2 {
					require.Less(t, r.Ended.Sub(began), 5*time.Minute, "another account")
				}
			}
			require.Equal(t, i < 2, strings.Contains(read(t, outs[i], "journal.jsonl"), `"kind":"parked"`), "each job of the account keeps the wait")
		}
		require.ElementsMatch(t, []string{"0 0s", "1 0s"}, starts[:2])
		require.NotContains(t, starts[2], " 0s", "nothing starts while the account waits")
		require.ElementsMatch(t, []string{"0 parked", "1 parked", "0 unparked", "1 unparked"}, parked)
		require.NotEqual(t, starts[2], starts[3], "one finds out for both")
	})
}
