package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

var lives = machine.LifeConfig{
	Backend: "agent", InterruptGrace: 2 * time.Second, FlushGrace: time.Second, Consumer: time.Minute, AuthExpired: 41,
	Interrupt: &machine.Called{Subtype: "interrupt", Body: json.RawMessage(`{"subtype":"interrupt"}`), Own: true},
	Recovery:  machine.RecoveryConfig{Restarts: 4, Equal: 3, Window: time.Hour, ResetAfter: 10 * time.Second, Policy: session.RecoverContinue, Unknown: "no such session"},
}

// TestWhyALifeEnds is what users read.
func TestWhyALifeEnds(t *testing.T) {
	t.Parallel()
	cfg := lives
	cfg.Recovery.Restarts = 0
	up := []machine.LifeInput{
		machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, machine.Changed{Summary: &machine.Summary{Initialized: true}},
	}
	gone := func(l machine.Link, s machine.Summary) []machine.LifeInput {
		l.Gen, l.Phase, s.Gen, s.Drained = 1, machine.Gone, 1, true
		return []machine.LifeInput{machine.Linked{Link: l}, machine.Changed{Summary: &s}, machine.ActorsOver{}}
	}
	for name, c := range map[string]struct {
		inputs []machine.LifeInput
		want   string // "" is a normal end
		state  session.State
	}{
		"the agent exits": {
			append(up, gone(machine.Link{Gen: 1, Exit: session.ExitStatus{Code: 3}, Stderr: "oh no"}, machine.Summary{Initialized: true})...),
			"oh no", session.StateFailed,
		},
		"its login has expired": {
			append(up, gone(machine.Link{Gen: 1, Exit: session.ExitStatus{Code: 41}}, machine.Summary{Initialized: true})...),
			"agent", session.StateFailed,
		},
		"it was never started": {
			[]machine.LifeInput{machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Gone, Err: machine.Fault{Err: errors.New("no such file")}}}, machine.Changed{Summary: &machine.Summary{Drained: true}}, machine.ActorsOver{}},
			"no such file", session.StateFailed,
		},
		"something of it is left": {
			append(append(up, machine.CloseAsked{}), gone(machine.Link{Gen: 1, Leftover: machine.Fault{Err: errors.New("a child")}}, machine.Summary{Initialized: true, Heard: 9})...),
			"a child", session.StateClosed,
		},
		"its actors fail": {
			append(append(up, machine.ActorsOver{Err: errors.New("too many")}), gone(machine.Link{}, machine.Summary{Initialized: true})[0]),
			"too many", session.StateFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := machine.NewLife(cfg)
			var out []machine.Effect
			for _, in := range c.inputs {
				out = l.Step(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), in, out)
			}
			end, ok := out[len(out)-1].(machine.Finish)
			require.True(t, ok, fmt.Sprint(texts(out)))
			require.ErrorContains(t, end.Reason, c.want)
			assert.Equal(t, c.state, l.Snapshot().Phase)
		})
	}
}

// TestAConsumerThatStandsStill ends the session after its limit, counted anew with
// each message that is read.
func TestAConsumerThatStandsStill(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := machine.NewLife(lives)
	for _, in := range []machine.LifeInput{
		machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, machine.Changed{Summary: &machine.Summary{Initialized: true}},
	} {
		l.Step(start, in, nil)
	}
	stalled := func(at time.Duration) machine.LifeInput {
		return machine.Changed{Summary: &machine.Summary{Initialized: true, Stalled: true, StalledAt: start.Add(at)}}
	}
	assert.Contains(t, l.Step(start, stalled(0), nil), machine.SetTick{At: start.Add(time.Minute)})
	assert.Empty(t, l.Step(start.Add(30*time.Second), stalled(30*time.Second), nil), "the timer may come early")
	reads := machine.Changed{Summary: &machine.Summary{Initialized: true, Running: true}}
	assert.NotContains(t, l.Step(start.Add(30*time.Second), reads, nil), machine.SetTick{}, "nor is it stopped while the agent works")
	require.Equal(t, session.StateRunning, l.Snapshot().Phase)
	l.Step(start.Add(30*time.Second), stalled(30*time.Second), nil)
	assert.Equal(t, []machine.Effect{machine.SetTick{At: start.Add(90 * time.Second)}}, l.Step(start.Add(time.Minute), machine.Tick{}, nil))
	require.Equal(t, session.StateAwaitingConsumer, l.Snapshot().Phase)
	l.Step(start.Add(90*time.Second), machine.Tick{}, nil)
	assert.Equal(t, session.StateClosing, l.Snapshot().Phase)
	assert.ErrorIs(t, l.Snapshot().Reason.Err, session.ErrConsumerStalled)
}

