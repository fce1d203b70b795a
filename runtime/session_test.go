package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// texts reads a turn to its end and returns what the agent said.
func texts(t *testing.T, turn *runtime.Turn) []string {
	t.Helper()
	var said []string
	for m, err := range turn.Messages(context.Background()) {
		require.NoError(t, err)
		if _, ok := m.(*protocol.AssistantMessage); ok {
			said = append(said, protocol.TextOf(m))
		}
	}
	return said
}

func TestTurnsFollowEachOther(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		s := w.open(w.spec(turns(scripted.Steps{scripted.Text("a"), scripted.Text("b")}, scripted.Steps{scripted.Text("c")}, scripted.Steps{scripted.Text("d")})))
		first, second, third := w.send(s, "1"), w.send(s, "2"), w.send(s, "3")
		assert.Equal(t, []string{"a", "b"}, texts(t, first))
		assert.Equal(t, []string{"c"}, texts(t, second))
		r, err := third.Result(context.Background())
		require.NoError(t, err)
		assert.Equal(t, "d", r.Result)
		assert.Empty(t, texts(t, third), "Result has read and dropped them")
		require.NoError(t, s.AwaitIdle(context.Background()))
		assert.NotEmpty(t, s.AgentSessionID())
		assert.NotEqual(t, first.UUID(), second.UUID())
	})
}

func TestTheStreamHasOneReader(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		s := w.open(w.spec(turns(scripted.Steps{scripted.Text("a")})))
		r, err := s.Read()
		require.NoError(t, err)
		turn := w.send(s, "go")
		_, err = s.Read()
		require.ErrorIs(t, err, session.ErrBusy)
		for _, err := range turn.Messages(context.Background()) {
			require.ErrorIs(t, err, session.ErrBusy)
		}
		for _, err := range s.Messages(context.Background()) {
			require.ErrorIs(t, err, session.ErrBusy)
		}
		result, err := turn.Result(context.Background())
		require.NoError(t, err, "it needs no messages")
		assert.Equal(t, "a", result.Result)

		m, err := r.Next(context.Background())
		require.NoError(t, err)
		assert.NotEmpty(t, m.Raw())
		r.Close()
		assert.Equal(t, []string{"a"}, texts(t, turn), "what was not read stays")
	})
}

func TestAReaderSeesTheEnd(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	s := w.open(w.spec(turns()))
	r, err := s.Read()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	wait := w.Task(func() { assert.NoError(t, s.Close(context.Background())) })
	_, err = r.Next(t.Context())
	require.EqualError(t, err, "EOF")
	wait()
	r.Close()
}

func TestWaitingForAResultEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	s := w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Hour)})))
	turn := w.send(s, "go")
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.Sched.AfterFunc(time.Second, func() { cancel(enough) })
	_, err := turn.Result(ctx)
	require.ErrorIs(t, err, enough)
	require.ErrorIs(t, s.AwaitIdle(ctx), enough)
}

