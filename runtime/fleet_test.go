package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// TestTheFleetSurvives kills the fleet's actor at each message it handles in
// the life of three sessions, one of which loses its own actor, too.
func TestTheFleetSurvives(t *testing.T) {
	t.Parallel()
	life := func(t *testing.T, strike func(n int, at kernel.Moment) bool) (handled int) {
		t.Helper()
		lost := false
		w := inSim(t, 1, func(c *kernel.Config) {
			c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
				switch {
				case actor == "fleet":
					if at == kernel.BeforeMessage {
						handled++
					}
					return strike(handled-1, at)
				case strings.HasPrefix(actor, "b#") && !lost && at == kernel.AfterMessage:
					lost = true
					return true
				}
				return false
			}
		})
		for _, id := range []string{"a", "b", "c"} {
			spec := w.spec(turns(scripted.Steps{scripted.Text("hello")}))
			spec.ID = id
			s := w.open(spec)
			assert.Equal(t, []string{"hello"}, texts(t, w.send(s, "hi")))
			require.NoError(t, s.Close(t.Context()))
			assert.Equal(t, session.StateClosed, s.State())
		}
		require.True(t, lost)
		return handled
	}
	calm := life(t, func(int, kernel.Moment) bool { return false })
	require.Greater(t, calm, 3)
	for n := range calm {
		for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
			t.Run(fmt.Sprintf("%v message %d", at, n), func(t *testing.T) {
				t.Parallel()
				struck := false
				life(t, func(i int, when kernel.Moment) bool {
					strike := i == n && when == at && !struck
					struck = struck || strike
					return strike
				})
				require.True(t, struck)
			})
		}
	}
}

// TestASessionWhoseActorKeepsCrashing fails with the reasons, and nothing of it
// is left.
func TestASessionWhoseActorKeepsCrashing(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"s#", "router#", "callbacks#", "permission#"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				armed := false
				w := inSim(t, seed, func(c *kernel.Config) {
					c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
						return armed && at == kernel.AfterMessage && strings.HasPrefix(actor, victim)
					}
				})
				steps := scripted.Steps{scripted.Delay(time.Second)}
				for range 40 { // more than one incarnation after the other can die of
					steps = append(steps, gate())
				}
				spec := w.spec(turns(append(steps, scripted.Delay(time.Hour))))
				spec.ID, spec.Options.CanUseTool = "s", allow
				spec.Options.Supervisors.Session.Intensity = supervisor.Intensity{Max: 2, Window: time.Hour}
				s := w.open(spec)
				turn := w.send(s, "go")
				w.Pass(100 * time.Millisecond)
				armed = true
				w.Tree(t.Context()) // every actor that can be asked gets a message
				w.Pass(time.Minute)
				for range 5 {
					w.Tree(t.Context())
					w.Pass(time.Minute)
				}
				require.NoError(t, w.Executor().Await(t.Context(), s.Done()), "seed %d", seed)
				armed = false
				assert.Equal(t, session.StateFailed, s.State(), "seed %d", seed)
				require.ErrorContains(t, s.Err(), "killed by the test", "seed %d", seed)
				_, err := turn.Result(t.Context())
				require.Error(t, err)
				living, _ := w.Agents()
				assert.Zero(t, living)
				assert.Empty(t, w.Sessions())
			}
		})
	}
}

// TestCloseWhenNoTransportActorLives has the actor that drives the close ladder
// crash at each message: the agent is ended all the same.
func TestCloseWhenNoTransportActorLives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		armed := false
		w := inSim(t, seed, func(c *kernel.Config) {
			c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
				return armed && at == kernel.BeforeMessage && strings.HasPrefix(actor, "transport#")
			}
		})
		spec := w.spec(turns())
		spec.Options.Supervisors.Session.Intensity = supervisor.Intensity{Max: 2, Window: time.Hour}
		s := w.open(spec)
		armed = true
		start := w.Sched.Now()
		require.NoError(t, s.Close(t.Context()), "seed %d", seed)
		assert.Less(t, w.Sched.Now().Sub(start), time.Minute)
		living, _ := w.Agents()
		assert.Zero(t, living)
	}
}

func TestOneSessionsCrashIsNotAnothers(t *testing.T) {
	t.Parallel()
	armed := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			return armed && at == kernel.BeforeMessage && strings.HasPrefix(actor, "bad#")
		}
	})
	spec := w.spec(turns())
	spec.ID = "bad"
	bad := w.open(spec)
	spec = w.spec(turns(scripted.Steps{scripted.Text("fine")}))
	spec.ID = "good"
	good := w.open(spec)
	armed = true
	wait := w.Task(func() { _ = bad.Close(context.Background()) })
	assert.Equal(t, []string{"fine"}, texts(t, w.send(good, "hi")))
	wait()
	assert.Equal(t, session.StateFailed, bad.State())
	assert.Equal(t, []*runtime.Session{good}, w.Sessions())
	require.NoError(t, good.Close(t.Context()))
	assert.Equal(t, session.StateClosed, good.State())
}

// TestWhatWasWrittenWhenItsActorsFailed: the agent's output is delivered, also if any
// supervisor gave up at any message.
func TestWhatWasWrittenWhenItsActorsFailed(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"s#", "router#", "transport#"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				armed := false
				w := inSim(t, seed, func(c *kernel.Config) {
					c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
						return armed && at == kernel.BeforeMessage && strings.HasPrefix(actor, victim)
					}
				})
				var steps scripted.Steps
				for range 20 {
					steps = append(steps, scripted.Text("more"), scripted.Delay(10*time.Millisecond))
				}
				spec := w.spec(turns(append(steps, scripted.Delay(time.Hour))))
				spec.ID, spec.Options.Supervisors.Session.Intensity = "s", supervisor.Intensity{Max: 2, Window: time.Hour}
				s := w.open(spec)
				w.send(s, "go")
				w.Pass(25 * time.Millisecond)
				armed = true
				w.Tree(t.Context()) // so that each of them gets a message
				w.Task(func() { _ = s.Close(t.Context()) })
				began := w.Sched.Now()
				require.NoError(t, w.Executor().Await(t.Context(), s.Done()), "seed %d", seed)
				armed = false
				assert.Less(t, w.Sched.Now().Sub(began), 5*time.Second, "seed %d", seed)
				read := 0
				for _, err := range s.Messages(t.Context()) {
					if err == nil {
						read++
					}
				}
				require.Equal(t, len(w.Wrote()), read, "seed %d", seed)
			}
		})
	}
}
