package runtime_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

func names(actors []session.ActorInfo) []string {
	all := make([]string, len(actors))
	for i, a := range actors {
		all[i] = a.Name
	}
	return all
}

// wholeTree is a tree in which no session is [runtime.SessionTree.Partial]: one that does not
// answer within a second is asked again.
func wholeTree(t *testing.T, w *world) runtime.Tree {
	t.Helper()
	partial := func(s runtime.SessionTree) bool { return s.Partial }
	tree := w.Tree(t.Context())
	for limit := tree.At.Add(patience); slices.ContainsFunc(tree.Sessions, partial) && tree.At.Before(limit); {
		tree = w.Tree(t.Context())
	}
	require.False(t, slices.ContainsFunc(tree.Sessions, partial))
	return tree
}

func TestTheTreeOfASession(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		spec := w.spec(turns())
		spec.ID = "s"
		s := w.open(spec)
		_, err := w.send(s, "hi").Result(context.Background())
		require.NoError(t, err)
		tree := wholeTree(t, w.world)
		require.Len(t, tree.Sessions, 1)
		got := tree.Sessions[0]
		assert.Equal(t, "s", got.ID)
		assert.Equal(t, s.AgentSessionID(), got.AgentSessionID)
		assert.Equal(t, "up", got.Transport)
		assert.Equal(t, []string{
			"s#1", "transport#1", "router#1",
		}, names(got.Actors))
		for _, a := range got.Actors {
			assert.Equal(t, "running", a.State, a.Name)
			assert.Zero(t, a.Restarts, a.Name)
			assert.Empty(t, a.LastFailure, a.Name)
		}
		assert.Positive(t, got.Actors[2].Handled, "the router has worked")
		b, err := json.Marshal(tree)
		require.NoError(t, err)
		assert.Contains(t, string(b), `"state":"r`, "states by their names")

		require.NoError(t, s.Close(context.Background()))
		assert.Empty(t, w.Tree(context.Background()).Sessions)
		assert.Equal(t, "ended, stdin closed", s.Tree(context.Background()).Transport, "one that has ended can be asked, too")
	})
}

func TestTheTreeShowsWaits(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns(scripted.Steps{gate()}))
	spec.Options.PermissionTimeout = time.Hour
	spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		return protocol.PermissionResult{}, w.Executor().Await(ctx, never)
	}
	s := w.open(spec)
	turn := w.send(s, "go")
	w.Pass(time.Second)
	tree := s.Tree(t.Context())
	assert.Equal(t, session.StateAwaitingHost, tree.State)
	require.Len(t, tree.Waits, 2)
	assert.Equal(t, "permission request Bash", tree.Waits[0].What)
	assert.Equal(t, time.Hour, tree.Waits[0].Limit)
	assert.Equal(t, "PermissionTimeout", tree.Waits[0].SetBy)
	assert.LessOrEqual(t, tree.Waits[0].Age, time.Second)
	assert.Equal(t, "turn started", tree.Waits[1].What)
	assert.Equal(t, turn.UUID(), tree.Waits[1].ID)
}

func TestTheTreeShowsRestarts(t *testing.T) {
	t.Parallel()
	struck := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, _ kernel.Moment) bool {
			strike := !struck && actor == "permission#1"
			struck = struck || strike
			return strike
		}
	})
	spec := w.spec(turns(scripted.Steps{gate()}, scripted.Steps{gate()}))
	spec.Options.CanUseTool = allow
	s := w.open(spec)
	_, err := w.send(s, "1").Result(t.Context())
	require.NoError(t, err)
	_, err = w.send(s, "2").Result(t.Context())
	require.NoError(t, err)
	require.True(t, struck)
	actors := s.Tree(t.Context()).Actors
	require.Contains(t, names(actors), "callbacks/permission#2")
	for _, a := range actors {
		if a.Name == "callbacks/permission#2" {
			assert.Equal(t, 1, a.Restarts)
			assert.Contains(t, a.LastFailure, "killed by the test")
		} else {
			assert.Zero(t, a.Restarts, a.Name)
		}
	}
}

// TestATreeDoesNotWaitForLong asks a session whose actors do not answer.
func TestATreeDoesNotWaitForLong(t *testing.T) {
	t.Parallel()
	deafNow := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			return deafNow && at == kernel.BeforeMessage && strings.HasPrefix(actor, "s#")
		}
	})
	spec := w.spec(turns())
	spec.ID = "s"
	s := w.open(spec)
	deafNow = true
	start := w.Sched.Now()
	tree := s.Tree(t.Context())
	assert.LessOrEqual(t, w.Sched.Now().Sub(start), time.Second)
	assert.Equal(t, "up", tree.Transport, "the rest is told")
	assert.True(t, tree.Partial)
	deafNow = false
	w.Pass(time.Minute)
}

