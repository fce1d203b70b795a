package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// holding is a child whose Handle, or the function that what names, waits: for its context
// too if it listens, and in any case for let.
func holding(w *rig, l *log, spec supervisor.Child, what string, listens bool, let <-chan struct{}) (*session.Child, *session.Ref[string]) {
	lives := 0
	return session.NewChild(spec, func() session.Behavior[string] {
		lives++
		life := lives
		hold := func(ctx context.Context, at string) error {
			l.add("%s %d", at, life)
			if at != what {
				return nil
			}
			if !listens {
				ctx = context.WithoutCancel(ctx)
			}
			err := w.Executor().Await(ctx, let)
			l.add("%s %d returns: %v", at, life, err)
			return err
		}
		return session.Behavior[string]{
			Start:  func(ctx context.Context) error { return hold(ctx, "start") },
			Handle: func(ctx context.Context, m string) error { return hold(ctx, m) },
			Stop:   func(ctx context.Context, _ error) error { return hold(ctx, "stop") },
		}
	})
}

// TestAChildThatDoesNotStop is killed, and if it does not return then it is stuck: it is
// reported and left, and the session ends without it.
func TestAChildThatDoesNotStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		what     string
		listens  bool
		shutdown time.Duration
		took     time.Duration
		did      []string
		events   []string
	}{
		"it listens":              {"x", true, 0, 5 * time.Second, []string{"start 1", "x 1", "x 1 returns: the child is killed"}, []string{"it did not stop within 5s"}},
		"it has time of its own":  {"x", true, time.Hour, time.Hour, []string{"start 1", "x 1", "x 1 returns: the child is killed"}, []string{"it did not stop within 1h0m0s"}},
		"it gets none":            {"x", true, supervisor.Brutal, 0, []string{"start 1", "x 1", "x 1 returns: the child is killed"}, []string{"it gets no time to stop"}},
		"it is stopping":          {"stop", true, 0, 5 * time.Second, []string{"start 1", "x 1", "stop 1", "stop 1 returns: the child is killed"}, []string{"it did not stop within 5s"}},
		"it never returns":        {"x", false, 0, 10 * time.Second, []string{"start 1", "x 1"}, []string{"it did not stop within 5s", "did not stop, not even when killed"}},
		"brutal, never returns":   {"x", false, supervisor.Brutal, 5 * time.Second, []string{"start 1", "x 1"}, []string{"it gets no time to stop", "did not stop, not even when killed"}},
		"brutal, it does nothing": {"", false, supervisor.Brutal, 0, []string{"start 1", "x 1"}, []string{"it gets no time to stop"}},
	} {
		for seed := range uint64(5) {
			w := inSim(t, seed)
			l, let := &log{}, make(chan struct{})
			child, ref := holding(w, l, supervisor.Child{Name: "recorder", Shutdown: c.shutdown}, c.what, c.listens, let)
			var why *log
			s := w.idle(func(s *runtime.Spec) { why = decisions(s) }, child)
			w.tell(ref, "x")
			w.Pass(time.Minute)
			began := w.Clock().Now()
			require.NoError(t, s.Close(t.Context()), name)
			assert.Equal(t, c.took, w.Clock().Now().Sub(began).Truncate(time.Second), name)
			assert.Equal(t, c.did, l.all(), name)
			require.Len(t, why.all(), len(c.events), name)
			for i, want := range c.events {
				assert.Contains(t, why.all()[i], want, name)
			}
			require.ErrorIs(t, ref.Send("late"), session.ErrNoChild)
			close(let)
			w.Quiet()
			w.Finish()
		}
	}
}

