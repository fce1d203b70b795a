package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

func TestEventsEndWithTheRuntime(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	var seen []string
	wait := w.Task(func() {
		for e := range w.Events(context.Background()) {
			seen = append(seen, e.Session+" "+e.Event.String())
		}
	})
	w.Pass(0)
	spec := w.spec(turns())
	spec.ID = "s"
	require.NoError(t, w.open(spec).Close(t.Context()))
	require.NoError(t, w.Shutdown(t.Context()))
	wait()
	assert.Equal(t, []string{
		"s state admitting -> starting", "s state starting -> initializing", "s state initializing -> ready",
		"s state ready -> closing: closed by the user", "s state closing -> closed", "s session closed",
	}, seen)
	for range w.Events(t.Context()) {
		t.Error("nothing happens any more")
	}
}

func TestEventsOfOneSession(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	mine, other := w.open(w.spec(turns())), w.open(w.spec(turns()))
	var seen []string
	wait := w.Task(func() {
		for e := range mine.Events(context.Background()) {
			assert.Equal(t, mine.ID(), e.Session)
			seen = append(seen, e.Event.String())
		}
	})
	w.Pass(0)
	require.NoError(t, other.Close(t.Context()))
	require.NoError(t, mine.Close(t.Context()))
	wait() // it ends with the session
	assert.Equal(t, []string{"state ready -> closing: closed by the user", "state closing -> closed", "session closed"}, seen)
}

func TestReadingEventsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	w.Sched.AfterFunc(time.Second, cancel)
	for range w.Events(ctx) {
		t.Error("no event")
	}
	s := w.open(w.spec(turns(scripted.Steps{scripted.Stderr("a"), scripted.Stderr("b")})))
	wait := w.Task(func() {
		for range s.Events(context.Background()) {
			break
		}
	})
	w.Pass(0)
	w.send(s, "go")
	wait()
}

func TestAReaderOfEventsThatFallsBehind(t *testing.T) {
	t.Parallel()
	const n = 1500
	steps := make(scripted.Steps, n)
	for i := range steps {
		steps[i] = scripted.Stderr(fmt.Sprint(i))
	}
	w := inSim(t, 1)
	spec := w.spec(turns(steps))
	var handled []string
	go1 := make(chan struct{})
	spec.Options.OnEvent = func(e session.EventRecord) {
		_ = w.Executor().Await(context.Background(), go1)
		if line, ok := e.Event.(*session.StderrLine); ok {
			handled = append(handled, line.Line)
		}
	}
	s := w.open(spec)
	var read []string
	started := false
	wait := w.Task(func() {
		for e := range s.Events(context.Background()) {
			if !started {
				started = true
				_ = w.Executor().Await(context.Background(), go1)
			}
			if line, ok := e.Event.(*session.StderrLine); ok {
				read = append(read, line.Line)
			}
		}
	})
	w.Pass(0)
	_, err := w.send(s, "go").Result(t.Context())
	require.NoError(t, err)
	w.Pass(time.Second)
	close(go1)
	require.NoError(t, s.Close(t.Context()))
	wait()
	for name, got := range map[string][]string{"Events": read, "OnEvent": handled} {
		require.NotEmpty(t, got, name)
		assert.LessOrEqual(t, len(got), 1024, name)
		assert.Greater(t, len(got), 1000, name)
		assert.Equal(t, fmt.Sprint(n-1), got[len(got)-1], "%s: the oldest go", name)
		first := len(got)
		for i, line := range got {
			require.Equal(t, fmt.Sprint(n-first+i), line, name)
		}
	}
}

// TestOnEventRunsOnceAtATime floods a handler from many goroutines, and panics
// in it.
func TestOnEventRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	w := inProduction(t)
	var mu sync.Mutex
	running, most, calls := 0, 0, 0
	spec := w.spec(turns(scripted.Steps{scripted.Stderr("a"), gate(), scripted.Stderr("b"), scripted.Text("x")}))
	spec.Options.CanUseTool = allow
	var s *runtime.Session
	spec.Options.OnEvent = func(session.EventRecord) {
		mu.Lock()
		running++
		most = max(most, running)
		calls++
		mine := s
		mu.Unlock()
		if mine != nil {
			_ = mine.Tree(context.Background()) // it may call the session
		}
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		panic("a bug of the user's")
	}
	opened := w.open(spec)
	mu.Lock()
	s = opened
	mu.Unlock()
	_, err := w.send(opened, "go").Result(t.Context())
	require.NoError(t, err)
	require.NoError(t, opened.Close(t.Context()))
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return running == 0 && calls > 6 }, patience, time.Millisecond)
	mu.Lock() // a last event may still come
	defer mu.Unlock()
	assert.Equal(t, 1, most)
}

