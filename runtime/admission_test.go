package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Sessions that find no room wait; the place of one is free when it has ended, also if it
// never came up.
func TestSessionsWaitForAPlace(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{Admission: runtime.Admission{MaxSessions: 3}})
	require.NoError(t, err)
	spec := func(s *scripted.Script) runtime.Spec {
		return runtime.Spec{Dialect: claude.New(), Program: scripted.New(scripted.WithScript(s))}
	}
	var all sync.WaitGroup
	for n := range 30 {
		all.Go(func() {
			ctx := runtime.WithAdmission(t.Context(), runtime.AdmissionRequest{Group: fmt.Sprint(n % 3)})
			script := &scripted.Script{}
			if n%5 == 0 {
				script.Misbehave.Initialize.Mode = "refuse"
			}
			s, err := rt.Open(ctx, spec(script))
			assert.LessOrEqual(t, rt.AdmissionStat().Live, 3)
			if n%5 == 0 {
				assert.Error(t, err)
				return
			}
			if assert.NoError(t, err) {
				assert.NoError(t, s.Close(context.Background()))
			}
		})
	}
	all.Wait()
	s := rt.AdmissionStat()
	assert.EqualValues(t, 30, s.Admitted)
	assert.Positive(t, s.Waited)
	assert.Zero(t, s.Live)

	// One that waits when the runtime is shut down is refused, and leaves nothing.
	var held []*runtime.Session
	for range 3 {
		s, err := rt.Open(t.Context(), spec(&scripted.Script{}))
		require.NoError(t, err)
		held = append(held, s)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := rt.Open(context.Background(), spec(&scripted.Script{}))
		refused <- err
	}()
	require.Eventually(t, func() bool { return rt.AdmissionStat().Queued == 1 }, patience, time.Millisecond)
	require.NoError(t, rt.Shutdown(t.Context()))
	require.ErrorIs(t, <-refused, session.ErrShutdown)
	for _, s := range held {
		assert.True(t, s.State().Terminal())
	}
	assert.Empty(t, rt.Sessions())
}

// TestAMeasureThatPanics: the machine counts as full until it can be measured again, and no
// lock stays taken.
func TestAMeasureThatPanics(t *testing.T) {
	t.Parallel()
	broken := false
	w := &rig{newWorldWith(t, 1, runtime.Config{Admission: runtime.Admission{MaxMemory: 1 << 30, MemoryEach: 1, Measure: func() runtime.HostUsage {
		if broken {
			panic("odd")
		}
		return runtime.HostUsage{}
	}}})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var problems []string
	w.Executor().Go(func() {
		for r := range w.Events(ctx) {
			if e, ok := r.Event.(*session.WarningIssued); ok {
				problems = append(problems, e.Problem)
			}
		}
	})
	first := w.open(w.spec(turns()))
	w.Pass(2 * time.Second)
	broken = true
	var second *runtime.Session
	wait := w.Task(func() {
		defer func() { assert.Nil(t, recover()) }()
		second = w.open(w.spec(turns()))
	})
	w.Pass(time.Minute)
	require.Nil(t, second)
	assert.Equal(t, 1, w.AdmissionStat().Queued)
	assert.Equal(t, []string{"the machine counts as full until Admission.Measure returns: panic while handling Admission.Measure: odd"}, problems)
	broken = false
	wait()
	for _, s := range []*runtime.Session{first, second} {
		require.NoError(t, s.Close(ctx))
	}
	stop()
	w.Finish()
}

// TestASessionThatWaitsIsClosed: it gives up its wait, and leaves the queue.
func TestASessionThatWaitsIsClosed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*runtime.Session, context.Context) error{
		"Close": (*runtime.Session).Close, "Kill": (*runtime.Session).Kill,
		"Stop": func(s *runtime.Session, ctx context.Context) error {
			_, err := s.Stop(ctx, session.StopScope{Kill: true})
			return err
		},
	} {
		w := &rig{newWorldWith(t, 1, runtime.Config{Admission: runtime.Admission{MaxSessions: 1}})}
		first := w.open(w.spec(turns()))
		waiting := w.spec(turns())
		waiting.ID = "waiting"
		var err error
		opened := w.Task(func() { _, err = w.Open(t.Context(), waiting) })
		w.Pass(time.Second)
		ended := 0
		for _, s := range w.Sessions() {
			if s.ID() == "waiting" {
				within, cancel := context.WithCancel(t.Context())
				giveUp := w.Sched.AfterFunc(time.Hour, cancel)
				require.NoError(t, end(s, within), name)
				giveUp.Stop()
				ended++
			}
		}
		require.Equal(t, 1, ended)
		opened()
		require.ErrorIs(t, err, session.ErrClosed, name)
		stat := w.AdmissionStat()
		assert.Equal(t, []int{1, 0}, []int{stat.Live, stat.Queued}, name)
		require.NoError(t, first.Close(t.Context()))
		require.NoError(t, w.open(w.spec(turns())).Close(t.Context()))
		w.Finish()
	}
}