// up is a process that is ready, of the life of a test.
func up(l *machine.Life, now time.Time, gen int) {
	l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Up}}, nil)
	l.Step(now, machine.Changed{Summary: &machine.Summary{Gen: gen, Initialized: true, Heard: l.Snapshot().Sent}}, nil)
}

// TestALifeWithAnotherProcess: it waits until the routing has let go of the process that
// died, until the delay has passed and until there is something to do, and hears no more
// of that process.
func TestALifeWithAnotherProcess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := machine.NewLife(lives)
	step := func(in machine.LifeInput) []string { return texts(l.Step(now, in, nil)) }
	gone := func(gen int) machine.LifeInput {
		return machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Gone, Exit: session.ExitStatus{Code: 3}}}
	}
	step(machine.Began{})
	up(l, now, 1)
	require.Equal(t, session.StateReady, l.Snapshot().Phase)
	step(gone(1))
	require.Equal(t, session.StateReady, l.Snapshot().Phase, "its output is not handled yet")
	step(machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true, Drained: true}})
	require.Equal(t, session.StateRecovering, l.Snapshot().Phase)
	require.Empty(t, step(machine.Tick{}))
	require.Empty(t, step(machine.Changed{Summary: &machine.Summary{Gen: 1, Drained: true, Waiting: true, Heard: 1}}))
	require.Empty(t, step(machine.Parted{Gen: 7}), "of no process that there was")
	require.Len(t, step(machine.Parted{Gen: 1, SessionID: "s"}), 2, "a verdict, and a draw")
	require.Empty(t, step(machine.Parted{Gen: 1, SessionID: "s"}), "once")
	require.Empty(t, step(machine.Drawn{Gen: 7}))
	require.Len(t, step(machine.Drawn{Gen: 1, Delay: time.Second}), 1, "an event")
	require.Equal(t, []string{fmt.Sprintf("%T %+v", machine.SetTick{}, machine.SetTick{At: now.Add(time.Second)})},
		step(machine.Changed{Summary: &machine.Summary{Gen: 1, Drained: true, Waiting: true, Heard: 2}}))
	now = now.Add(time.Second)
	require.Equal(t, []string{fmt.Sprintf("%T %+v", machine.Launch{}, machine.Launch{Gen: 2, Resume: "s"})}, step(machine.Tick{}))
	require.Empty(t, step(gone(1)), "of the process before")
	up(l, now, 2)
	require.Equal(t, session.StateReady, l.Snapshot().Phase)
	step(machine.Linked{Link: machine.Link{Gen: 2, Phase: machine.Gone, Exit: session.ExitStatus{Code: lives.AuthExpired}}})
	step(machine.Changed{Summary: &machine.Summary{Gen: 2, Initialized: true, Drained: true, Heard: 2}})
	require.Equal(t, session.StateClosing, l.Snapshot().Phase, "nothing to try again with")
}

// die has the present process of a life die, after it was ready, and parts with it.
func die(l *machine.Life, now time.Time, exit session.ExitStatus, sum machine.Summary) []machine.Effect {
	gen := l.Snapshot().Gen
	sum.Gen, sum.Drained, sum.Heard = gen, true, l.Snapshot().Sent
	out := l.Step(now, machine.Changed{Summary: &sum}, nil)
	out = l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Gone, Exit: exit}}, out)
	return l.Step(now, machine.Parted{Gen: gen, SessionID: "s"}, out)
}