// TestAChildThatIsStuckInARestart fails the session: no second incarnation lives beside it.
func TestAChildThatIsStuckInARestart(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	l, let := &log{}, make(chan struct{})
	bad, toBad := logging(l, supervisor.Child{Name: "bad"})
	held, toHeld := holding(w, l, supervisor.Child{Name: "held", Kill: time.Minute}, "x", false, let)
	s := w.idle(func(s *runtime.Spec) { s.Options.Supervisors.Session.Strategy = supervisor.RestForOne }, bad, held)
	w.tell(toHeld, "x")
	w.Pass(time.Second)
	w.tell(toBad, "bad")
	w.Pass(time.Second)
	assert.Equal(t, "stopping", actor(w, s, "held#1").State)
	wait := session.Wait{What: "child held to stop", Limit: 5 * time.Second, SetBy: "Child.Shutdown"}
	got := s.Tree(t.Context()).Waits
	require.NotEmpty(t, got)
	last := got[len(got)-1]
	assert.Positive(t, last.Age)
	assert.Equal(t, w.Sched.Now().Add(-last.Age), last.Since)
	last.Age, last.Since = 0, time.Time{}
	assert.Equal(t, wait, last)
	w.Pass(5 * time.Second)
	got = s.Tree(t.Context()).Waits
	assert.Equal(t, time.Minute, got[len(got)-1].Limit)
	require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
	require.ErrorIs(t, s.Err(), supervisor.ErrStuck)
	assert.NotContains(t, l.all(), "start 2")
	close(let)
	w.Quiet()
}

func actor(w *rig, s *runtime.Session, name string) session.ActorInfo {
	w.Helper()
	tree := s.Tree(context.Background())
	for _, a := range tree.Actors {
		if a.Name == name {
			return a
		}
	}
	require.Fail(w, "no actor is called "+name, "%v", tree.Actors)
	return session.ActorInfo{}
}

// TestAChildThatDoesNotStart within its limit is killed, which is a failure.
func TestAChildThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		w := inSim(t, seed)
		l, let := &log{}, make(chan struct{})
		child, ref := holding(w, l, supervisor.Child{Name: "recorder", Start: time.Second}, "start", true, let)
		var why *log
		s := w.idle(func(s *runtime.Spec) {
			why = decisions(s)
			s.Options.Supervisors.Session.Intensity = supervisor.Intensity{Max: 1, Window: time.Hour}
		}, child)
		w.tell(ref, "x")
		assert.Equal(t, "starting", actor(w, s, "recorder#1").State)
		assert.GreaterOrEqual(t, actor(w, s, "recorder#1").Depth, 1, "what waits for it")
		require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
		require.ErrorIs(t, s.Err(), supervisor.ErrStart)
		require.ErrorIs(t, s.Err(), supervisor.ErrIntensity)
		assert.Equal(t, []string{"start 1", "start 1 returns: the child is killed", "start 2", "start 2 returns: the child is killed"}, l.all())
		assert.Contains(t, why.all()[0], "it did not start within 1s")
	}
}

// TestCodeOfAChildThatOutlivesItsActor: the next incarnation does not begin before it has
// returned, and fails if that takes too long.
func TestCodeOfAChildThatOutlivesItsActor(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 20, 200) {
		for _, victim := range []string{"recorder#", "s#"} { // the latter takes its children along
			change, arm := killing(victim)
			w := inSim(t, seed, change)
			l, let := &log{}, make(chan struct{})
			child, ref := holding(w, l, supervisor.Child{Name: "recorder"}, "x", false, let)
			s := w.idle(nil, child)
			w.tell(ref, "x")
			w.Pass(time.Second)
			arm()
			s.Tree(t.Context()) // a message for the actor of the session
			w.tell(ref, "y")    // and one for the child
			w.Pass(time.Second)
			assert.Equal(t, []string{"start 1", "x 1"}, l.all(), "seed %d", seed)
			close(let)
			w.Pass(time.Second)
			assert.Equal(t, []string{"start 1", "x 1", "x 1 returns: <nil>", "start 2", "y 2"}, l.all(), "seed %d, %s", seed, victim)
			require.NoError(t, s.Close(t.Context()))
		}
	}
	change, arm := killing("s#")
	w := inSim(t, 1, change)
	l, let := &log{}, make(chan struct{})
	child, ref := holding(w, l, supervisor.Child{Name: "recorder"}, "x", false, let)
	s := w.idle(nil, child)
	w.tell(ref, "x")
	w.Pass(time.Second)
	arm()
	s.Tree(t.Context())
	require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
	require.ErrorIs(t, s.Err(), supervisor.ErrStuck)
	require.ErrorIs(t, s.Err(), supervisor.ErrIntensity)
	close(let)
	w.Quiet()
}