// TestATreeOfManyWhoDoNotAnswer asks ten sessions of which none answers.
func TestATreeOfManyWhoDoNotAnswer(t *testing.T) {
	t.Parallel()
	deafNow := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			return deafNow && at == kernel.BeforeMessage && strings.Contains(actor, "#") && !strings.Contains(actor, "/")
		}
	})
	for range 10 {
		w.open(w.spec(turns()))
	}
	assert.False(t, w.Tree(t.Context()).Sessions[9].Partial)
	deafNow = true
	start := w.Sched.Now()
	tree := w.Tree(t.Context())
	assert.LessOrEqual(t, w.Sched.Now().Sub(start), 5*time.Second)
	require.Len(t, tree.Sessions, 10)
	for _, s := range tree.Sessions {
		assert.True(t, s.Partial, s.ID)
		assert.Equal(t, session.StateReady, s.State, "what needs no answer is there")
	}
	deafNow = false
	w.Pass(time.Minute)
}

// TestTheTreeShowsRestartsOfASession kills the actor of a session.
func TestTheTreeShowsRestartsOfASession(t *testing.T) {
	t.Parallel()
	strike := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, _ kernel.Moment) bool {
			now := strike && strings.HasPrefix(actor, "s#")
			strike = strike && !now
			return now
		}
	})
	spec := w.spec(turns())
	spec.ID = "s"
	s := w.open(spec)
	assert.Zero(t, s.Tree(t.Context()).Actors[0].Restarts)
	strike = true
	s.Tree(t.Context()) // a message for the actor
	w.Pass(time.Minute)
	own := s.Tree(t.Context()).Actors[0]
	assert.Equal(t, 1, own.Restarts)
	assert.Contains(t, own.LastFailure, "killed by the test")
}

// TestTheTreeShowsRestartsOfTheAgent has an agent that dies in a turn, and its successor.
func TestTheTreeShowsRestartsOfTheAgent(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	script := turns(scripted.Steps{scripted.Text("hi"), &scripted.Exit{Code: 9}})
	script.Resumed = []scripted.Turn{{Steps: scripted.Steps{scripted.Delay(time.Hour)}}}
	spec := w.spec(script)
	spec.Options.MaxRestarts = 1
	s := w.open(spec)
	assert.Zero(t, s.Tree(t.Context()).Restarts)
	w.send(s, "go")
	w.Pass(time.Minute)
	assert.Equal(t, 1, s.Tree(t.Context()).Restarts)
}

// TestTheTreeShowsSinceWhen looks at the times of a state.
func TestTheTreeShowsSinceWhen(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	s := w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Hour)})))
	opened := s.Tree(t.Context())
	w.Pass(time.Minute)
	started := w.Sched.Now()
	w.send(s, "go")
	w.Pass(10 * time.Minute)
	tree := s.Tree(t.Context())
	assert.Equal(t, opened.Opened, tree.Opened)
	assert.Equal(t, session.StateRunning, tree.State)
	assert.WithinDuration(t, started, tree.StateSince, time.Second)
	assert.Equal(t, "Limits.Stall", tree.Waits[1].SetBy)
}

