package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// log is what children did, in order.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.lines...)
}

var errBad = errors.New("bad message")

// logging is a child that logs what it does. The message "bad" is an error, "panic" a panic,
// "exit" the end of its goroutine, "done" its normal end.
func logging(l *log, spec supervisor.Child) (*session.Child, *session.Ref[string]) {
	lives := 0
	return session.NewChild(spec, func() session.Behavior[string] {
		lives++
		name := fmt.Sprintf("%s %d", spec.Name, lives)
		return session.Behavior[string]{
			Start: func(context.Context) error { l.add("%s starts", name); return nil },
			Handle: func(_ context.Context, m string) error {
				l.add("%s: %s", name, m)
				switch m {
				case "bad":
					return errBad
				case "panic":
					panic("oh")
				case "exit":
					goruntime.Goexit()
				case "done":
					return session.ErrChildDone
				}
				return nil
			},
			Stop: func(_ context.Context, why error) error { l.add("%s stops: %v", name, why); return nil },
		}
	})
}

// decisions collects what supervisors decided.
func decisions(spec *runtime.Spec) *log {
	l := &log{}
	spec.Options.OnEvent = func(r session.EventRecord) {
		if e, ok := r.Event.(*session.Supervision); ok {
			l.add("%v", e.Decision)
		}
	}
	return l
}

func (w *rig) tell(r *session.Ref[string], all ...string) {
	w.Helper()
	for _, m := range all {
		require.NoError(w, r.Send(m))
	}
}

// idle opens a session that does nothing, with those children.
func (w *rig) idle(change func(*runtime.Spec), children ...*session.Child) *runtime.Session {
	w.Helper()
	spec := w.spec(turns(scripted.Steps{scripted.Delay(time.Hour)}, scripted.Steps{scripted.Text("again")}))
	spec.ID, spec.Options.Children = "s", children
	if change != nil {
		change(&spec)
	}
	return w.open(spec)
}

// TestAChildReceivesTheEvents of its session, the same ones as OnEvent, but for the end.
func TestAChildReceivesTheEvents(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		var got, want log
		stopped := make(chan error, 1)
		child, _ := session.NewChild(supervisor.Child{Name: "recorder"}, func() session.Behavior[string] {
			return session.Behavior[string]{
				Event: func(_ context.Context, r session.EventRecord) error {
					got.add("%s %v %v", r.Session, r.At, r.Event)
					return nil
				},
				Stop: func(_ context.Context, why error) error { stopped <- why; return nil },
			}
		})
		spec := w.spec(turns(scripted.Steps{gate(), scripted.Text("done")}))
		spec.Options.CanUseTool, spec.Options.Children = allow, []*session.Child{child}
		spec.Warnings = []session.Warning{{Option: "X", Problem: "is odd"}}
		spec.Options.OnEvent = func(r session.EventRecord) {
			_, ended := r.Event.(*session.Ended)
			if e, ok := r.Event.(*session.StateChanged); !ended && !(ok && e.To == "closed") {
				want.add("%s %v %v", r.Session, r.At, r.Event)
			}
		}
		s := w.open(spec)
		_, err := w.send(s, "go").Result(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, <-stopped)
		require.NoError(t, w.Shutdown(t.Context()))
		w.Quiet()
		if len(want.all()) < len(got.all()) { // the last ones are on their way to OnEvent
			assert.Eventually(t, func() bool { return len(want.all()) >= len(got.all()) }, patience, time.Millisecond)
		}
		assert.ElementsMatch(t, want.all(), got.all())
		assert.Contains(t, got.all()[0], "is odd")
	})
}

// TestAChildUsesTheSession from its functions, also to interrupt and to close it: nothing
// waits for the child but the end of the session.
func TestAChildUsesTheSession(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		type order struct {
			what string
			err  chan error
		}
		child, ref := session.NewChild(supervisor.Child{Name: "boss"}, func() session.Behavior[order] {
			return session.Behavior[order]{
				Start: func(ctx context.Context) error {
					if runtime.SessionOf(ctx) == nil {
						return errors.New("no session")
					}
					return nil
				},
				Handle: func(ctx context.Context, o order) error {
					s := runtime.SessionOf(ctx)
					if o.what == "interrupt" {
						o.err <- s.Call(ctx, &protocol.InterruptRequest{}, nil, 0)
						return nil
					}
					o.err <- s.Close(ctx)
					return nil
				},
			}
		})
		s := w.idle(nil, child)
		turn := w.send(s, "go")
		results := make(chan error, 2)
		require.NoError(t, ref.Send(order{"interrupt", results}))
		_, err := turn.Result(t.Context())
		require.NoError(t, err, "the interrupt ends the turn")
		require.NoError(t, ref.Send(order{"close", results}))
		require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
		require.NoError(t, s.Err())
		require.NoError(t, <-results)
		require.NoError(t, <-results)
		assert.Nil(t, runtime.SessionOf(t.Context()))
	})
}