// TestWhatWaitsForAChildIsBounded: messages are refused, and events give way to one record
// that counts them.
func TestWhatWaitsForAChildIsBounded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		w := inSim(t, seed)
		let := make(chan struct{})
		handled, lost, events := 0, 0, 0
		child, ref := session.NewChild(supervisor.Child{Name: "recorder"}, func() session.Behavior[int] {
			return session.Behavior[int]{
				Start: func(ctx context.Context) error { return w.Executor().Await(ctx, let) },
				Event: func(_ context.Context, r session.EventRecord) error {
					if e, ok := r.Event.(*session.EventsLost); ok {
						assert.Equal(t, "s", r.Session)
						assert.False(t, r.At.IsZero())
						lost += e.Count
						return nil
					}
					events++
					return nil
				},
				Handle: func(_ context.Context, n int) error {
					assert.Equal(t, handled, n)
					handled++
					return nil
				},
			}
		})
		var all int
		s := w.idle(func(s *runtime.Spec) { // 3,000 events before the session is opened
			for i := range 3000 {
				s.Warnings = append(s.Warnings, session.Warning{Option: fmt.Sprint(i)})
			}
			s.Options.OnEvent = func(session.EventRecord) { all++ }
		}, child)
		for n := range session.MaxWaiting {
			require.NoError(t, ref.Send(n))
		}
		require.ErrorIs(t, ref.Send(-1), session.ErrChildFull)
		assert.Equal(t, 2*session.MaxWaiting, actor(w, s, "recorder#1").Depth)
		close(let)
		w.Pass(time.Second)
		assert.Equal(t, session.MaxWaiting, handled)
		assert.Equal(t, session.MaxWaiting, events)
		assert.GreaterOrEqual(t, lost, 3000-session.MaxWaiting)
		require.NoError(t, ref.Send(handled))
		before := events + lost
		require.NoError(t, s.Close(t.Context()))
		assert.Greater(t, events+lost, before, "further events came")
	}
}

// TestWhatWaitsAtTheEndIsHandled before the child stops.
func TestWhatWaitsAtTheEndIsHandled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := inSim(t, seed)
		l := &log{}
		child, ref := logging(l, supervisor.Child{Name: "recorder"})
		s := w.idle(nil, child)
		want := []string{"recorder 1 starts"}
		for i := range 20 {
			w.tell(ref, fmt.Sprint(i))
			want = append(want, fmt.Sprintf("recorder 1: %d", i))
		}
		require.NoError(t, s.Close(t.Context()))
		assert.Equal(t, append(want, "recorder 1 stops: <nil>"), l.all(), "seed %d", seed)
	}
}

// TestAChildIsInOneSession at a time, and may be in another one as soon as the first has
// ended.
func TestAChildIsInOneSession(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		l := &log{}
		child, ref := logging(l, supervisor.Child{Name: "recorder"})
		require.ErrorIs(t, ref.Send("early"), session.ErrNoChild)
		first := w.idle(nil, child)
		spec := w.spec(turns())
		spec.Options.Children = []*session.Child{child}
		_, err := w.Open(t.Context(), spec)
		var mistake *session.ConfigError
		require.ErrorAs(t, err, &mistake)
		assert.Equal(t, "Children[recorder]", mistake.Option)
		spec.ID, spec.Options.Children = "s", nil
		other, _ := logging(l, supervisor.Child{Name: "other"})
		spec.Options.Children = []*session.Child{other}
		_, err = w.Open(t.Context(), spec)
		require.ErrorContains(t, err, "is taken in this runtime")
		require.NoError(t, first.Close(t.Context()))
		spec.ID, spec.Options.Children = "t", []*session.Child{child, other}
		second := w.open(spec)
		w.tell(ref, "again")
		require.NoError(t, second.Close(t.Context()))
		assert.Contains(t, l.all(), "recorder 2: again")
		require.ErrorIs(t, ref.Send("late"), session.ErrNoChild)
	})
}

// TestAChildOfASessionThatCannotStart stops with the reason.
func TestAChildOfASessionThatCannotStart(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	l := &log{}
	child, _ := logging(l, supervisor.Child{Name: "recorder"})
	spec := w.spec(nil)
	spec.Program, spec.Options.Children = nil, []*session.Child{child}
	spec.Options.PathToExecutable = "/no/such/agent"
	_, err := w.Open(t.Context(), spec)
	var start *session.StartError
	require.ErrorAs(t, err, &start)
	last := l.all()[len(l.all())-1]
	assert.True(t, strings.HasPrefix(last, "recorder 1 stops: ") && strings.Contains(last, "/no/such/agent"), last)
}