// relaunch has the next process of a life start.
func relaunch(l *machine.Life, now time.Time) (next *machine.Launch) {
	gen := l.Snapshot().Gen
	out := l.Step(now, machine.Drawn{Gen: gen}, nil)
	for _, e := range l.Step(now, machine.Changed{Summary: &machine.Summary{Gen: gen, Drained: true, Waiting: true, Heard: l.Snapshot().Sent}}, out) {
		if e, ok := e.(machine.Launch); ok {
			next = &e
		}
	}
	return next
}

// TestWhatADeathDoes, by the state in which the agent dies, the way in which it dies and
// the policy.
func TestWhatADeathDoes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	working := map[string]machine.Summary{
		"ready":             {Initialized: true},
		"running":           {Initialized: true, Running: true, InFlight: true},
		"awaiting_host":     {Initialized: true, Running: true, InFlight: true, Gates: 1},
		"awaiting_consumer": {Initialized: true, Running: true, InFlight: true, Stalled: true, StalledAt: start},
	}
	deaths := map[string]struct {
		exit      session.ExitStatus
		link      machine.Link
		changed   bool
		permanent bool
	}{
		"killed":      {exit: session.ExitStatus{Code: -1, Signal: "SIGKILL"}},
		"exit 0":      {},
		"exit 1":      {exit: session.ExitStatus{Code: 1}},
		"no login":    {exit: session.ExitStatus{Code: 41}, permanent: true},
		"given up":    {exit: session.ExitStatus{Code: 1}, link: machine.Link{Err: machine.Fault{Err: errors.New("broken")}}, permanent: true},
		"left":        {exit: session.ExitStatus{Code: 1}, link: machine.Link{Leftover: machine.Fault{Err: errors.New("a child")}}, permanent: true},
		"other model": {exit: session.ExitStatus{Code: 1}, changed: true, permanent: true},
	}
	policies := []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport, session.RecoverFail, "", "odd"}
	for state, sum := range working {
		for death, d := range deaths {
			for _, policy := range policies {
				for _, asks := range []bool{false, true} {
					if !asks && !policy.Known() {
						continue
					}
					name := fmt.Sprintf("%s, %s, %q, asked: %v", state, death, policy, asks)
					cfg := lives
					cfg.Recovery.Policy, cfg.Recovery.Asks = policy, asks
					l := machine.NewLife(cfg)
					l.Step(start, machine.Began{}, nil)
					up(l, start, 1)
					s := sum
					s.Gen, s.Changed = 1, d.changed
					l.Step(start, machine.Changed{Summary: &s}, nil)
					require.Equal(t, state, l.Snapshot().Phase.String(), name)
					s.Drained = true
					l.Step(start, machine.Changed{Summary: &s}, nil)
					d.link.Gen, d.link.Phase, d.link.Exit = 1, machine.Gone, d.exit
					l.Step(start, machine.Linked{Link: d.link}, nil)
					if d.permanent {
						require.Equal(t, session.StateClosing, l.Snapshot().Phase, name)
						require.Error(t, l.Snapshot().Reason.Err, name)
						continue
					}
					require.Equal(t, session.StateRecovering, l.Snapshot().Phase, name)
					out := l.Step(start, machine.Parted{Gen: 1, SessionID: "s"}, nil)
					if asks {
						ask, ok := out[0].(machine.Ask)
						require.True(t, ok, name)
						require.Equal(t, state, ask.Death.State.String(), name)
						out = l.Step(start, machine.Decided{Gen: 1, Policy: policy}, nil)
					}
					_, wrong := errors.AsType[*session.RecoveryError](l.Snapshot().Reason.Err)
					require.Equal(t, !policy.Known(), wrong, name)
					switch policy {
					case session.RecoverContinue, session.RecoverRerun, session.RecoverReport:
						tell, ok := out[0].(machine.Tell)
						require.True(t, ok, name)
						require.Equal(t, policy, tell.In.(machine.Verdict).Policy, name)
						require.Equal(t, &machine.Launch{Gen: 2, Resume: "s"}, relaunch(l, start), name)
					default:
						require.Equal(t, session.StateClosing, l.Snapshot().Phase, name)
						require.ErrorAs(t, l.Snapshot().Reason.Err, new(*session.ExitError), name)
					}
				}
			}
		}
	}
}