// TestAChildThatFails is started again, alone, with what waited; what it failed on is not
// handled again. Decisions are events with their reasons.
func TestAChildThatFails(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"bad", "panic"} {
		for seed := range uint64(10) {
			w := inSim(t, seed)
			l := &log{}
			child, ref := logging(l, supervisor.Child{Name: "recorder"})
			other, _ := logging(l, supervisor.Child{Name: "other"})
			var why *log
			s := w.idle(func(s *runtime.Spec) { why = decisions(s) }, child, other)
			w.tell(ref, "a", bad, "b")
			w.Pass(time.Minute)
			assert.Equal(t, []string{"recorder 1: a", "recorder 1: " + bad, "recorder 2 starts", "recorder 2: b"}, starting(l.all(), "recorder")[1:])
			assert.Equal(t, []string{"other 1 starts"}, starting(l.all(), "other"), "one_for_one")
			assert.Equal(t, []string{"s#1", "transport#1", "router#1", "recorder#2", "other#1"}, names(s.Tree(t.Context()).Actors))
			require.Len(t, why.all(), 3)
			reason := map[string]string{"bad": "bad message", "panic": "child recorder Handle: oh"}[bad]
			assert.Contains(t, why.all()[0], "recorder#1 failed: ")
			assert.Contains(t, why.all()[0], reason)
			assert.Contains(t, why.all()[1], "restart of recorder in")
			assert.Contains(t, why.all()[1], reason)
			assert.Contains(t, why.all()[2], "restarted recorder")
			require.NoError(t, s.Close(t.Context()))
			assert.Equal(t, "recorder 2 stops: <nil>", l.all()[len(l.all())-1])
		}
	}
}

// TestAChildThatEndsItsGoroutine has failed like any other.
func TestAChildThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	w := inProduction(t)
	l := &log{}
	child, ref := logging(l, supervisor.Child{Name: "recorder", Class: supervisor.Temporary, Significant: true})
	s := w.idle(nil, child)
	w.tell(ref, "exit")
	w.Await(s.Done())
	require.ErrorContains(t, s.Err(), "runtime.Goexit")
}

func starting(all []string, with string) []string {
	var some []string
	for _, s := range all {
		if strings.HasPrefix(s, with) {
			some = append(some, s)
		}
	}
	return some
}

// TestAChildTakesPartInTheStrategy: what the strategy restarts with it stops in order before,
// in reverse order, and keeps what waits for it. The agent does not notice.
func TestAChildTakesPartInTheStrategy(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[supervisor.Standard]struct {
		did    []string
		actors []string
	}{
		supervisor.OneForOne: {
			[]string{"b 1: bad", "c 1: kept", "b 2 starts"},
			[]string{"s#1", "transport#1", "router#1", "a#1", "b#2", "c#1"},
		},
		supervisor.RestForOne: {
			[]string{"b 1: bad", "c 1: kept", "c 1 stops: " + session.ErrChildRestarts.Error(), "b 2 starts", "c 2 starts"},
			[]string{"s#1", "transport#1", "router#1", "a#1", "b#2", "c#2"},
		},
		supervisor.OneForAll: {
			[]string{
				"b 1: bad", "c 1: kept", "c 1 stops: " + session.ErrChildRestarts.Error(), "a 1 stops: " + session.ErrChildRestarts.Error(),
				"a 2 starts", "b 2 starts", "c 2 starts",
			},
			[]string{"s#1", "transport#2", "router#2", "a#2", "b#2", "c#2"},
		},
	} {
		for seed := range uint64(10) {
			w := inSim(t, seed)
			l := &log{}
			a, _ := logging(l, supervisor.Child{Name: "a"})
			b, toB := logging(l, supervisor.Child{Name: "b"})
			c, toC := logging(l, supervisor.Child{Name: "c"})
			s := w.idle(func(s *runtime.Spec) { s.Options.Supervisors.Session.Strategy = strategy }, a, b, c)
			turn := w.send(s, "go")
			w.Pass(time.Second)
			w.tell(toC, "kept")
			w.tell(toB, "bad")
			w.Pass(time.Minute)
			assert.ElementsMatch(t, want.did, l.all()[3:], "%v, seed %d", strategy, seed)
			assert.Equal(t, want.actors, names(s.Tree(t.Context()).Actors), "%v, seed %d", strategy, seed)
			_, err := turn.Result(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Close(t.Context()))
		}
	}
}

