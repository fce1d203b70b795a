package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// follower checks the calls of a session.Trace as they come.
type follower struct {
	w        *world
	spec     runtime.Spec
	events   []string // that OnEvent got
	log      []string // all calls of the trace
	told     []string // the events among it
	messages []string // the types of the agent's messages among it
	turns    map[string]int
	written  int
	open     map[string]int // callbacks
	ended    bool
}

// followed is where the contexts of callbacks have what the trace has put there.
type followed struct{}

func follow(w *world, spec runtime.Spec) *follower {
	f := &follower{w: w, spec: spec, turns: map[string]int{}, open: map[string]int{}}
	f.spec.Options.OnEvent = func(r session.EventRecord) { f.events = append(f.events, fmt.Sprint(r)) }
	f.spec.Options.Tracer = func(_ context.Context, s session.TracedSession) *session.Trace {
		require.Equal(w, "claude", s.Backend)
		return f.trace()
	}
	return f
}

func (f *follower) note(format string, args ...any) {
	assert.False(f.w, f.ended, "after Ended: "+format, args)
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *follower) trace() *session.Trace {
	return &session.Trace{
		Event: func(r session.EventRecord) {
			f.note("event %v", r)
			f.told = append(f.told, fmt.Sprint(r))
			if _, ok := r.Event.(*session.Ended); ok {
				f.ended = true
			}
		},
		Sent: func(_ context.Context, at time.Time, m *protocol.UserMessage) {
			f.note("sent %v %s", at, m.UUID)
			f.turns[m.UUID]++
		},
		Written: func(at time.Time, uuid string) {
			f.note("written %v %s", at, uuid)
			assert.Equal(f.w, 1, f.turns[uuid], "written before it was sent, or after it was over")
			f.written++
		},
		Message: func(at time.Time, m protocol.Frame) {
			f.note("message %v %s", at, m.Type)
			f.messages = append(f.messages, m.Type)
		},
		Over: func(at time.Time, t session.TracedTurn) {
			f.note("over %v %v %v", at, t.UUID, t.Err)
			assert.Equal(f.w, 1, f.turns[t.UUID], "over, and not sent")
			f.turns[t.UUID]--
			assert.NotEqual(f.w, t.Result == nil, t.Err == nil)
			if t.Result != nil {
				assert.Equal(f.w, "result", f.messages[len(f.messages)-1], "its result comes first")
			}
		},
		Callback: func(ctx context.Context, c session.TracedCallback) (context.Context, func(session.TracedAnswer)) {
			name := fmt.Sprint(c.Kind, c.ID)
			f.note("callback %v %v %s", c.At, c.Kind, c.Name)
			f.open[name]++
			over := false
			return context.WithValue(ctx, followed{}, name), func(a session.TracedAnswer) {
				assert.False(f.w, over, "two ends of %s", name)
				over = true
				f.open[name]--
				f.note("answered %v %v: %s %v", a.At, c.Name, a.Response, a.Err != nil)
			}
		},
	}
}

// check is for the end of the session.
func (f *follower) check(where string) {
	require.True(f.w, f.ended, where)
	require.Equal(f.w, f.events, f.told, where)
	for uuid, n := range f.turns {
		require.Zero(f.w, n, "%s: turn %s", where, uuid)
	}
	for name, n := range f.open {
		require.Zero(f.w, n, "%s: callback %s", where, name)
	}
}

// content are the messages but for those about the agent's state, which depend on time.
func (f *follower) content() []string {
	return slices.DeleteFunc(slices.Clone(f.messages), func(typ string) bool { return typ == "system" })
}

// TestKillWhileFollowed kills each actor at each message and effect: a trace gets each
// turn, message, event and callback once and in order, and each end.
func TestKillWhileFollowed(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 2, 200) {
		calm := newWorld(t, seed)
		f := follow(calm, calm.Gated(gated("effect")))
		require.NoError(t, calm.Play(context.Background(), f.spec, "go", "on"))
		calm.Finish()
		f.check(fmt.Sprint("calm, seed ", seed))
		require.Len(t, f.turns, 2)
		require.GreaterOrEqual(t, f.written, 2)
		require.Len(t, f.open, strings.Count(strings.Join(f.log, "\n"), "callback "))
		require.NotEmpty(t, f.open)
		for n, what := range calm.Handled() {
			if sim.Skips(seed, n) {
				continue
			}
			for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage, kernel.AfterEffect} {
				where := fmt.Sprintf("seed %d, killed %v message %d (%s)", seed, at, n, what)
				struck := false
				w := newWorld(t, seed, strike(n, at, &struck))
				g := follow(w, w.Gated(gated("effect")))
				require.NoError(t, w.Play(context.Background(), g.spec, "go", "on"), where)
				w.Finish()
				require.True(t, struck || at == kernel.AfterEffect, where)
				g.check(where)
				w.Lossless(where)
				require.Equal(t, f.content(), g.content(), where)
			}
		}
	}
}

// TestFollowedHistoryIsTheSame: a trace changes nothing, and gets the same calls in each
// run of a seed.
func TestFollowedHistoryIsTheSame(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 20, 10) {
		var hashes, logs []string
		for i := range 3 {
			w := newWorld(t, seed)
			f := follow(w, w.Gated(gated("effect")))
			if i == 0 {
				f.spec.Options.Tracer = nil
			}
			require.NoError(t, w.Play(context.Background(), f.spec, "go", "on"))
			w.Finish()
			hashes = append(hashes, w.Hash())
			if i > 0 {
				logs = append(logs, strings.Join(f.log, "\n"))
			}
		}
		require.Equal(t, []string{hashes[0], hashes[0], hashes[0]}, hashes, "seed %d", seed)
		require.Equal(t, logs[0], logs[1], "seed %d", seed)
	}
}

// TestFollowADeath: the agent dies after each of its lines, and another process follows.
// Turns and callbacks of the dead process are over once.
func TestFollowADeath(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 2, 200) {
		for line := 1; line < 40; line++ {
			for _, restarts := range []int{0, 1} {
				where := fmt.Sprintf("seed %d, line %d, restarts %d", seed, line, restarts)
				w := newWorld(t, seed)
				script := gated("effect")
				script.Default = scripted.Steps{scripted.Text("more")}
				script.Misbehave.Die = &scripted.Die{Lines: line, Only: "fresh"}
				spec := w.Gated(script)
				spec.Options.MaxRestarts = restarts
				f := follow(w, spec)
				_ = w.Play(context.Background(), f.spec, "go", "on")
				w.Finish()
				if len(f.log) > 0 {
					f.check(where)
				}
			}
		}
	}
}

// TestFollowWhatIsDropped: with Discard a trace still gets each message.
func TestFollowWhatIsDropped(t *testing.T) {
	t.Parallel()
	var all [2][]string
	for i, discard := range []bool{false, true} {
		w := newWorld(t, 1)
		spec := w.Gated(&scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
			scripted.Text("a"), &scripted.ToolUse{Name: "Bash", Gate: agent.GateAsk}, scripted.Text("b"),
		}}}})
		spec.Options.Discard = discard
		f := follow(w, spec)
		s, err := w.Open(context.Background(), f.spec)
		require.NoError(t, err)
		turn, err := s.Send(context.Background(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
		require.NoError(t, err)
		_, err = turn.Result(context.Background())
		require.NoError(t, err)
		require.NoError(t, s.Close(context.Background()))
		w.Finish()
		f.check("")
		all[i] = f.messages
	}
	require.Equal(t, all[0], all[1])
	require.Contains(t, all[0], "assistant")
}