func TestACrashIsAnEventOfItsSession(t *testing.T) {
	t.Parallel()
	struck := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, _ kernel.Moment) bool {
			strike := !struck && actor == "router#1"
			struck = struck || strike
			return strike
		}
	})
	spec := w.spec(turns())
	spec.ID = "s"
	var seen []string
	spec.Options.OnEvent = func(e session.EventRecord) {
		assert.Equal(t, "s", e.Session)
		switch e.Event.(type) {
		case *session.ActorFailed, *session.Supervision:
			seen = append(seen, e.Event.String())
		}
	}
	s := w.open(spec)
	require.NoError(t, s.Close(t.Context()))
	w.Pass(0)
	require.NotEmpty(t, seen)
	assert.Contains(t, seen[0], "actor fleet/s#1/router#1 failed: ")
	assert.Contains(t, strings.Join(seen, "\n"), "restart")
}

// records is a slog.Handler that keeps what it is given.
type records struct {
	slog.Handler
	mu    *sync.Mutex
	lines *[]string
}

func (r records) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (r records) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.lines = append(*r.lines, rec.Level.String()+" "+rec.Message)
	return nil
}

func (r records) WithAttrs([]slog.Attr) slog.Handler { return r }
func (r records) WithGroup(string) slog.Handler      { return r }

func TestEventsAreLoggedAtTheirLevels(t *testing.T) {
	t.Parallel()
	var lines []string
	log := slog.New(records{mu: new(sync.Mutex), lines: &lines})
	w := newWorldWith(t, 1, runtime.Config{Logger: log})
	rt, s := w.Runtime, w.Sched
	session, err := rt.Open(t.Context(), runtime.Spec{Dialect: claude.New(), Program: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
		scripted.Raw("not JSON"), &scripted.Exit{Code: 3},
	}}))})
	require.NoError(t, err)
	_, err = session.Send(t.Context(), text("go"))
	require.NoError(t, err)
	require.NoError(t, s.Await(t.Context(), session.Done()))
	require.NoError(t, rt.Shutdown(t.Context()))
	require.Len(t, lines, 2, "nothing below the handler's level: %v", lines)
	assert.Contains(t, lines[0], "WARN noise from the agent")
	assert.Contains(t, lines[1], "ERROR session failed: agent claude ended during a turn: exit code 3")
}

// asking is a log handler that asks the runtime something for each line.
type asking struct {
	slog.Handler
	rt *runtime.Runtime
}

func (a *asking) Handle(ctx context.Context, r slog.Record) error {
	for _, s := range a.rt.Sessions() {
		r.AddAttrs(slog.String("agent", s.AgentSessionID()))
	}
	return a.Handler.Handle(ctx, r)
}

func TestALogHandlerMayAskTheSession(t *testing.T) {
	t.Parallel()
	var lines []string
	h := &asking{Handler: records{mu: new(sync.Mutex), lines: &lines}}
	rt := newWorldWith(t, 1, runtime.Config{Logger: slog.New(h)}).Runtime
	h.rt = rt
	session, err := rt.Open(t.Context(), runtime.Spec{Dialect: claude.New(), Program: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
		scripted.Raw("not JSON"), scripted.Raw(`{"type":"control_response","response":{"subtype":"success","request_id":"nobody"}}`),
	}}))})
	require.NoError(t, err)
	turn, err := session.Send(t.Context(), text("go"))
	require.NoError(t, err)
	_, err = turn.Result(t.Context())
	require.NoError(t, err)
	require.NoError(t, session.Close(t.Context()))
	require.NoError(t, rt.Shutdown(t.Context()))
	assert.NotEmpty(t, lines)
}

// A callback may fail after its session has ended. Ended stays the last event that readers
// of the session get; the log has what comes later.
func TestAFailureAfterTheEndIsLogged(t *testing.T) {
	t.Parallel()
	var lines []string
	w := newWorldWith(t, 1, runtime.Config{Logger: slog.New(records{mu: new(sync.Mutex), lines: &lines})})
	rt, s := w.Runtime, w.Sched
	began, release := make(chan struct{}), make(chan struct{})
	var events, read []string
	rt.Executor().Go(func() {
		for r := range rt.Events(context.Background()) {
			read = append(read, fmt.Sprintf("%T", r.Event))
		}
	})
	sess, err := rt.Open(t.Context(), runtime.Spec{
		Dialect: claude.New(), Program: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Gate: agent.GateAsk},
		}})),
		Options: session.Options{
			OnEvent: func(r session.EventRecord) {
				events = append(events, fmt.Sprintf("%T", r.Event))
				if _, over := r.Event.(*session.Ended); over {
					panic("at the end")
				}
			},
			CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				close(began)
				_ = s.Await(context.Background(), release)
				panic("too late")
			},
		},
	})
	require.NoError(t, err)
	_, err = sess.Send(t.Context(), text("go"))
	require.NoError(t, err)
	require.NoError(t, s.Await(t.Context(), began))
	require.NoError(t, sess.Close(t.Context()))
	close(release)
	require.NoError(t, s.Run(10_000))
	assert.Contains(t, strings.Join(lines, "\n"), "too late")
	assert.Contains(t, strings.Join(lines, "\n"), "at the end")
	assert.Equal(t, "*session.Ended", events[len(events)-1])
	require.NoError(t, rt.Shutdown(t.Context()))
	require.NoError(t, s.Run(10_000))
	require.NotEmpty(t, read)
	assert.Equal(t, "*session.Ended", read[len(read)-1])
}