// TestMistakesInChildren are found before anything starts, all at once.
func TestMistakesInChildren(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	made := func(spec supervisor.Child) *session.Child {
		c, _ := session.NewChild(spec, func() session.Behavior[int] { return session.Behavior[int]{} })
		return c
	}
	empty, _ := session.NewChild[int](supervisor.Child{Name: "empty"}, nil)
	spec := w.spec(turns())
	spec.Options.Children = []*session.Child{
		nil, {}, empty, made(supervisor.Child{}), made(supervisor.Child{Name: "router"}), made(supervisor.Child{Name: "a/b#1"}),
		made(supervisor.Child{Name: "x", Class: 9}), made(supervisor.Child{Name: "x", Significant: true}),
		made(supervisor.Child{Name: "y", Start: -1, Shutdown: -2, Kill: -1}),
	}
	_, err := w.Open(t.Context(), spec)
	for _, want := range []string{
		"Children[0]", "Children[1]", "Children[2]", "is nil or has no behaviour", "the name of child 0 is empty", "has the name router of an actor of Troupe",
		`has the name "a/b#1", which contains / or #`, "Children[x]", "unknown class 9", "the name is taken by an earlier child",
		"a permanent child cannot be significant", "Children[y]", "the start deadline is -1ns", "the shutdown deadline", "the kill deadline",
	} {
		require.ErrorContains(t, err, want)
	}
	for _, m := range err.(interface{ Unwrap() []error }).Unwrap() {
		var mistake *session.ConfigError
		require.ErrorAs(t, m, &mistake)
		assert.NotEmpty(t, mistake.Fix, mistake)
	}
}

// TestAChildThatIsStoppedWhileItWaits for the code of the incarnation before begins nothing,
// and ends with that code.
func TestAChildThatIsStoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, listens := range []bool{true, false} {
		for seed := range uint64(10) {
			change, arm := killing("recorder#")
			w := inSim(t, seed, change)
			l, let := &log{}, make(chan struct{})
			child, ref := holding(w, l, supervisor.Child{Name: "recorder", Shutdown: time.Hour, Kill: time.Hour}, "x", listens, let)
			s := w.idle(nil, child)
			w.tell(ref, "x")
			w.Pass(time.Second)
			arm()
			w.tell(ref, "y") // the actor dies of it
			w.Pass(time.Second)
			if listens { // its context ended with the actor
				assert.Equal(t, []string{"start 1", "x 1", "x 1 returns: the child has ended", "start 2", "y 2"}, l.all())
				require.NoError(t, s.Close(t.Context()))
				continue
			}
			closed := w.Task(func() { assert.NoError(t, s.Close(t.Context())) })
			w.Pass(time.Minute)
			assert.Equal(t, "stopping", actor(w, s, "recorder#2").State)
			close(let)
			closed()
			assert.Equal(t, []string{"start 1", "x 1", "x 1 returns: <nil>"}, l.all(), "seed %d", seed)
		}
	}
}

// TestWhatWaitsStaysInARestart: a child that is restarted with a sibling handles nothing
// more, and the next incarnation does.
func TestWhatWaitsStaysInARestart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		w := inSim(t, seed)
		l, let := &log{}, make(chan struct{})
		bad, toBad := logging(&log{}, supervisor.Child{Name: "bad"})
		held, toHeld := holding(w, l, supervisor.Child{Name: "held"}, "x", false, let)
		s := w.idle(func(s *runtime.Spec) { s.Options.Supervisors.Session.Strategy = supervisor.RestForOne }, bad, held)
		w.tell(toHeld, "x", "y")
		w.Pass(time.Second)
		w.tell(toBad, "bad")
		w.Pass(time.Second)
		close(let)
		w.Pass(time.Second)
		assert.Equal(t, []string{"start 1", "x 1", "x 1 returns: <nil>", "stop 1", "start 2", "y 2"}, l.all(), "seed %d", seed)
		require.NoError(t, s.Close(t.Context()))
	}
}