// TestAChildOfAnotherClass is not started again, and its end may end the session.
func TestAChildOfAnotherClass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec    supervisor.Child
		message string
		lives   int
		ends    bool
		refused bool // later messages
		event   string
	}{
		"permanent, done":              {supervisor.Child{}, "done", 2, false, false, "restarted child"},
		"transient, done":              {supervisor.Child{Class: supervisor.Transient}, "done", 1, false, false, ""},
		"transient, bad":               {supervisor.Child{Class: supervisor.Transient}, "bad", 2, false, false, "restarted child"},
		"temporary, bad":               {supervisor.Child{Class: supervisor.Temporary}, "bad", 1, false, true, "child#1 is not restarted (it is temporary): bad message"},
		"significant transient, done":  {supervisor.Child{Class: supervisor.Transient, Significant: true}, "done", 1, true, true, ""},
		"significant transient, bad":   {supervisor.Child{Class: supervisor.Transient, Significant: true}, "bad", 2, false, false, "restarted child"},
		"significant temporary, panic": {supervisor.Child{Class: supervisor.Temporary, Significant: true}, "panic", 1, true, true, "child#1 failed"},
	} {
		w := inSim(t, 1)
		l := &log{}
		c.spec.Name = "child"
		child, ref := logging(l, c.spec)
		var why *log
		s := w.idle(func(s *runtime.Spec) { why = decisions(s) }, child)
		w.tell(ref, c.message)
		w.Pass(time.Minute)
		assert.Contains(t, strings.Join(why.all(), "\n"), c.event, name)
		err := ref.Send("late")
		if c.refused {
			require.ErrorIs(t, err, session.ErrNoChild, name)
		} else {
			require.NoError(t, err, name)
		}
		if c.ends {
			require.ErrorIs(t, s.Err(), supervisor.ErrSignificant, name)
			assert.Equal(t, session.StateFailed, s.State())
		}
		require.NoError(t, s.Close(t.Context()))
		lives := 0
		for _, line := range l.all() {
			if strings.HasSuffix(line, "starts") {
				lives++
			}
		}
		assert.Equal(t, c.lives, lives, name)
	}
}

// TestAChildEscalates as the user's strategy says: the session fails with the child's error
// and the strategy's reason.
func TestAChildEscalates(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		w := inSim(t, seed)
		l := &log{}
		child, ref := logging(l, supervisor.Child{Name: "recorder"})
		other, _ := logging(l, supervisor.Child{Name: "other"})
		var why *log
		s := w.idle(func(s *runtime.Spec) {
			why = decisions(s)
			s.Options.Supervisors.Session.Strategy = strategy(func(f supervisor.Failed) supervisor.Decision {
				if errors.Is(f.Reason, errBad) {
					return supervisor.Decision{Escalate: true, Why: "the record is incomplete"}
				}
				return supervisor.Decision{Restart: []string{f.Child}}
			})
		}, child, other)
		turn := w.send(s, "go")
		w.tell(ref, "panic", "bad")
		_, err := turn.Result(t.Context())
		require.ErrorIs(t, err, errBad)
		require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
		var failure *supervisor.Failure
		require.ErrorAs(t, s.Err(), &failure)
		assert.Equal(t, "recorder", failure.Child)
		assert.Equal(t, "the record is incomplete", failure.Why)
		require.ErrorIs(t, s.Err(), errBad)
		require.ErrorContains(t, failure.Earlier[0].Reason, "oh")
		assert.Contains(t, strings.Join(l.all(), "\n"), "other 1 stops: supervisor s gave up (the record is incomplete)")
		w.Quiet()
		assert.Contains(t, strings.Join(why.all(), "\n"), "escalated: supervisor s gave up (the record is incomplete)")
	}
}
