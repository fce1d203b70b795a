package runtime_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

func text(s string) *protocol.UserMessage {
	return &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(s)}}
}

func kinds(ctx context.Context, t *testing.T, turn *runtime.Turn) []string {
	t.Helper()
	var got []string
	for m, err := range turn.Messages(ctx) {
		require.NoError(t, err)
		f, ferr := protocol.ParseFrame(m.Raw())
		require.NoError(t, ferr)
		k := f.Type
		if f.Subtype != "" {
			k += "/" + f.Subtype
		}
		got = append(got, k)
	}
	return got
}

// both runs a test on the production seams and on the seeded scheduler.
func both(t *testing.T, test func(t *testing.T, rt *runtime.Runtime)) {
	t.Helper()
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		rt, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			assert.NoError(t, rt.Shutdown(ctx))
		}()
		test(t, rt)
	})
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(5) {
			s := sim.New(seed)
			rt, err := runtime.New(runtime.Config{Clock: s.Config().AsClock()})
			require.NoError(t, err)
			test(t, rt)
			require.NoError(t, rt.Shutdown(context.Background()), "seed %d", seed)
			require.NoError(t, s.Run(100_000), "seed %d", seed)
			assert.Zero(t, s.Parked(), "seed %d: tasks left waiting", seed)
			s.Close()
		}
	})
}

func TestOneTurn(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, rt *runtime.Runtime) {
		ctx := context.Background()
		s, err := rt.Open(ctx, runtime.Spec{
			Dialect: claude.New(), Program: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{scripted.Text("hello")}})),
		})
		require.NoError(t, err)
		assert.Equal(t, session.StateReady, s.State())
		turn, err := s.Send(ctx, text("hi"))
		require.NoError(t, err)
		assert.Equal(t, []string{"system/init", "assistant", "result/success"}, content(kinds(ctx, t, turn)))
		r, err := turn.Result(ctx)
		require.NoError(t, err)
		assert.Equal(t, "hello", r.Result)
		require.NoError(t, s.AwaitIdle(ctx))
		require.NoError(t, s.Close(ctx))
		assert.Equal(t, session.StateClosed, s.State())
		require.NoError(t, s.Err())
	})
}

// content leaves out frames about state.
func content(all []string) []string {
	var kept []string
	for _, k := range all {
		switch k {
		case "system/session_state_changed", "command_lifecycle":
		default:
			kept = append(kept, k)
		}
	}
	return kept
}

// TestManySessionsAtOnce is about the moments between a spawn and the first
// message, which only real parallelism shows.
func TestManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	program := scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{scripted.Text("hello")}}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s, err := rt.Open(ctx, runtime.Spec{Dialect: claude.New(), Program: program})
				if !assert.NoError(t, err) {
					return
				}
				turn, err := s.Send(ctx, text("hi"))
				if !assert.NoError(t, err) {
					return
				}
				_, err = turn.Result(ctx)
				assert.NoError(t, err)
				assert.NoError(t, s.Close(ctx))
			}
		})
	}
	all.Wait()
	require.NoError(t, rt.Shutdown(ctx))
}

func TestEventsOfASessionThatHasEnded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, rt *runtime.Runtime) {
		ctx := context.Background()
		s, err := rt.Open(ctx, runtime.Spec{Dialect: claude.New(), Program: scripted.New()})
		require.NoError(t, err)
		require.NoError(t, s.Close(ctx))
		for range s.Events(ctx) {
			t.Error("nothing happens any more")
		}
	})
}