// TestInterruptFromInsideTheLoop interrupts from the loop that consumes a
// session, while the agent has more to say than the soft bound holds.
func TestInterruptFromInsideTheLoop(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		w := inSim(t, seed)
		spec := w.spec(turns(scripted.Steps{scripted.Text("first"), &scripted.Flood{Count: 100, Size: 1000}, scripted.Delay(time.Hour)}))
		spec.Options.Limits = session.Limits{Messages: 8, Bytes: 4 << 10, HardBytes: 64 << 10}
		partials := true
		spec.Options.IncludePartialMessages = partials
		s := w.open(spec)
		turn := w.send(s, "go")
		interrupted := false
		for m, err := range turn.Messages(t.Context()) {
			require.NoError(t, err)
			if protocol.TextOf(m) == "first" && !interrupted {
				interrupted = true
				var receipt struct {
					StillQueued []string `json:"still_queued"`
				}
				require.NoError(t, s.Call(t.Context(), &protocol.InterruptRequest{}, &receipt, 0), "seed %d", seed)
			}
		}
		require.True(t, interrupted)
		r, err := turn.Result(t.Context())
		require.NoError(t, err)
		assert.True(t, r.IsError)
		assert.Less(t, w.Sched.Now().Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), time.Minute)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	script := turns()
	script.Misbehave = scripted.Misbehaviour{Ignore: []string{"set_model"}, Refuse: []string{"set_permission_mode"}}
	inBoth(t, func(t *testing.T, w *rig) {
		s := w.open(w.spec(script))
		ctx := context.Background()
		model := "m"
		err := s.Call(ctx, &protocol.SetModelRequest{Model: &model}, nil, 50*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "control request set_model: no answer within 50ms (set by the caller)")

		err = s.Call(ctx, &protocol.SetPermissionModeRequest{Mode: "plan"}, nil, 0)
		var refusal *session.ControlError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, "refused", refusal.Code)

		var receipt struct {
			StillQueued []string `json:"still_queued"`
		}
		require.NoError(t, s.Call(ctx, &protocol.InterruptRequest{}, &receipt, 0))
		assert.Empty(t, receipt.StillQueued)
		var wrong []string
		require.Error(t, s.Call(ctx, &protocol.InterruptRequest{}, &wrong, 0))

		gone, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, s.Call(gone, &protocol.SetModelRequest{Model: &model}, nil, -1), context.Canceled)
		assert.Empty(t, s.Tree(ctx).Waits, "nothing is left open")
	})
}

func TestACallThatTheAgentCannotServe(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	spec.Dialect = needy{spec.Dialect}
	s := w.open(spec)
	err := s.Call(t.Context(), &protocol.InterruptRequest{}, nil, 0)
	var missing *session.UnsupportedCapabilityError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "telepathy_v1", missing.Capability)
}

// needy is a dialect whose every request needs a capability that no agent has.
type needy struct{ dialect.Dialect }

func (needy) Capability(protocol.HostRequest) string { return "telepathy_v1" }

func TestMessagesThatCannotBeSent(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	s := w.open(w.spec(turns(scripted.Steps{scripted.Text("a")})))
	large := w.send(s, strings.Repeat("x", 33<<20))
	_, err := large.Result(t.Context())
	require.ErrorIs(t, err, session.ErrTooLarge)
	require.ErrorContains(t, err, large.UUID())
	turn := w.send(s, "go")
	_, err = s.Send(t.Context(), &protocol.UserMessage{Common: protocol.Common{UUID: turn.UUID()}})
	require.ErrorContains(t, err, "already under way")
	assert.Equal(t, []string{"a"}, texts(t, turn), "the session goes on")
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		spec := w.spec(turns(scripted.Steps{&scripted.Flood{Count: 500, Size: 1000}, scripted.Text("done")}))
		spec.Options.Discard, spec.Options.Limits = true, session.Limits{Messages: 4, Bytes: 2 << 10}
		s := w.open(spec)
		r, err := w.send(s, "go").Result(context.Background())
		require.NoError(t, err, "nobody reads, and nobody has to")
		assert.Equal(t, "done", r.Result)
		assert.LessOrEqual(t, s.Tree(context.Background()).UnreadBytes, int64(4<<10), "at most what came last")
	})
}

func TestAConsumerThatNeverComes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		w := inSim(t, seed)
		spec := w.spec(turns(scripted.Steps{scripted.Text("1"), scripted.Text("2"), scripted.Text("3"), scripted.Text("4"), scripted.Text("5")}))
		spec.Options.Limits = session.Limits{Messages: 4, Consumer: time.Minute}
		s := w.open(spec)
		turn := w.send(s, "go")
		w.Pass(time.Second)
		require.Equal(t, session.StateAwaitingConsumer, s.State())
		m := 0
		for _, err := range turn.Messages(t.Context()) { // reads a little, and goes
			require.NoError(t, err)
			if m++; m == 3 {
				break
			}
		}
		start := w.Sched.Now()
		require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
		require.ErrorIs(t, s.Err(), session.ErrConsumerStalled)
		require.ErrorIs(t, s.Err(), context.DeadlineExceeded)
		require.ErrorContains(t, s.Err(), "Limits.Consumer")
		assert.InDelta(t, time.Minute, w.Sched.Now().Sub(start), float64(20*time.Second))
		assert.Equal(t, session.StateFailed, s.State())
	}
}

