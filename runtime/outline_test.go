package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// TestTheOutline agrees with the tree in what it has.
func TestTheOutline(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns(scripted.Steps{scripted.Delay(time.Hour), scripted.Text("hi")}, scripted.Steps{gate()}))
	spec.ID, spec.Options.Title, spec.Options.Limits.Stall = "s", "title", -1
	spec.Options.PermissionTimeout = time.Hour
	spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		return protocol.PermissionResult{}, w.Executor().Await(ctx, never)
	}
	s := w.open(spec)
	compare := func(want string) session.Wait {
		rows := w.Outline()
		require.Len(t, rows, 1)
		got, tree := rows[0], s.Tree(t.Context())
		var first session.Wait
		if len(got.Waits) > 0 {
			first = got.Waits[0]
		}
		assert.Equal(t, want, first.What)
		assert.Equal(t, first.Age, got.At.Sub(first.Since)*time.Duration(len(got.Waits)))
		got.Waits, tree.Waits, tree.Actors = nil, nil, []session.ActorInfo{}
		tree.At, tree.CreditMessages, tree.CreditBytes, tree.CreditOwedMessages, tree.CreditOwedBytes = got.At, 0, 0, 0, 0
		assert.Equal(t, tree.TurnSince, got.TurnSince)
		assert.Equal(t, tree, got)
		return first
	}
	compare("")
	began := w.Sched.Now()
	turn := w.send(s, "go")
	w.Pass(time.Minute)
	assert.WithinDuration(t, began, compare("turn running").Since, time.Second)
	_, err := turn.Result(t.Context())
	require.NoError(t, err)
	compare("")
	w.send(s, "ask")
	w.Pass(time.Minute)
	compare("a person")
	assert.Equal(t, 2, w.Outline()[0].Turn)
}

// TestASteeredSession reports who has done what, to all readers under the same number.
func TestASteeredSession(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	spec.ID = "s"
	var got []session.EventRecord
	spec.Options.OnEvent = func(r session.EventRecord) { got = append(got, r) }
	s := w.open(spec)
	first := w.Steered("s", "mira", "interrupt")
	assert.Positive(t, first)
	assert.Greater(t, w.Steered("", "mira", "pause job j"), first, "of no session")
	w.Pass(time.Second)
	require.NotEmpty(t, got)
	assert.Equal(t, &session.Steered{By: "mira", Action: "interrupt"}, got[len(got)-1].Event)
	marks := s.Timeline(t.Context()).Marks
	require.Len(t, marks, 1)
	assert.Equal(t, []string{"steered", "interrupt by mira"}, []string{marks[0].Kind, marks[0].Why})
	require.NoError(t, s.Close(t.Context()))
	assert.Zero(t, w.Steered("s", "mira", "close"), "it has ended")
}

// TestEventsAreNumbered: numbers grow, and the readers of a session and of all have the same ones.
func TestEventsAreNumbered(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns(scripted.Steps{scripted.Text("hi")}))
	spec.ID = "s"
	s := w.open(spec)
	read := func(events func(func(session.EventRecord) bool)) (*[]string, func()) {
		all := new([]string)
		return all, w.Task(func() {
			last := uint64(0)
			for r := range events {
				assert.Greater(t, r.Seq, last)
				last = r.Seq
				*all = append(*all, fmt.Sprint(r.Seq, r.Event))
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	all, overAll := read(w.Events(ctx))
	one, overOne := read(s.Events(ctx))
	w.Pass(time.Second)
	_, err := w.send(s, "go").Result(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	overOne()
	cancel()
	overAll()
	assert.NotEmpty(t, *one)
	assert.Equal(t, *all, *one)
}

// BenchmarkOutline lists 1,000 idle sessions.
func BenchmarkOutline(b *testing.B) {
	w := benchRuntime(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if len(w.Outline()) != 1000 {
			b.Fatal("some are missing")
		}
	}
}

// BenchmarkTree asks 1,000 idle sessions.
func BenchmarkTree(b *testing.B) {
	w := benchRuntime(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if len(w.Tree(b.Context()).Sessions) != 1000 {
			b.Fatal("some are missing")
		}
	}
}

func benchRuntime(b *testing.B, n int) *runtime.Runtime {
	b.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = rt.Shutdown(context.Background()) })
	for range n {
		_, err := rt.Open(b.Context(), runtime.Spec{Dialect: claude.New(), Program: scripted.New(scripted.WithScript(turns()))})
		require.NoError(b, err)
	}
	return rt
}

// TestEventsWhere leaves events out without a wake of the reader, and loses no other because of them.
func TestEventsWhere(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	asked := 0
	var got []string
	wait := w.Task(func() {
		for r := range w.EventsWhere(ctx, func(r *session.EventRecord) bool {
			asked++
			return r.Event.(*session.Steered).By != "noise"
		}) {
			got = append(got, r.Event.(*session.Steered).By)
		}
	})
	w.Pass(time.Second)
	w.Steered("", "first", "a change")
	for range 3000 {
		w.Steered("", "noise", "a change")
	}
	w.Steered("", "last", "a change")
	w.Pass(time.Second)
	assert.Equal(t, []string{"first", "last"}, got)
	assert.Equal(t, 3002, asked)
	stop()
	wait()
}

// TestAFilterThatPanics ends its reader, and nothing else: the session whose end it could not
// take is closed, and its place is free.
func TestAFilterThatPanics(t *testing.T) {
	t.Parallel()
	w := &rig{newWorldWith(t, 1, runtime.Config{Admission: runtime.Admission{MaxSessions: 1}})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reported []*session.CallbackFailed
	w.Executor().Go(func() {
		for r := range w.Events(ctx) {
			if e, ok := r.Event.(*session.CallbackFailed); ok {
				reported = append(reported, e)
			}
		}
	})
	asked, got := 0, 0
	reader := w.Task(func() {
		for range w.EventsWhere(ctx, func(r *session.EventRecord) bool {
			asked++
			switch e := r.Event.(type) {
			case *session.Ended:
				return e.Reason.Error() == "no"
			case *session.Steered:
				return true
			}
			return false
		}) {
			got++
		}
	})
	s := w.open(w.spec(turns()))
	w.Steered("", "first", "a change")
	within, cancel := context.WithCancel(ctx)
	giveUp := w.Sched.AfterFunc(time.Hour, cancel)
	require.NoError(t, s.Close(within))
	giveUp.Stop()
	reader()
	before := asked
	require.NoError(t, w.open(w.spec(turns())).Close(ctx))
	w.Pass(time.Second)
	assert.Equal(t, []int{1, before}, []int{got, asked})
	require.Len(t, reported, 1)
	assert.Equal(t, "EventsWhere", reported[0].Name)
	require.ErrorAs(t, reported[0].Err, new(*session.PanicError))
	stop()
}

// TestTreeOf asks the given sessions alone.
func TestTreeOf(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	var all []*runtime.Session
	for i := range 3 {
		spec := w.spec(turns())
		spec.ID = fmt.Sprint("s", i)
		all = append(all, w.open(spec))
	}
	handled := func() int64 { return all[2].Tree(t.Context()).Actors[0].Handled }
	handled()
	first := handled()
	asks := handled() - first
	before := handled()
	tree := w.TreeOf(t.Context(), all[0], all[1])
	assert.Equal(t, asks, handled()-before)
	require.Len(t, tree.Sessions, 2)
	assert.NotEmpty(t, tree.Sessions[1].Actors)
	assert.Len(t, w.Tree(t.Context()).Sessions, 3)
}