// TestHowOftenALifeRecovers: restarts count within the window, equal deaths without a
// result are permanent, and a healthy process begins the backoff anew.
func TestHowOftenALifeRecovers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type deathOf struct {
		after  time.Duration // that the process was ready
		code   int
		result bool
	}
	config := lives
	attempts := func(deaths ...deathOf) (all []int, end error) {
		l, now := machine.NewLife(config), at
		l.Step(now, machine.Began{}, nil)
		for i, d := range deaths {
			up(l, now, i+1)
			now = now.Add(d.after)
			sum := machine.Summary{Initialized: true}
			if d.result {
				sum.ResultAt = now
			}
			for _, e := range die(l, now, session.ExitStatus{Code: d.code}, sum) {
				if e, ok := e.(machine.Draw); ok {
					all = append(all, e.Attempt)
				}
			}
			if end = l.Snapshot().Reason.Err; end != nil {
				return all, end
			}
			require.NotNil(t, relaunch(l, now))
		}
		return all, nil
	}
	all, end := attempts(deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1})
	require.Equal(t, []int{1, 2}, all)
	require.ErrorContains(t, end, "alike 3 times")
	all, end = attempts(deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 2}, deathOf{code: 1}, deathOf{code: 2})
	require.Equal(t, []int{1, 2, 3, 4}, all)
	require.ErrorContains(t, end, "more than 4 times within 1h0m0s (MaxRestarts, RestartWindow)")
	all, end = attempts(deathOf{code: 1, result: true}, deathOf{code: 1, result: true}, deathOf{code: 1, result: true}, deathOf{code: 1})
	require.NoError(t, end, "with results between")
	require.Equal(t, []int{1, 2, 3, 4}, all)
	all, end = attempts(deathOf{code: 1}, deathOf{code: 2, after: 9 * time.Second}, deathOf{code: 1, after: 10 * time.Second}, deathOf{code: 2})
	require.NoError(t, end)
	require.Equal(t, []int{1, 2, 1, 2}, all)
	all, end = attempts(deathOf{code: 1}, deathOf{code: 2}, deathOf{code: 1}, deathOf{code: 2}, deathOf{code: 1, after: time.Hour + 1}, deathOf{code: 2})
	require.NoError(t, end, "the window has passed")
	require.Equal(t, []int{1, 2, 3, 4, 1, 2}, all)
	config.Recovery.Equal = 1
	_, end = attempts(deathOf{code: 1})
	require.ErrorContains(t, end, "alike 1 times")
	config.Recovery.Equal, config.Recovery.Restarts = 0, 6
	all, end = attempts(deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1})
	require.NoError(t, end, "no number of them is too many")
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, all)
}

