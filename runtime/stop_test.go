package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// descriptions are those of background tasks.
func descriptions(tasks []protocol.BackgroundTask) (all []string) {
	for _, t := range tasks {
		all = append(all, t.Description)
	}
	return all
}

// TestStopScopes stops parts of a session that has a turn, two messages behind it, and two
// background tasks.
func TestStopScopes(t *testing.T) {
	t.Parallel()
	type receipt struct {
		Turn            bool
		Cancelled       int
		Tasks           []string
		Killed, Running bool
		Queued          int
		RunningTasks    []string
	}
	for name, c := range map[string]struct {
		scope session.StopScope
		task  bool // stop the task "one"
		deaf  bool // the agent does not heed an interrupt
		want  receipt
		err   string
	}{
		"nothing": {want: receipt{Running: true, Queued: 2, RunningTasks: []string{"one", "two"}}},
		"the turn": {
			scope: session.StopScope{Turn: true},
			want:  receipt{Turn: true, Running: true, Queued: 1, RunningTasks: []string{"one", "two"}},
		},
		"the queue": {
			scope: session.StopScope{Queued: true},
			want:  receipt{Turn: true, Cancelled: 2, RunningTasks: []string{"one", "two"}},
		},
		"a task": {
			task: true,
			want: receipt{Tasks: []string{"one"}, Running: true, Queued: 2, RunningTasks: []string{"two"}},
		},
		"all tasks": {
			scope: session.StopScope{AllTasks: true},
			want:  receipt{Tasks: []string{"one", "two"}, Running: true, Queued: 2},
		},
		"all but the session": {
			scope: session.StopScope{Turn: true, Queued: true, AllTasks: true},
			want:  receipt{Turn: true, Cancelled: 2, Tasks: []string{"one", "two"}},
		},
		"everything": {
			scope: session.StopScope{Kill: true, Turn: true},
			want:  receipt{Turn: true, Cancelled: 2, Tasks: []string{"one", "two"}, Killed: true},
		},
		"a turn that goes on": {
			scope: session.StopScope{Turn: true}, deaf: true,
			want: receipt{Running: true, Queued: 2, RunningTasks: []string{"one", "two"}},
			err:  "control request interrupt: no answer within 1m0s (set by Limits.Control)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inSim(t, 1)
			shell := func(name string) scripted.Step {
				return &scripted.Shell{Command: name, Description: name, Takes: 10 * time.Hour}
			}
			script := turns(
				scripted.Steps{shell("one"), shell("two"), scripted.Text("started")},
				scripted.Steps{scripted.Delay(time.Hour)}, scripted.Steps{scripted.Delay(time.Hour)}, scripted.Steps{scripted.Delay(time.Hour)},
			)
			if c.deaf {
				script.Misbehave.Ignore = []string{"interrupt"}
			}
			spec := w.spec(script)
			spec.Options.AllowedTools, spec.Options.Discard = []string{"Bash"}, true
			s := w.open(spec)
			_, err := w.send(s, "begin").Result(t.Context())
			require.NoError(t, err)
			var sent []string
			for _, text := range []string{"work", "more", "last"} {
				sent = append(sent, w.send(s, text).UUID())
			}
			w.Pass(time.Second)
			if c.task {
				receipt, err := s.Stop(t.Context(), session.StopScope{})
				require.NoError(t, err)
				c.scope.Tasks = []string{receipt.RunningTasks[0].TaskID, "unknown"}
				if receipt.RunningTasks[0].Description != "one" {
					c.scope.Tasks[0] = receipt.RunningTasks[1].TaskID
				}
			}
			got, err := s.Stop(context.Background(), c.scope)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
			assert.Equal(t, c.want.Killed, got.Killed)
			assert.Equal(t, c.want.Turn, got.Turn == sent[0], "%+v", got)
			assert.Equal(t, c.want.Running, got.Running != "", "%+v", got)
			assert.Len(t, got.Cancelled, c.want.Cancelled)
			assert.Len(t, got.Queued, c.want.Queued, "%+v", got)
			assert.ElementsMatch(t, c.want.Tasks, descriptions(got.Tasks))
			assert.ElementsMatch(t, c.want.RunningTasks, descriptions(got.RunningTasks))
			assert.Equal(t, c.want.Killed, s.State().Terminal())
			if c.deaf {
				require.NoError(t, s.Kill(context.Background()))
			}
		})
	}
}

// TestStopWakesNobody: a session without a process stays without.
func TestStopWakesNobody(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	s := w.open(w.spec(turns(scripted.Steps{scripted.Text("done")})))
	texts(t, w.send(s, "go"))
	w.Pass(time.Second)
	require.NoError(t, s.Passivate(t.Context()))
	receipt, err := s.Stop(t.Context(), session.StopScope{Turn: true, Queued: true, AllTasks: true})
	require.NoError(t, err)
	assert.Equal(t, &session.StopReceipt{}, receipt)
	assert.Equal(t, session.StatePassivated, s.State())
	require.NoError(t, s.Close(t.Context()))
	receipt, err = s.Stop(t.Context(), session.StopScope{Turn: true})
	require.NoError(t, err)
	assert.Equal(t, &session.StopReceipt{Killed: true}, receipt)
}

// TestAnInterruptExplainsNoLaterDeath: the agent dies in the turn after an interrupt.
func TestAnInterruptExplainsNoLaterDeath(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	script := turns(scripted.Steps{scripted.Delay(time.Hour)}, scripted.Steps{&scripted.Exit{Code: 3}})
	s := w.open(w.spec(script))
	w.send(s, "work")
	w.Pass(time.Second)
	_, err := s.Stop(t.Context(), session.StopScope{Turn: true})
	require.NoError(t, err)
	_, err = w.send(s, "die").Result(context.Background())
	var exit *session.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Empty(t, exit.LastResult)
	assert.Empty(t, exit.LadderStep)
}

// TestStopWhileTheRouterRestarts interrupts the turn nevertheless.
func TestStopWhileTheRouterRestarts(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 5, 20) {
		armed := false
		w := inSim(t, seed, func(c *kernel.Config) {
			c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
				dies := armed && at == kernel.BeforeMessage && strings.HasPrefix(actor, "router#")
				armed = armed && !dies
				return dies
			}
		})
		ctx := t.Context()
		s := w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Hour), scripted.Text("on")})))
		began := w.Sched.Now()
		turn := w.send(s, "go")
		over := w.Task(func() { _, _ = turn.Result(ctx) })
		w.Pass(time.Second)
		armed = true
		receipt, err := s.Stop(ctx, session.StopScope{Turn: true})
		require.NoError(t, err)
		require.False(t, armed, "the router died")
		require.NotEmpty(t, receipt.Turn)
		over()
		require.Less(t, w.Sched.Now().Sub(began), time.Minute)
		require.NoError(t, s.Close(ctx))
		w.Finish()
	}
}