// TestTheTreeAsJSON pins the JSON form, which is stable, and reads it back.
func TestTheTreeAsJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tree := runtime.Tree{
		At: at, DeadLetters: 1, LargeLines: 2, LargeLinesLimit: 3, Fleet: session.ActorInfo{Name: "fleet", State: "running"},
		Sessions: []runtime.SessionTree{{
			At: at, ID: "s", State: session.StateAwaitingHost, StateSince: at.Add(-time.Minute), Opened: at.Add(-time.Hour),
			Backend: "claude", Dir: "/work", AgentSessionID: "id", PID: 42, Restarts: 1, Transport: "up",
			Unread: 6, UnreadLimit: 4096, UnreadBytes: 2362, UnreadBytesLimit: 4 << 20,
			CreditMessages: 7, CreditBytes: 2462, CreditOwedMessages: 1, CreditOwedBytes: 100, Partial: true,
			Waits: []session.Wait{{
				What: "permission request Bash", ID: "r", Age: 1500 * time.Millisecond, Limit: time.Hour, SetBy: "PermissionTimeout",
				Since: at.Add(-1500 * time.Millisecond),
			}},
			Actors: []session.ActorInfo{{Name: "router#2", State: "running", Restarts: 1, Depth: 2, Handled: 3, LastFailure: "boom",
				Parent: "s#1", Started: at.Add(-time.Second), FailedAt: at.Add(-2 * time.Second), WindowFailures: 1, WindowLimit: 3, WindowMS: 30_000, OldestMS: 40}},
			Title: "title", Labels: map[string]string{"team": "red"}, Job: "job", Task: "task", Attempt: 2, Turn: 5, TurnSince: at.Add(-time.Minute),
			Usage: runtime.Usage{USD: 1.5, Turns: 7, Tokens: runtime.Tokens{Input: 1, Output: 2, CacheWrite: 3, CacheRead: 4}}, RSS: 4096,
		}},
		Breakers: []runtime.Breaker{{
			Kind: session.BreakerAgent, Name: "claude", State: session.BreakerOpen, Since: at.Add(-time.Minute), Failures: 5,
			LastFailure: "exit code 1", NextProbe: at.Add(time.Second), Held: 12, StartsPerSecond: 10,
		}},
		Accounts: []runtime.AccountStat{{
			Label: "claude-1", Limit: 8, Paced: true, Working: 8, Jobs: 2, Waiting: 1, Parked: at.Add(time.Hour), Why: "spent",
			Changes:    []runtime.AccountChange{{At: at.Add(-time.Minute), From: 16, To: 8, Why: "the API is overloaded"}},
			Work:       []runtime.AccountWork{{At: at.Add(-time.Hour), Working: 8}},
			Starvation: []runtime.AccountStarved{{From: at.Add(-time.Hour), To: at.Add(-time.Minute)}},
		}},
		Ended: []runtime.SessionTree{{
			At: at, ID: "gone", State: session.StateFailed, StateSince: at, Opened: at.Add(-time.Hour), Error: "it broke",
			Labels: map[string]string{}, Waits: []session.Wait{}, Actors: []session.ActorInfo{},
		}},
		Admission: runtime.AdmissionStat{
			Live: 1, ByGroup: map[string]int{"job": 1}, Queued: 2, Oldest: time.Second, Admitted: 3, Waited: 4, WaitTime: time.Minute,
			Host: runtime.HostUsage{Memory: 5, FreeDisk: 6}, GaveUp: 7, Processes: 8, ProcessesQueued: 9, MadeRoom: 10,
		},
	}
	got, err := json.MarshalIndent(tree, "", "  ")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/tree.json")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got)+"\n")
	var again runtime.Tree
	require.NoError(t, json.Unmarshal(got, &again))
	assert.Equal(t, tree, again)
}

// TestTheTreeOfNothingAsJSON has empty lists, not null.
func TestTheTreeOfNothingAsJSON(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	raw, err := json.Marshal(w.Tree(t.Context()))
	require.NoError(t, err)
	assert.Contains(t, string(raw), `"sessions":[]`)
	assert.Contains(t, string(raw), `"breakers":[]`)
	assert.Contains(t, string(raw), `"accounts":[]`)
	assert.Contains(t, string(raw), `"ended":[]`)
	assert.Contains(t, string(raw), `"by_group":{}`)
	spec := w.spec(turns())
	spec.ID = "s"
	s := w.open(spec)
	assert.Same(t, s, w.Runtime.Session("s"))
	assert.Nil(t, w.Runtime.Session("t"))
	w.Pass(time.Second)
	raw, err = json.Marshal(s.Tree(t.Context()))
	require.NoError(t, err)
	assert.Contains(t, string(raw), `"waits":[]`)
	assert.Contains(t, string(raw), `"labels":{}`)
}

// TestTheTreeShowsTheCloseLadder closes an agent that stops for nothing but SIGKILL.
func TestTheTreeShowsTheCloseLadder(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	script := turns()
	script.Misbehave = scripted.Misbehaviour{TrapTerm: true, IgnoreEOF: true}
	spec := w.spec(script)
	spec.Options.Graces = session.Graces{EOF: 2 * time.Minute, Terminate: 5 * time.Minute}
	s := w.open(spec)
	w.Pass(time.Second)
	assert.Empty(t, s.Tree(t.Context()).Waits)
	over := w.Task(func() { _ = s.Close(context.Background()) })
	w.Pass(time.Minute)
	tree := s.Tree(t.Context())
	assert.Equal(t, "up, stdin closed", tree.Transport)
	require.Len(t, tree.Waits, 1)
	assert.Equal(t, "close: the exit after the end of stdin", tree.Waits[0].What)
	assert.Equal(t, []any{2 * time.Minute, "Graces.EOF"}, []any{tree.Waits[0].Limit, tree.Waits[0].SetBy})
	assert.InDelta(t, time.Minute, tree.Waits[0].Age, float64(time.Second))
	w.Pass(2 * time.Minute)
	tree = s.Tree(t.Context())
	require.Len(t, tree.Waits, 1)
	assert.Equal(t, "close: the exit after SIGTERM", tree.Waits[0].What)
	assert.Equal(t, []any{5 * time.Minute, "Graces.Terminate"}, []any{tree.Waits[0].Limit, tree.Waits[0].SetBy})
	w.Pass(10 * time.Minute)
	over()
	assert.Empty(t, s.Tree(t.Context()).Waits)
}