// TestASessionThatTheAgentDoesNotFind is begun under the same id, unless it had been
// stored.
func TestASessionThatTheAgentDoesNotFind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, stored := range []bool{false, true} {
		l := machine.NewLife(lives)
		l.Step(now, machine.Began{}, nil)
		up(l, now, 1)
		first := machine.Summary{Initialized: true}
		if stored {
			first.ResultAt = now
		}
		die(l, now, session.ExitStatus{Code: 1}, first)
		require.Equal(t, &machine.Launch{Gen: 2, Resume: "s"}, relaunch(l, now))
		l.Step(now, machine.Linked{Link: machine.Link{Gen: 2, Phase: machine.Up}}, nil)
		die(l, now, session.ExitStatus{Code: 1}, machine.Summary{Failure: "error: no such session: s"})
		if stored {
			require.ErrorContains(t, l.Snapshot().Reason.Err, "does not find its session")
			continue
		}
		require.Equal(t, &machine.Launch{Gen: 3, Resume: "s", Fresh: true}, relaunch(l, now))
		require.Len(t, l.Snapshot().Deaths.Restarts, 1, "it is no restart")

		// One that was to begin the session and says the same has died like any other: an
		// agent that says nothing else is not started without end.
		lost := machine.Summary{Failure: "error: no such session: s"}
		gen := 3
		for ; !l.Snapshot().Phase.Terminal() && l.Snapshot().Close == machine.NotClosing; gen++ {
			require.Less(t, gen, 20, "started without end")
			l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Up}}, nil)
			die(l, now, session.ExitStatus{Code: 1}, lost)
			if l.Snapshot().Close == machine.NotClosing {
				relaunch(l, now)
			}
		}
		require.ErrorContains(t, l.Snapshot().Reason.Err, "no recovery")
	}
}

// TestAStartThatTakesTooLong ends the session, whichever process it is. A process that is up
// has as much time for its first answer as it wants.
func TestAStartThatTakesTooLong(t *testing.T) {
	t.Parallel()
	cfg := lives
	cfg.Start = 5 * time.Minute
	for gen := 1; gen <= 3; gen++ {
		for _, comesUp := range []bool{false, true} {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			l := machine.NewLife(cfg)
			l.Step(now, machine.Began{}, nil)
			for n := 1; n < gen; n++ {
				up(l, now, n)
				die(l, now, session.ExitStatus{Code: 3}, machine.Summary{Initialized: true, Waiting: true})
				now = now.Add(time.Hour)
				require.NotNil(t, relaunch(l, now))
			}
			require.Equal(t, gen, l.Snapshot().Gen)
			if comesUp {
				l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Up}}, nil)
			} else {
				assert.Equal(t, now.Add(cfg.Start), l.Snapshot().Tick)
			}
			l.Step(now.Add(cfg.Start-1), machine.Tick{}, nil)
			require.NotEqual(t, session.StateClosing, l.Snapshot().Phase)
			l.Step(now.Add(cfg.Start), machine.Tick{}, nil)
			if comesUp {
				require.Equal(t, session.StateInitializing, l.Snapshot().Phase)
				continue
			}
			require.Equal(t, session.StateClosing, l.Snapshot().Phase, "process %d", gen)
			var over *session.TimeoutError
			require.ErrorAs(t, l.Snapshot().Reason.Err, &over)
			assert.Equal(t, "Limits.Start", over.SetBy)
		}
	}
}

// TestAnIdleSessionHasNoTimer: that of the start is given back once the session is ready.
func TestAnIdleSessionHasNoTimer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		passivate time.Duration
		want      machine.Effect
	}{
		"":                     {0, machine.SetTick{}},
		"a timer for its rest": {time.Second, machine.SetTick{At: now.Add(time.Second)}},
		"a later one":          {time.Hour, nil}, // the early one sets it
	} {
		cfg := lives
		cfg.Start, cfg.PassivateAfter = time.Minute, c.passivate
		l := machine.NewLife(cfg)
		require.Contains(t, l.Step(now, machine.Began{}, nil), machine.SetTick{At: now.Add(time.Minute)})
		out := l.Step(now, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, nil)
		out = l.Step(now, machine.Changed{Summary: &machine.Summary{Initialized: true, Heard: l.Snapshot().Sent}}, out)
		var got machine.Effect
		for _, e := range out {
			if tick, ok := e.(machine.SetTick); ok {
				assert.Nil(t, got)
				got = tick
			}
		}
		assert.Equal(t, c.want, got, name)
		require.Equal(t, session.StateReady, l.Snapshot().Phase)
		if name == "" {
			assert.NotContains(t, l.Step(now, machine.Changed{Summary: &machine.Summary{Initialized: true, Running: true}}, nil), machine.SetTick{})
		}
	}
}
