package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// launches notes the arguments of each process that a program runs as.
type launches struct {
	agent.Program
	args *[][]string
}

func (p launches) Serve(l agent.Launch, port agent.Port) agent.Exit {
	*p.args = append(*p.args, l.Args)
	return p.Program.Serve(l, port)
}

// outlive sends three prompts to a session whose agent dies at a line of its first
// process, and reads everything.
func outlive(w *world, die scripted.Die, restarts int) (turns []error, args [][]string, err error) {
	ctx := context.Background()
	script := gated("count")
	script.Turns = append(script.Turns, scripted.Turn{Steps: scripted.Steps{scripted.Text("again")}})
	script.Default = scripted.Steps{scripted.Text("more")}
	die.Only = "fresh"
	script.Misbehave.Die = &die
	spec := w.Gated(script)
	spec.Program = launches{spec.Program, &args}
	spec.Options.MaxRestarts = restarts
	s, err := w.Open(ctx, spec)
	if err != nil {
		return nil, args, err
	}
	r, err := s.Read()
	if err != nil {
		return nil, args, err
	}
	read := w.Task(func() {
		defer r.Close()
		for {
			m, err := r.Next(ctx)
			if err != nil {
				return
			}
			w.Note("saw %T", m)
		}
	})
	for _, prompt := range []string{"go", "on", "more"} {
		turn, err := s.Send(ctx, &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(prompt)}})
		if err == nil {
			_, err = turn.Result(ctx)
		}
		turns = append(turns, err)
	}
	err = s.Close(ctx)
	read()
	return turns, args, err
}

// TestASessionOutlivesItsAgent: the agent dies after each of its lines. Messages that
// it had got end with the reason, everything else has its result, no gate opens, and
// the next process takes up the session.
func TestASessionOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	resumed := 0
	for seed := range sim.Seeds(t, 4, 40) {
		died := 0
		for n := 1; ; n++ {
			die := scripted.Die{Lines: n, Code: 3}
			where := fmt.Sprintf("seed %d, %+v", seed, die)
			w := newWorld(t, seed)
			turns, args, err := outlive(w, die, 1)
			w.Finish()
			w.FailClosed(where)
			if len(args) == 1 && !slices.ContainsFunc(turns, func(err error) bool { return err != nil }) {
				require.NoError(t, err, where)
				break // it was never reached
			}
			died++
			if len(args) == 1 { // it was not ready
				require.ErrorAs(t, errors.Join(append(turns, err)...), new(*session.ExitError), where)
				continue
			}
			require.Len(t, args, 2, where)
			if !slices.ContainsFunc(args[1], func(a string) bool { return strings.HasPrefix(a, "--resume") }) {
				continue // it had told no session, so the next process begins one, and dies as well
			}
			resumed++
			failed := 0
			for _, e := range turns {
				if e != nil {
					failed++
					require.ErrorAs(t, e, new(*session.ExitError), where)
				}
			}
			require.LessOrEqual(t, failed, 1, "%s: %v", where, turns)
			require.NoError(t, err, where)
		}
		require.Greater(t, died, 15, "seed %d", seed)
	}
	assert.Positive(t, resumed, "the agent had told its session")
}

// TestRestartsAreCounted: an agent that dies again and again ends the session.
func TestRestartsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	script := gated("count")
	script.Misbehave.Die = &scripted.Die{Lines: 7, Code: 3}
	var args [][]string
	spec := w.Gated(script)
	spec.Program = launches{spec.Program, &args}
	spec.Options.MaxRestarts = 2
	s, err := w.Open(t.Context(), spec)
	require.NoError(t, err)
	for range 4 {
		turn, err := s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
		if err == nil {
			_, err = turn.Result(t.Context())
		}
		require.ErrorAs(t, err, new(*session.ExitError))
	}
	require.ErrorAs(t, s.Err(), new(*session.ExitError))
	require.Len(t, args, 3, "the first, and two more")
	for _, a := range args[1:] {
		assert.True(t, slices.ContainsFunc(a, func(a string) bool { return strings.HasPrefix(a, "--resume") }), "each takes up the session: %q", a)
	}
	w.Finish()
}

// TestKillDuringRecovery kills any actor at any message of a session whose agent dies
// in its first turn: at most that turn is lost.
func TestKillDuringRecovery(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 1, 400) {
		die := scripted.Die{Lines: 6, Signal: "KILL"}
		calm := newWorld(t, seed)
		_, args, err := outlive(calm, die, 1)
		require.NoError(t, err)
		require.Len(t, args, 2)
		calm.Finish()
		for n, what := range calm.Handled() {
			if sim.Skips(seed, n) {
				continue
			}
			for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
				where := fmt.Sprintf("seed %d, killed %v message %d (%s)", seed, at, n, what)
				struck := false
				w := newWorld(t, seed, strike(n, at, &struck))
				turns, _, err := outlive(w, die, 1)
				w.Finish()
				require.NoError(t, err, where)
				require.Len(t, turns, 3)
				require.NoError(t, errors.Join(turns[1:]...), where)
				w.FailClosed(where)
			}
		}
	}
}