// TestLostEventsHaveTheirPlace before the next one that had room.
func TestLostEventsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	few, rest := make(chan struct{}), make(chan struct{})
	var got []session.Event
	child, _ := session.NewChild(supervisor.Child{Name: "recorder"}, func() session.Behavior[int] {
		return session.Behavior[int]{Event: func(ctx context.Context, r session.EventRecord) error {
			got = append(got, r.Event)
			switch len(got) {
			case 1:
				return w.Executor().Await(ctx, few)
			case 10:
				return w.Executor().Await(ctx, rest)
			}
			return nil
		}}
	})
	s := w.idle(func(s *runtime.Spec) {
		for i := range 3000 {
			s.Warnings = append(s.Warnings, session.Warning{Option: fmt.Sprint(i)})
		}
	}, child)
	close(few)
	w.Pass(time.Second)
	require.Len(t, got, 10)
	w.send(s, "go")
	w.Pass(time.Second)
	close(rest)
	w.Pass(time.Second)
	require.Greater(t, len(got), session.MaxWaiting+1)
	assert.IsType(t, &session.EventsLost{}, got[session.MaxWaiting])
	assert.IsType(t, &session.StateChanged{}, got[session.MaxWaiting+1])
	require.NoError(t, s.Close(t.Context()))
}

// TestAChildThatKeepsUp loses nothing, however many events and messages come in its life.
func TestAChildThatKeepsUp(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	var got, want []session.Event
	handled := 0
	child, ref := session.NewChild(supervisor.Child{Name: "recorder"}, func() session.Behavior[int] {
		return session.Behavior[int]{
			Event:  func(_ context.Context, r session.EventRecord) error { got = append(got, r.Event); return nil },
			Handle: func(context.Context, int) error { handled++; return nil },
		}
	})
	spec := w.spec(&scripted.Script{Default: scripted.Steps{scripted.Text("done")}})
	spec.ID, spec.Options.Children = "s", []*session.Child{child}
	spec.Options.OnEvent = func(r session.EventRecord) { want = append(want, r.Event) }
	s := w.open(spec)
	for n := 0; len(want) < 2*session.MaxWaiting; n++ {
		require.Less(t, n, 2*session.MaxWaiting)
		_, err := w.send(s, "go").Result(context.Background())
		require.NoError(t, err)
		require.NoError(t, ref.Send(n))
		require.NoError(t, ref.Send(n))
		require.NoError(t, ref.Send(n))
		w.Pass(time.Second)
		require.Equal(t, 3*(n+1), handled)
	}
	assert.Equal(t, want, got)
	assert.Greater(t, handled, session.MaxWaiting)
	assert.Zero(t, actor(w, s, "recorder#1").Depth)
	require.NoError(t, s.Close(t.Context()))
}

// TestTheEndOfASignificantChildIsFinal: the session actor dies once the actors are gone for good,
// and before it has seen the end of the process. The next one does not start them again.
func TestTheEndOfASignificantChildIsFinal(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 6, 20) {
		armed := false
		w := inSim(t, seed, func(c *kernel.Config) {
			c.Chaos = func(actor string, m any, at kernel.Moment) bool {
				_, linked := m.(machine.Linked)
				dies := armed && linked && at == kernel.BeforeMessage
				armed = armed && !dies
				return dies
			}
		})
		starts := map[string]int{}
		child := func(spec supervisor.Child, handle func(context.Context, string) error) (*session.Child, *session.Ref[string]) {
			return session.NewChild(spec, func() session.Behavior[string] {
				return session.Behavior[string]{
					Start:  func(context.Context) error { starts[spec.Name]++; return nil },
					Handle: handle,
				}
			})
		}
		done := func(context.Context, string) error { return session.ErrChildDone }
		helper, _ := child(supervisor.Child{Name: "helper"}, done)
		boss, ref := child(supervisor.Child{Name: "boss", Class: supervisor.Transient, Significant: true}, done)
		s := w.idle(nil, helper, boss)
		w.Pass(time.Second)
		armed = true
		w.tell(ref, "end")
		require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
		require.False(t, armed, "the session actor died")
		require.ErrorIs(t, s.Err(), supervisor.ErrSignificant)
		assert.Equal(t, map[string]int{"helper": 1, "boss": 1}, starts)
		w.Finish()
	}
}
