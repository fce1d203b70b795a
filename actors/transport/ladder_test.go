package transport_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

func TestTheLadderByTheClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from  machine.Stage
		react func(f *fake)
		want  []string // up to the exit
		code  int
	}{
		"polite": {machine.ClosedStdin, func(f *fake) { f.on["EOF"] = f.exit(session.ExitStatus{}) },
			[]string{"0s spawn", "1s EOF"}, 0},
		"slow to exit": {machine.ClosedStdin, func(f *fake) { f.on["EOF"] = f.exitAfter(4999*time.Millisecond, 0) },
			[]string{"0s spawn", "1s EOF"}, 0},
		"ignores EOF": {machine.ClosedStdin, func(f *fake) { f.on["SIGTERM"] = f.exit(session.ExitStatus{Code: 143}) },
			[]string{"0s spawn", "1s EOF", "6s SIGTERM"}, 143},
		"slow to terminate": {machine.ClosedStdin, func(f *fake) { f.on["SIGTERM"] = f.exitAfter(2*time.Second, 143) },
			[]string{"0s spawn", "1s EOF", "6s SIGTERM"}, 143},
		"ignores both": {machine.ClosedStdin, func(f *fake) { f.on["SIGKILL"] = f.exit(killed) },
			[]string{"0s spawn", "1s EOF", "6s SIGTERM", "9s SIGKILL"}, -1},
		"in a turn": {machine.Terminated, func(f *fake) { f.on["SIGTERM"] = f.exitAfter(time.Second, 143) },
			[]string{"0s spawn", "1s SIGTERM"}, 143},
		"in a turn it does not stop": {machine.Terminated, func(f *fake) { f.on["SIGKILL"] = f.exit(killed) },
			[]string{"0s spawn", "1s SIGTERM", "4s SIGKILL"}, -1},
		"at once": {machine.Killed, func(f *fake) { f.on["SIGKILL"] = f.exit(killed) },
			[]string{"0s spawn", "1s SIGKILL"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).up()
			c.react(r.proc)
			r.pass(time.Second)
			r.want(c.from)
			s := r.ended()
			n := len(c.want)
			require.GreaterOrEqual(t, len(r.proc.log), n)
			assert.Equal(t, c.want, r.proc.log[:n])
			rest := r.proc.without("EOF")[len(r.proc.without("EOF"))-3:]
			for i, what := range []string{"SIGKILL", "sweep", "reap"} {
				assert.Contains(t, rest[i], what, "the group, then the tree, then the leader")
			}
			assert.Equal(t, c.code, s.Exit.Code)
			require.NoError(t, s.Err.Err)
			require.NoError(t, s.Leftover.Err)
		})
	}
}

func TestTheLadderClosesStdinOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.on["EOF"] = r.proc.exit(session.ExitStatus{})
	for range 3 {
		r.want(machine.ClosedStdin)
		r.settle()
	}
	r.ended()
	assert.Equal(t, []string{"0s spawn", "0s EOF", "0s SIGKILL", "0s sweep", "0s reap"}, r.proc.log)
}

func TestWhatIsQueuedIsWrittenBeforeStdinIsClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.in.blocked = make(chan struct{})
	r.proc.on["EOF"] = r.proc.exit(session.ExitStatus{})
	_, err := r.side.Call("a", []byte(`{"subtype":"a"}`), 0)
	require.NoError(t, err)
	r.want(machine.ClosedStdin)
	r.pass(time.Second)
	assert.Equal(t, []string{"0s spawn"}, r.proc.log)
	close(r.proc.in.blocked)
	r.proc.in.blocked = nil
	r.ended()
	assert.Contains(t, r.proc.in.got.String(), `"subtype":"a"`)
	assert.Equal(t, "1s EOF", r.proc.log[1])
}

func TestABlockedStdinDoesNotHoldTheLadder(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.in.blocked = make(chan struct{})
	r.proc.on["SIGKILL"] = r.proc.exit(killed)
	_, err := r.side.Call("a", []byte(`{"subtype":"a"}`), 0)
	require.NoError(t, err)
	r.want(machine.ClosedStdin)
	r.ended()
	assert.Equal(t, []string{"0s spawn", "5s SIGTERM", "8s SIGKILL"}, r.proc.log[:3])
}

// TestTheNextIncarnationGoesOn replaces the transport actor in the middle of
// the ladder: the process must not notice.
func TestTheNextIncarnationGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at, gone time.Duration // when the actor dies, and for how long there is none
		want     []string
	}{
		"before the ladder":      {500 * time.Millisecond, time.Second, []string{"0s spawn", "1.5s EOF", "6.5s SIGTERM", "9.5s SIGKILL"}},
		"after EOF":              {3 * time.Second, time.Second, []string{"0s spawn", "1s EOF", "6s SIGTERM", "9s SIGKILL"}},
		"over the end of EOF":    {3 * time.Second, 4 * time.Second, []string{"0s spawn", "1s EOF", "7s SIGTERM", "10s SIGKILL"}},
		"after SIGTERM":          {7 * time.Second, time.Second, []string{"0s spawn", "1s EOF", "6s SIGTERM", "9s SIGKILL"}},
		"over the end of it all": {2 * time.Second, time.Hour, []string{"0s spawn", "1s EOF", "1h0m2s SIGTERM", "1h0m5s SIGKILL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			first := r.actor()
			r.settle()
			r.proc.on["SIGKILL"] = r.proc.exit(killed)
			r.sched.AfterFunc(time.Second, func() { r.want(machine.ClosedStdin) })
			r.pass(c.at)
			require.NoError(t, kernel.StopAndWait(t.Context(), first))
			r.pass(c.gone)
			r.actor()
			r.ended()
			assert.Equal(t, c.want, r.proc.log[:4])
		})
	}
}

func TestAnIncarnationFindsTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.actor()
	r.settle()
	require.NoError(t, kernel.StopAndWait(t.Context(), first))
	r.proc.exit(session.ExitStatus{Code: 3})()
	r.settle()
	r.actor()
	s := r.ended()
	assert.Equal(t, 3, s.Exit.Code)
	assert.Equal(t, []string{"0s spawn", "0s SIGKILL", "0s sweep", "0s reap", "0s EOF"}, r.proc.log, "launched once")
}

func TestAnOldTimerClimbsNoStage(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.on["SIGKILL"] = r.proc.exit(killed)
	r.want(machine.Terminated)
	r.settle()
	for _, stage := range []machine.Stage{machine.Open, machine.ClosedStdin} {
		r.address.Tell(nil, transport.StageOver(stage))
	}
	r.pass(time.Second)
	assert.Equal(t, []string{"0s spawn", "0s SIGTERM"}, r.proc.log)
	r.want(machine.ClosedStdin)
	r.pass(time.Second)
	assert.Equal(t, machine.Terminated, r.Status().Stage, "it never goes back")
	r.ended()
}

func TestAProcessThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.want(machine.ClosedStdin)
	s := r.ended()
	assert.Equal(t, 18*time.Second, r.sched.Now().Sub(r.start), "5 s, 3 s, and 10 s for the kill")
	var left *session.LeftoverError
	require.ErrorAs(t, s.Leftover.Err, &left)
	require.ErrorContains(t, s.Leftover.Err, "1 process of the agent did not stop: 4711 (/bin/agent)")
	assert.NotContains(t, r.proc.log, "18s reap", "a process that lives is not reaped")
}

func TestAProcessThatOnlyTheSweepEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.sweep = func(context.Context) ([]session.ProcInfo, error) {
		r.proc.exit(killed)()
		return nil, nil
	}
	r.want(machine.ClosedStdin)
	s := r.ended()
	require.NoError(t, s.Leftover.Err)
	assert.Equal(t, killed, s.Exit)
	assert.Equal(t, []string{"0s spawn", "0s EOF", "5s SIGTERM", "8s SIGKILL", "18s SIGKILL", "18s sweep", "18s reap"}, r.proc.log)
}

func TestAbort(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	require.NoError(t, kernel.StopAndWait(t.Context(), &r.address)) // nobody drives it
	r.proc.on["SIGKILL"] = r.proc.exit(killed)
	r.Abort()
	r.Abort()
	s := r.ended()
	assert.Equal(t, killed, s.Exit)
	assert.Equal(t, "SIGKILL", s.Exit.Signal)
	r.Abort()
}

func TestStagesAndPhasesHaveNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "open stdin closed terminated killed", joined(machine.Open, machine.ClosedStdin, machine.Terminated, machine.Killed))
	assert.Equal(t, "idle launching up exited ended", joined(machine.Idle, machine.Launching, machine.Up, machine.Exited, machine.Gone))
	assert.Equal(t, "SIGINT SIGTERM", joined(session.SignalInterrupt, session.SignalTerminate))
	assert.Equal(t, "exit code 3", session.ExitStatus{Code: 3}.String())
	assert.Equal(t, "signal SIGKILL", killed.String())
}

// An exit says whether the signal that ended the agent was Troupe's.
func TestASignalHasASender(t *testing.T) {
	t.Parallel()
	t.Run("somebody else", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		r.proc.exit(session.ExitStatus{Code: -1, Signal: "SIGTERM"})()
		assert.Empty(t, r.ended().Signal)
	})
	t.Run("the ladder, for an output that had ended", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		r.proc.on["SIGTERM"] = r.proc.exit(session.ExitStatus{Code: -1, Signal: "SIGTERM"})
		r.proc.out.close()
		s := r.ended()
		assert.Equal(t, "SIGTERM", s.Signal)
		assert.Equal(t, machine.Terminated, s.Stage)
		assert.Equal(t, "its stdout had ended", s.Why)
	})
	term := session.ExitStatus{Code: -1, Signal: "SIGTERM"}
	require.EqualError(t, &session.ExitError{Status: term, During: "idle"}, "agent ended while idle: signal SIGTERM (not sent by Troupe)")
	require.EqualError(t, &session.ExitError{Status: term, During: "idle", LadderStep: "terminated, SIGTERM, because its stdout had ended"},
		"agent ended while idle: signal SIGTERM (after Troupe's close ladder: terminated, SIGTERM, because its stdout had ended)")
	require.EqualError(t, &session.ExitError{Status: session.ExitStatus{Code: 143}, During: "idle"}, "agent ended while idle: exit code 143 (as after a SIGTERM, not sent by Troupe)")
	require.EqualError(t, &session.ExitError{During: "idle", StderrTail: "\x1b[1mbold\u202e\x00"}, `agent ended while idle: exit code 0; stderr: \x1b[1mbold\u202e\x00`)
}