func TestStatesOfATurn(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	decide := make(chan struct{})
	spec := w.spec(turns(scripted.Steps{scripted.Delay(time.Second), gate(), scripted.Delay(time.Second)}))
	spec.Options.CanUseTool = func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		if err := w.Executor().Await(ctx, decide); err != nil {
			return protocol.PermissionResult{}, err
		}
		return allow(ctx, r)
	}
	var mu sync.Mutex
	var seen []string
	spec.Options.OnEvent = func(e session.EventRecord) {
		mu.Lock()
		defer mu.Unlock()
		if c := e.Event.String(); strings.HasPrefix(c, "state ") {
			seen = append(seen, strings.TrimPrefix(c, "state "))
		}
	}
	s := w.open(spec)
	turn := w.send(s, "go")
	w.Sched.AfterFunc(time.Minute, func() { close(decide) })
	_, err := turn.Result(t.Context())
	require.NoError(t, err)
	w.Pass(time.Second)
	require.NoError(t, s.AwaitIdle(t.Context()))
	require.NoError(t, s.Close(t.Context()))
	w.Pass(0)
	assert.Equal(t, []string{
		"admitting -> starting", "starting -> initializing", "initializing -> ready", "ready -> running",
		"running -> awaiting_host", "awaiting_host -> running", "running -> ready",
		"ready -> closing: closed by the user", "closing -> closed",
	}, seen)
	assert.Len(t, w.Effects(), 1)
}

func TestARequestWithoutACallbackOpensNoGate(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	s := w.open(w.spec(turns(scripted.Steps{
		&scripted.Request{Subtype: "can_use_tool", Fields: map[string]any{"tool_name": "Bash", "input": map[string]any{}}},
		scripted.Delay(time.Hour),
	})))
	w.send(s, "go")
	w.Pass(time.Second)
	assert.Equal(t, session.StateRunning, s.State(), "it was denied at once")
}

func TestWhatTheAgentMayAsk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step scripted.Step
		want string
	}{
		"an elicitation":  {&scripted.Elicitation{Server: "s", Message: "?"}, "decline"},
		"a dialog":        {&scripted.Dialog{Kind: "x"}, "cancelled"},
		"of next week":    {&scripted.Request{Subtype: "of_next_week"}, "Unsupported control request subtype: of_next_week"},
		"many times once": {&scripted.Request{Subtype: "elicitation", ID: "e", Copies: 3}, "decline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inSim(t, 1)
			s := w.open(w.spec(turns(scripted.Steps{c.step, scripted.Text("${answer}")})))
			assert.Contains(t, strings.Join(texts(t, w.send(s, "go")), " "), c.want)
		})
	}
}

func TestWarningsAreTold(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	spec.Options.CanUseTool = allow
	spec.Options.AllowedTools = []string{"Bash"}
	warned := 0
	spec.Options.OnEvent = func(e session.EventRecord) {
		if strings.Contains(e.Event.String(), "Bash") {
			warned++
		}
	}
	s := w.open(spec)
	w.Pass(0)
	require.NotEmpty(t, s.Warnings(), "the rule hides the callback")
	assert.Equal(t, 1, warned)
}

func TestStderrIsTold(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		var mu sync.Mutex
		var lines []string
		spec := w.spec(turns(scripted.Steps{scripted.Stderr("one"), scripted.Stderr("two")}))
		spec.Options.Stderr = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
			panic("a bug of the user's")
		}
		s := w.open(spec)
		_, err := w.send(s, "go").Result(context.Background())
		require.NoError(t, err)
		require.NoError(t, s.Close(context.Background()))
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []string{"one", "two"}, lines)
	})
}
