//go:build linux

// Linux: agents are killed and looked up in /proc.

package runtime_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// TestEdgeExitInATurn: an end without a result is an error that has the agent's exit
// and its last output. Earlier output is delivered.
func TestEdgeExitInATurn(t *testing.T) {
	r := newRig(t)
	type death struct {
		script string
		status session.ExitStatus
		check  func(*testing.T, *session.ExitError)
	}
	says := func(text string) func(*testing.T, *session.ExitError) {
		return func(t *testing.T, e *session.ExitError) {
			t.Helper()
			assert.Contains(t, e.StderrTail, text)
			assert.ErrorContains(t, e, text)
		}
	}
	together(t, map[string]death{
		"exit 0":             {"turns: [{steps: [{text: before}, {exit: {}}]}]", session.ExitStatus{}, nil},
		"exit 1 with stderr": {"turns: [{steps: [{text: before}, {stderr: out of disk}, {exit: {code: 1}}]}]", session.ExitStatus{Code: 1}, says("out of disk")},
		"exit 255":           {"turns: [{steps: [{text: before}, {exit: {code: 255}}]}]", session.ExitStatus{Code: 255}, nil},
		"flood of stderr": {"turns: [{steps: [{text: before}, {stderr: last words}, {exit: {code: 1}}]}]\nmisbehave: {stderr: 1MiB}", session.ExitStatus{Code: 1},
			func(t *testing.T, e *session.ExitError) {
				t.Helper()
				assert.True(t, strings.HasSuffix(e.StderrTail, "last words"), e.StderrTail)
				assert.Less(t, len(e.StderrTail), 4<<10, "bounded")
			}},
		"words on stdout": {"turns: [{steps: [{text: before}, {raw: 'panic: oh no'}, {exit: {code: 2}}]}]", session.ExitStatus{Code: 2},
			func(t *testing.T, e *session.ExitError) {
				t.Helper()
				assert.Contains(t, e.StdoutTail, "panic: oh no")
			}},
		"SEGV": {"turns: [{steps: [{text: before}, {exit: {signal: SIGSEGV}}]}]", session.ExitStatus{Code: -1, Signal: "SEGMENTATION FAULT"}, nil},
		"KILL": {"turns: [{steps: [{text: before}, {exit: {signal: KILL}}]}]", session.ExitStatus{Code: -1, Signal: "SIGKILL"}, nil},
	}, func(t *testing.T, c death) {
		ctx := limit(t)
		spec := r.spec(t, c.script)
		spec.Options.Graces.Output = patience // the host reads all of it, on whatever machine
		s, err := r.rt.Open(ctx, spec)
		require.NoError(t, err)
		turn, err := s.Send(ctx, userText("hi"))
		require.NoError(t, err)
		got, err := answers(ctx, s)
		assert.Equal(t, []string{"before"}, got)
		var exit *session.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, c.status, exit.Status)
		assert.Equal(t, "a turn", exit.During)
		if c.check != nil {
			c.check(t, exit)
		}
		_, err = turn.Result(ctx)
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, session.StateFailed, s.State())
		require.ErrorAs(t, s.Err(), &exit)
		_, err = s.Send(ctx, userText("anybody?"))
		require.ErrorAs(t, err, &exit, "later calls say why, too")
	})
}

// TestEdgeExitAfterAnErrorResult: the agent's own words explain its exit code.
func TestEdgeExitAfterAnErrorResult(t *testing.T) {
	r := newRig(t)
	ctx := limit(t)
	spec := r.spec(t, "turns: [{steps: [{result: {is_error: true, text: 'Credit balance is too low'}}]}]\nmisbehave: {die: {at: after-result, code: 1}}")
	spec.Options.Graces.Output = patience
	s, err := r.rt.Open(ctx, spec)
	require.NoError(t, err)
	turn, err := s.Send(ctx, userText("hi"))
	require.NoError(t, err)
	result, err := turn.Result(ctx)
	require.NoError(t, err, "a turn that has its result has it, whatever comes next")
	assert.True(t, result.IsError)
	ended(ctx, t, s)
	var exit *session.ExitError
	require.ErrorAs(t, s.Err(), &exit)
	assert.Contains(t, exit.LastResult, "Credit balance is too low")
}

// gatedYAML is gated for the binary.
const gatedYAML = `turns:
- steps:
  - text: a
  - parallel:
    - tool_use: {id: t0, name: Bash, input: {command: t0}, gate: ask, effect: 'EFFECT', takes: 2ms}
    - tool_use: {id: t1, name: Bash, input: {command: t1}, gate: ask, effect: 'EFFECT', takes: 2ms}
  - text: b
  - tool_use: {id: t2, name: Bash, input: {command: t2}, gate: ask, effect: 'EFFECT', takes: 2ms}
  - text: c
`

// TestEdgeKilledAtEveryLine kills a real agent after each line that it writes.
func TestEdgeKilledAtEveryLine(t *testing.T) {
	r := newRig(t)
	const most = 26 // more than a calm run writes
	cases := make(map[string]int)
	for n := range most {
		if testing.Short() && n%3 != 1 {
			continue // each third, and the last
		}
		cases[fmt.Sprint("line ", n+1)] = n + 1
	}
	var mu sync.Mutex
	lived := 0
	together(t, cases, func(t *testing.T, n int) {
		effect := filepath.Join(t.TempDir(), "effect")
		spec := r.spec(t, strings.ReplaceAll(gatedYAML, "EFFECT", effect)+
			fmt.Sprintf("misbehave: {die: {lines: %d, signal: KILL}, children: [{token: TOKEN, session: true}]}", n))
		allowed := 0
		spec.Options.CanUseTool = func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			mu.Lock()
			defer mu.Unlock()
			allowed++
			return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
		}
		ctx := limit(t)
		var got []string
		var turn *runtime.Turn
		s, err := r.rt.Open(ctx, spec)
		if err == nil {
			turn, err = s.Send(ctx, userText("hi"))
		}
		if err == nil {
			for m, e := range turn.Messages(ctx) {
				if err = e; e == nil && protocol.TextOf(m) != "" {
					got = append(got, protocol.TextOf(m))
				}
			}
		}
		whole := []string{"a", "b", "c", "c"} // the last is the result's
		require.Equal(t, whole[:len(got)], append([]string{}, got...))
		if err == nil {
			require.Equal(t, whole, got)
			result, err := turn.Result(ctx)
			require.NoError(t, err)
			require.Equal(t, "c", result.Result)
			require.NoError(t, s.Close(ctx))
			mu.Lock()
			lived++
			mu.Unlock()
		} else {
			var exit *session.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, "SIGKILL", exit.Status.Signal)
		}
		assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
		ran, err := os.ReadFile(effect)
		if err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
		mu.Lock()
		defer mu.Unlock()
		assert.LessOrEqual(t, strings.Count(string(ran), "\n"), allowed, "fail-closed")
	})
	assert.Positive(t, lived, "the last lines are beyond the end")
	assert.Less(t, lived, (len(cases)+1)/2, "most of the lines are lines")
}

// TestEdgeKilledAtEveryLineInSimulation does the same under any order of
// events, with the messages compared one by one.
func TestEdgeKilledAtEveryLineInSimulation(t *testing.T) {
	t.Parallel()
	deaths := [...]scripted.Die{{Signal: "KILL"}, {}, {Code: 3}}
	for seed := range sim.Seeds(t, 6, 40) {
		died := 0
		for n := 1; ; n++ {
			die := deaths[seed%uint64(len(deaths))]
			die.Lines = n
			where := fmt.Sprintf("seed %d, %+v", seed, die)
			script := gated("count")
			script.Misbehave.Die = &die
			w := newWorld(t, seed)
			err := w.Play(context.Background(), w.Gated(script), "go")
			w.Finish()
			w.Lossless(where)
			w.FailClosed(where)
			for _, e := range append(w.TurnErrors(), err) {
				if e != nil {
					require.ErrorAs(t, e, new(*session.ExitError), where)
				}
			}
			if err == nil && len(w.TurnErrors()) == 0 {
				break // it was never reached
			}
			died++
		}
		require.Greater(t, died, 15, "seed %d", seed)
	}
}

// unread is how many messages the agent writes before its result: more than
// the host takes unread.
const unread = 12

// sprinter is an agent that writes its whole turn at once, and is gone. It
// speaks so little of the protocol that a thousand of them take no time.
type sprinter struct{ exit agent.Exit }

func (sprinter) AgentName() string { return "sprinter" }

func (s sprinter) Serve(_ agent.Launch, p agent.Port) agent.Exit {
	for {
		line, err := p.Next(-1)
		if err != nil {
			return agent.Exit{Code: 9}
		}
		f, err := protocol.ParseFrame(line)
		if err != nil {
			return agent.Exit{Code: 8}
		}
		var out []byte
		switch f.Type {
		case protocol.TypeControlRequest:
			out, err = protocol.AppendControlSuccess(nil, f.RequestID, []byte("{}"))
		case "user":
			for i := range unread {
				if i == 5 { // more than the host takes unread; the rest stays in the pipe
					if p.Write(out) != nil {
						return agent.Exit{Code: 7}
					}
					_, _ = p.Next(time.Millisecond)
					out = nil
				}
				out = fmt.Appendf(out, `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"message %d"}]}}`+"\n", i)
			}
			out = fmt.Appendf(out, `{"type":"result","subtype":"success","is_error":false,"result":"message %d"}`+"\n", unread-1)
		}
		if err != nil || p.Write(out) != nil {
			return agent.Exit{Code: 7}
		}
		if f.Type == "user" {
			return s.exit
		}
	}
}

var lastExits = [...]agent.Exit{{}, {Code: 1}, {Signal: "KILL"}}

// behind sends a message, lets the agent come to its end unread, but for a
// few messages, and then reads everything.
func behind(ctx context.Context, t *testing.T, rt *runtime.Runtime, spec runtime.Spec, early int, want agent.Exit) {
	t.Helper()
	spec.Options.Limits.Messages = 3
	spec.Options.Graces.Output = patience // the host reads all of it, on whatever machine
	s, err := rt.Open(ctx, spec)
	require.NoError(t, err)
	turn, err := s.Send(ctx, userText("hi"))
	require.NoError(t, err)
	reader, err := s.Read()
	require.NoError(t, err)
	var got []string
	var end error
	next := func() {
		var m protocol.Message
		if m, end = reader.Next(ctx); end == nil && protocol.TextOf(m) != "" {
			got = append(got, protocol.TextOf(m))
		}
	}
	for range early {
		next()
		require.NoError(t, end)
	}
	require.NoError(t, rt.Executor().Await(ctx, s.Done()))
	for end == nil {
		next()
	}
	reader.Close()
	var all []string
	for i := range unread {
		all = append(all, fmt.Sprint("message ", i))
	}
	require.Equal(t, append(all, all[unread-1]), got)
	var exit *session.ExitError
	require.ErrorAs(t, end, &exit)
	require.Equal(t, want.Code, max(exit.Status.Code, 0))
	require.Equal(t, want.Signal != "", exit.Status.Signal != "")
	result, err := turn.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, "message 11", result.Result)
}

// rounds is n, or with -short a fifth of it and at least 5: the reader is 0 to 4 messages behind.
func rounds(n int) int {
	if testing.Short() {
		return max(5, n/5)
	}
	return n
}

func TestEdgeResultAndExitInMemory(t *testing.T) {
	r := newRig(t)
	ctx := limit(t)
	var wg sync.WaitGroup
	for worker := range 20 {
		wg.Go(func() {
			t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
				for i := range rounds(50) {
					exit := lastExits[i%len(lastExits)]
					behind(ctx, t, r.rt, runtime.Spec{Dialect: claude.New(), Program: sprinter{exit}}, i%5, exit)
				}
			})
		})
	}
	wg.Wait()
}

func TestEdgeResultAndExitInSimulation(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 60, 10) {
		w := newWorld(t, seed)
		exit := lastExits[seed%3]
		behind(context.Background(), t, w.Runtime, runtime.Spec{Dialect: claude.New(), Program: sprinter{exit}}, int(seed%5), exit)
		w.Finish()
	}
}

func TestEdgeResultAndExitOfProcesses(t *testing.T) {
	r := newRig(t)
	var script strings.Builder
	script.WriteString("turns:\n- steps:\n")
	for i := range unread {
		fmt.Fprintf(&script, "  - text: message %d\n", i)
	}
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() {
			t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
				for i := range rounds(10) {
					exit := lastExits[(worker+i)%len(lastExits)]
					spec := r.spec(t, fmt.Sprintf("%smisbehave: {die: {at: after-result, code: %d, signal: '%s'}}", &script, exit.Code, exit.Signal))
					behind(limit(t), t, r.rt, spec, i%5, exit)
				}
			})
		})
	}
	wg.Wait()
}

// TestEdgeTreesOfTheDead: the agent dies, by itself or not, and what it had
// started goes with it.
func TestEdgeTreesOfTheDead(t *testing.T) {
	r := newRig(t)
	trees := map[string]string{
		"in the group":        "{token: TOKEN}",
		"holds stdout":        "{token: TOKEN, hold_stdout: true}",
		"own session":         "{token: TOKEN, session: true}",
		"re-parented":         "{token: TOKEN, reparent: true}",
		"re-parented session": "{token: TOKEN, reparent: true, session: true, hold_stdout: true}",
		"traps TERM":          "{token: TOKEN, session: true, trap_term: true, reparent: true}",
		"forks":               "{token: TOKEN, session: true, forks: 2ms, lifetime: 60s}",
		"forks in the group":  "{token: TOKEN, forks: 2ms, lifetime: 60s}",
		"a crowd": "{token: TOKEN}, {token: TOKEN, session: true, forks: 5ms, lifetime: 60s}, {token: TOKEN, session: true, forks: 3ms, lifetime: 60s, hold_stdout: true, trap_term: true}, " +
			"{token: TOKEN, reparent: true, session: true}, {token: TOKEN, hold_stdout: true, trap_term: true}",
	}
	deaths := map[string]string{
		"after its result": "die: {at: after-result}, ", "killed in a turn": "die: {at: mid-assistant, signal: KILL}, ",
		"closed": "", "closed, deaf": "ignore_eof: true, trap_term: true, ",
	}
	test := func(t *testing.T, c [2]string) {
		spec := r.spec(t, hello+"misbehave: {"+c[0]+"children: ["+c[1]+"]}")
		ctx := limit(t)
		s, err := r.rt.Open(ctx, spec)
		require.NoError(t, err)
		turn, err := s.Send(ctx, userText("hi"))
		require.NoError(t, err)
		_, err = turn.Result(ctx)
		switch {
		case c[0] == "" || strings.Contains(c[0], "ignore_eof"):
			require.NoError(t, err)
			require.NoError(t, s.Close(ctx))
		default:
			ended(ctx, t, s)
			require.ErrorAs(t, s.Err(), new(*session.ExitError))
			require.NotErrorAs(t, s.Err(), new(*session.LeftoverError))
		}
		assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
	}
	atOnce := make(map[string][2]string)
	for i, death := range sorted(deaths) {
		for k, tree := range sorted(trees) {
			if testing.Short() && (i+k)%len(deaths) > 1 {
				continue // each tree has two deaths
			}
			atOnce[death+" "+tree] = [2]string{deaths[death], trees[tree]}
		}
		if scaled(1, 0) == 1 { // all together fork faster than two processors run them
			together(t, atOnce, test)
			clear(atOnce)
		}
	}
	together(t, atOnce, test)
}

// TestEdgeStoppedAgent is an agent that the user has suspended: it handles neither EOF
// nor SIGTERM.
func TestEdgeStoppedAgent(t *testing.T) {
	r := newRig(t)
	ctx := limit(t)
	s, err := r.rt.Open(ctx, r.spec(t, hello+"misbehave: {children: [{token: TOKEN, session: true}]}"))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(s.PID(), syscall.SIGSTOP))
	require.NoError(t, s.Close(ctx))
	assert.Equal(t, session.StateClosed, s.State())
}

// TestEdgeCloseInNoTime closes with a context that has ended: the agent is
// killed at once, and is gone all the same.
func TestEdgeCloseInNoTime(t *testing.T) {
	r := newRig(t)
	ctx := limit(t)
	spec := r.spec(t, hello+"misbehave: {ignore_eof: true, trap_term: true, children: [{token: TOKEN, session: true, trap_term: true}]}")
	spec.Options.Graces.EOF, spec.Options.Graces.Terminate = time.Hour, time.Hour
	s, err := r.rt.Open(ctx, spec)
	require.NoError(t, err)
	over, cancel := context.WithCancel(ctx)
	cancel()
	err = s.Close(over)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "agent killed")
	ended(ctx, t, s)
	assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
	require.NoError(t, s.Close(ctx), "now it is closed")
}

// flusher is an agent that has work to do after its conversation has ended: it
// takes its time and then writes a last line.
type flusher struct {
	agent.Program
	takes time.Duration
	exit  *agent.Exit
}

const flushed = `{"type":"system","subtype":"flushed","session_id":"s","uuid":"f"}`

func (f flusher) Serve(l agent.Launch, p agent.Port) agent.Exit {
	*f.exit = f.Program.Serve(l, p)
	if f.takes == 0 || f.exit.Code > 1 || f.exit.Signal != "" {
		return *f.exit
	}
	switch _, err := p.Next(f.takes); {
	case errors.Is(err, agent.ErrWaited):
		_ = p.Write([]byte(flushed + "\n"))
	case errors.Is(err, agent.ErrTerminated):
		*f.exit = agent.Exit{Code: 143}
	default:
		*f.exit = agent.Exit{Signal: "KILL"}
	}
	return *f.exit
}

// TestEdgeLadderByTheClock closes sessions and reads the clock: each agent gets
// the graces of its dialect, to the tick, and none is signalled before.
func TestEdgeLadderByTheClock(t *testing.T) {
	t.Parallel()
	const quiet = 250 * time.Millisecond // Qoder, after the last line
	stubborn := scripted.Misbehaviour{IgnoreEOF: true, TrapTerm: true}
	deaf := scripted.Misbehaviour{IgnoreEOF: true, TrapTerm: true, Ignore: []string{"interrupt"}}
	busy := scripted.Steps{&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "sleep 3600"}, Gate: agent.GateAllow, Takes: time.Hour, Effect: "count"}}
	for name, c := range map[string]struct {
		dialect   agent.Dialect
		misbehave scripted.Misbehaviour
		flush     time.Duration
		steps     scripted.Steps // of a turn that runs when the session is closed
		takes     time.Duration
		exit      agent.Exit
	}{
		"polite":                      {agent.Claude, scripted.Misbehaviour{}, 0, nil, 0, agent.Exit{}},
		"1 s to flush":                {agent.Claude, scripted.Misbehaviour{}, time.Second, nil, time.Second, agent.Exit{}},
		"3 s to flush":                {agent.Claude, scripted.Misbehaviour{}, 3 * time.Second, nil, 2 * time.Second, agent.Exit{Code: 143}},
		"ignores EOF":                 {agent.Claude, scripted.Misbehaviour{IgnoreEOF: true}, 0, nil, 2 * time.Second, agent.Exit{Code: 143}},
		"ignores EOF and TERM":        {agent.Claude, stubborn, 0, nil, 7 * time.Second, agent.Exit{Signal: "KILL"}},
		"busy":                        {agent.Claude, scripted.Misbehaviour{}, 0, busy, 0, agent.Exit{Code: 1}},
		"busy, ignores EOF and TERM":  {agent.Claude, stubborn, 0, busy, 7 * time.Second, agent.Exit{Signal: "KILL"}},
		"busy, no interrupt":          {agent.Claude, scripted.Misbehaviour{Ignore: []string{"interrupt"}}, 0, busy, 2 * time.Second, agent.Exit{Code: 143}},
		"busy, deaf":                  {agent.Claude, deaf, 0, busy, 7 * time.Second, agent.Exit{Signal: "KILL"}},
		"Qoder, polite":               {agent.Qoder, scripted.Misbehaviour{}, 0, nil, quiet, agent.Exit{}},
		"Qoder, 9 s to flush":         {agent.Qoder, scripted.Misbehaviour{}, 9 * time.Second, nil, quiet + 9*time.Second, agent.Exit{}},
		"Qoder, 9 s to flush, busy":   {agent.Qoder, scripted.Misbehaviour{}, 9 * time.Second, busy, quiet + 9*time.Second, agent.Exit{Code: 1}},
		"Qoder, 13 s to flush":        {agent.Qoder, scripted.Misbehaviour{}, 13 * time.Second, nil, quiet + 12*time.Second, agent.Exit{Code: 143}},
		"Qoder, ignores EOF and TERM": {agent.Qoder, stubborn, 0, nil, quiet + 24*time.Second, agent.Exit{Signal: "KILL"}},
		"Qoder, busy, deaf":           {agent.Qoder, deaf, 0, busy, 17 * time.Second, agent.Exit{Signal: "KILL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range sim.Seeds(t, 5, 100) {
				w := newWorld(t, seed)
				script := &scripted.Script{Dialect: c.dialect, Misbehave: c.misbehave}
				if c.steps != nil {
					script.Turns = []scripted.Turn{{Steps: c.steps}}
				}
				spec := w.Gated(script)
				var exit agent.Exit
				spec.Program = flusher{spec.Program, c.flush, &exit}
				if c.dialect == agent.Qoder {
					spec.Dialect, spec.Options.Auth = qoder.New(), &session.Auth{Type: session.AuthQoderCLI}
				}
				ctx := context.Background()
				s, err := w.Open(ctx, spec)
				require.NoError(t, err)
				turn, err := s.Send(ctx, userText("hi"))
				require.NoError(t, err)
				if c.steps == nil {
					_, err = turn.Result(ctx)
					require.NoError(t, err)
					require.NoError(t, s.AwaitIdle(ctx))
				}
				reader, err := s.Read()
				require.NoError(t, err)
				for c.steps != nil && len(w.Effects()) == 0 { // until the tool runs
					require.True(t, w.Sched.Step())
				}
				got := kernel.NewPromise[[]string]()
				w.Sched.Go(func() {
					var all []string
					m, err := reader.Next(ctx)
					for ; err == nil; m, err = reader.Next(ctx) {
						all = append(all, string(m.Raw()))
					}
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					got.Resolve(all)
				})
				began := w.Sched.Now()
				require.NoError(t, s.Close(ctx), "seed %d", seed)
				require.Equal(t, c.takes, w.Sched.Now().Sub(began), "seed %d", seed)
				require.Equal(t, c.exit, exit, "seed %d", seed)
				read, err := got.Wait(ctx, w.Sched)
				require.NoError(t, err)
				if c.flush > 0 && c.exit.Code <= 1 {
					require.NotEmpty(t, read)
					require.JSONEq(t, flushed, read[len(read)-1], "what is flushed is read")
				}
				reader.Close()
				w.Finish()
			}
		})
	}
}

// shellAgent is the beginning of an agent that owes nothing to this library: it
// answers initialize.
const shellAgent = `#!/bin/sh
read -r line
id=${line#*\"request_id\":\"}
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "${id%%\"*}"
`

// TestEdgeFlushOfAProcess gives a real agent the time that it needs after EOF,
// and no more than its grace.
func TestEdgeFlushOfAProcess(t *testing.T) {
	r := newRig(t)
	type flush struct {
		grace time.Duration
		needs string // seconds
		done  bool
		spec  runtime.Spec
		file  string
	}
	cases := map[string]flush{
		"granted":    {grace: patience, needs: "0.4", done: true},
		"no more":    {grace: 100 * time.Millisecond, needs: "600"},
		"exactly so": {grace: time.Nanosecond, needs: "600"},
	}
	for name, c := range cases { // before anything forks
		c.file = filepath.Join(t.TempDir(), "flushed")
		c.spec = r.spec(t, hello)
		c.spec.Options.Graces.EOF = c.grace
		c.spec.Options.PathToExecutable = file(t, 0o700, shellAgent+`while read -r line; do :; done
sleep `+c.needs+`
echo >'`+c.file+`'
`)
		cases[name] = c
	}
	together(t, cases, func(t *testing.T, c flush) {
		ctx := limit(t)
		s, err := r.rt.Open(ctx, c.spec)
		require.NoError(t, err)
		require.NoError(t, s.Close(ctx))
		_, err = os.Stat(c.file)
		assert.Equal(t, c.done, err == nil, "flushed")
	})
}

// lateGate registers a gate of a kind that decides nothing before the session
// is closing, and then says yes: whatever runs has run past it. It returns how
// often it was asked.
func lateGate(spec *runtime.Spec, exec kernel.Executor, kind string) *atomic.Int64 {
	var asked atomic.Int64
	closing := make(chan struct{})
	spec.Options.OnEvent = func(r session.EventRecord) {
		if e, ok := r.Event.(*session.StateChanged); ok && e.To == session.StateClosing.String() {
			close(closing)
		}
	}
	wait := func() error {
		asked.Add(1)
		return exec.Await(context.Background(), closing)
	}
	spec.Options.CanUseTool, spec.Options.Hooks = nil, nil
	if kind == "permission" {
		spec.Options.CanUseTool = func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, wait()
		}
	} else {
		spec.Options.Hooks = []session.Hook{{
			Event: protocol.HookPreToolUse, Matcher: "Bash",
			Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
				return json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`), wait()
			},
		}}
	}
	return &asked
}

// brokenStdin starts agents whose stdin breaks after some lines: what is
// written then fails, and the agent sees the end.
type brokenStdin struct {
	session.Spawner
	lines int
}

func (b brokenStdin) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	p, err := b.Spawner.Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	return brokenProcess{p, &brokenPipe{p.Stdin(), b.lines}}, nil
}

type brokenProcess struct {
	session.Process
	in *brokenPipe
}

func (b brokenProcess) Stdin() io.WriteCloser { return b.in }

type brokenPipe struct {
	io.WriteCloser
	lines int
}

func (b *brokenPipe) Write(p []byte) (n int, err error) {
	for line := range bytes.Lines(p) {
		if b.lines--; b.lines < 0 {
			_ = b.Close() // the agent sees the end
			return n, syscall.EPIPE
		}
		k, err := b.WriteCloser.Write(line)
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// stoppers are agents that stop on request, or continue their turn as long as they can.
var stoppers = map[string]scripted.Misbehaviour{
	"polite":        {},
	"uninterrupted": {Ignore: []string{"interrupt"}},
	"deaf":          {Ignore: []string{"interrupt"}, TrapTerm: true, IgnoreEOF: true},
}

// behindTheTurn is gated, but the tools are called by a sub-agent after its
// turn has ended: nothing says that the agent is at work.
func behindTheTurn(effect string) *scripted.Script {
	script, state := gated(effect), false
	script.SessionState = &state
	script.Turns[0].Steps = scripted.Steps{&scripted.SubAgent{
		Description: "later", Prompt: "later", Background: true, Report: "done",
		Steps: append(scripted.Steps{scripted.Delay(time.Second)}, script.Turns[0].Steps...),
	}}
	return script
}

// TestEdgeCloseNeverOpensAGate closes sessions at any moment of the agent's
// work. What it asks is denied before it sees the end of its stdin, and nothing
// runs.
func TestEdgeCloseNeverOpensAGate(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, seed uint64, gate string, script *scripted.Script, until func(w *world, asked int64) bool) {
		t.Helper()
		w := newWorld(t, seed)
		spec := w.Gated(script)
		asked := lateGate(&spec, w.Sched, gate)
		done := kernel.NewPromise[error]()
		w.Sched.Go(func() { done.Resolve(w.Play(context.Background(), spec, "go")) })
		for len(w.Sessions()) == 0 || !until(w, asked.Load()) {
			require.True(t, w.Sched.Step())
		}
		both := asked.Load() == 2
		for _, s := range w.Sessions() {
			require.NoError(t, s.Close(context.Background()))
		}
		_, err := done.Wait(context.Background(), w.Sched)
		require.NoError(t, err)
		w.Finish()
		require.Empty(t, w.Effects(), "fail-closed")
		for _, line := range w.Wrote() {
			if both && (strings.Contains(line, `"tool_use_id":"t0"`) || strings.Contains(line, `"tool_use_id":"t1"`)) {
				require.NotContains(t, line, "Tool permission stream closed", "the deny comes before the end of stdin")
			}
		}
	}
	for _, gate := range []string{"permission", "hook"} {
		for name, misbehave := range stoppers {
			for work, script := range map[string]func(string) *scripted.Script{"turn": gated, "background": behindTheTurn} {
				t.Run(gate+", "+name+", "+work, func(t *testing.T) {
					t.Parallel()
					play := func() *scripted.Script {
						s := script("count")
						s.Misbehave = misbehave
						return s
					}
					for seed := range sim.Seeds(t, 1, 800) {
						steps := 0
						run(t, seed, gate, play(), func(w *world, asked int64) bool {
							steps = w.Sched.Steps()
							return asked == 2
						})
						for at := 0; at < steps; at += 7 {
							run(t, seed, gate, play(), func(w *world, _ int64) bool { return w.Sched.Steps() >= at })
						}
					}
				})
			}
		}
	}
}

// TestEdgeBrokenStdinNeverOpensAGate: the end of stdin comes by itself, after
// any line, and takes the answers of the gates with it.
func TestEdgeBrokenStdinNeverOpensAGate(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"permission", "hook"} {
		for name, misbehave := range stoppers {
			t.Run(gate+", "+name, func(t *testing.T) {
				t.Parallel()
				for seed := range sim.Seeds(t, 4, 100) {
					for lines := range 4 {
						where := fmt.Sprintf("seed %d, broken after %d lines", seed, lines)
						w := newWorld(t, seed)
						script := gated("count")
						script.Misbehave = misbehave
						spec := w.Gated(script)
						asked := lateGate(&spec, w.Sched, gate)
						inner := transport.InMemory{Clock: w.Clock(), Exec: w.Sched, Program: spec.Program}
						spec.Program, spec.Options.Spawner = nil, brokenStdin{inner, lines}
						done := kernel.NewPromise[error]()
						w.Sched.Go(func() { done.Resolve(w.Play(context.Background(), spec, "go")) })
						for range 2_000 {
							if asked.Load() > 1 || len(w.Sessions()) == 0 && w.Sched.Steps() > 100 {
								break
							}
							w.Sched.Step()
						}
						for _, s := range w.Sessions() {
							require.NoError(t, s.Close(context.Background()), where)
						}
						_, err := done.Wait(context.Background(), w.Sched)
						if err != nil {
							require.ErrorAs(t, err, new(*session.ExitError), where)
						}
						for _, err := range w.TurnErrors() {
							require.ErrorAs(t, err, new(*session.ExitError), where)
						}
						w.Finish()
						require.Empty(t, w.Effects(), "%s: fail-closed", where)
					}
				}
			})
		}
	}
}

// TestEdgeCloseNeverOpensAGateOfAProcess is the real thing, gate pending.
func TestEdgeCloseNeverOpensAGateOfAProcess(t *testing.T) {
	r := newRig(t)
	type stop struct{ gate, misbehave string }
	cases := make(map[string]stop)
	for _, gate := range []string{"permission", "hook"} {
		for name, m := range map[string]string{
			"polite": "", "uninterrupted": "ignore: [interrupt]", "deaf": "ignore: [interrupt], trap_term: true, ignore_eof: true",
		} {
			cases[gate+", "+name] = stop{gate, m}
		}
	}
	together(t, cases, func(t *testing.T, c stop) {
		effect := filepath.Join(t.TempDir(), "effect")
		spec := r.spec(t, strings.ReplaceAll(gatedYAML, "EFFECT", effect)+"misbehave: {"+c.misbehave+"}")
		asked := lateGate(&spec, kernel.GoExecutor{}, c.gate)
		ctx := limit(t)
		s, err := r.rt.Open(ctx, spec)
		require.NoError(t, err)
		turn, err := s.Send(ctx, userText("hi"))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return asked.Load() > 0 }, patience, time.Millisecond)
		require.NoError(t, s.Close(ctx))
		assert.NoFileExists(t, effect, "fail-closed")
		assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
		ended(ctx, t, s)
		select {
		case <-turn.Done():
		default:
			t.Error("the turn has not ended with its session")
		}
	})
}

// TestEdgeOddAgents end in ways that no agent should, most of them in the
// middle of a turn. Each ends its session, in time, and leaves nothing.
func TestEdgeOddAgents(t *testing.T) {
	r := newRig(t)
	type odd struct {
		program string
		check   func(*testing.T, *session.ExitError)
		spec    runtime.Spec
	}
	status := func(want session.ExitStatus) func(*testing.T, *session.ExitError) {
		return func(t *testing.T, e *session.ExitError) {
			t.Helper()
			assert.Equal(t, want, e.Status)
		}
	}
	bin, err := scriptedBinary()
	require.NoError(t, err)
	cases := map[string]odd{
		"closes stdin, initialized": {program: strings.Replace(shellAgent, "printf", "exec 0<&-\nprintf", 1) + "sleep 600"},
		"closes stdout":             {program: shellAgent + "read -r line; exec 1>&-; sleep 600", check: status(session.ExitStatus{Code: -1, Signal: "SIGTERM"})},
		"closes all":                {program: shellAgent + "read -r line; exec 0<&- 1>&- 2>&-; sleep 600", check: status(session.ExitStatus{Code: -1, Signal: "SIGTERM"})},
		"closes all, deaf":          {program: shellAgent + "read -r line; trap '' TERM; exec 0<&- 1>&- 2>&-; sleep 600; sleep 600", check: status(session.ExitStatus{Code: -1, Signal: "SIGKILL"})},
		"closes stderr and exits":   {program: shellAgent + "read -r line; exec 2>&-; exit 5", check: status(session.ExitStatus{Code: 5})},
		"goes into the background":  {program: shellAgent + "read -r line; (sleep 600) & exit 0", check: status(session.ExitStatus{})},
		"floods from behind":        {program: shellAgent + `read -r line; while :; do echo '{"type":"noise"}'; done & exit 6`, check: status(session.ExitStatus{Code: 6})},
		"floods without a newline":  {program: shellAgent + `read -r line; while :; do printf 1234567890123456789012345678901234567890; done & exit 6`, check: status(session.ExitStatus{Code: 6})},
		"floods stderr from behind": {program: shellAgent + `read -r line; while :; do echo complaint >&2; done & exit 6`, check: status(session.ExitStatus{Code: 6})},
		"a killed wrapper":          {program: "#!/bin/sh\nexec 3<&0\n" + bin + ` "$@" <&3 & sleep 0.3; kill -KILL $$`, check: status(session.ExitStatus{Code: -1, Signal: "SIGKILL"})},
	}
	for name, c := range cases { // before anything forks
		c.spec = r.spec(t, "turns: [{steps: [{delay: 600s}]}]")
		if c.spec.Options.Graces.Terminate = patience; strings.Contains(c.program, "trap") {
			c.spec.Options.Graces.Terminate = 200 * time.Millisecond
		}
		c.spec.Options.PathToExecutable = file(t, 0o700, c.program)
		cases[name] = c
	}
	together(t, cases, func(t *testing.T, c odd) {
		ctx := limit(t)
		s, err := r.rt.Open(ctx, c.spec)
		if err == nil {
			var turn *runtime.Turn
			if turn, err = s.Send(ctx, userText("hi")); err == nil {
				for _, err = range turn.Messages(ctx) {
				}
			}
			ended(ctx, t, s)
		}
		var exit *session.ExitError
		require.ErrorAs(t, err, &exit)
		if c.check != nil {
			c.check(t, exit)
		}
		assert.Empty(t, withToken(t, tokenOf(c.spec)), "no-orphans")
	})
}

// wanderEnv makes TestEdgeWanderer an agent.
const wanderEnv = "TROUPE_EDGE_WANDERER"

// TestEdgeWanderer is not a test but a program: an agent that leaves its own
// process group for that of a child, and ignores SIGTERM and EOF.
func TestEdgeWanderer(t *testing.T) {
	if os.Getenv(wanderEnv) == "" {
		return // nobody asked for an agent
	}
	signal.Ignore(syscall.SIGTERM)
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	require.NoError(t, err)
	f, err := protocol.ParseFrame(line)
	require.NoError(t, err)
	child := exec.Command("sleep", "600")
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, child.Start())
	require.NoError(t, syscall.Setpgid(0, child.Process.Pid))
	answer, err := protocol.AppendControlSuccess(nil, f.RequestID, []byte("{}"))
	require.NoError(t, err)
	_, err = os.Stdout.Write(answer)
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, in)
	_ = child.Wait() // ten minutes, unless somebody ends it
}

// TestEdgeAgentLeavesItsGroup: signals to the group do not reach its leader any
// more.
func TestEdgeAgentLeavesItsGroup(t *testing.T) {
	r := newRig(t)
	self, err := os.Executable()
	require.NoError(t, err)
	spec := r.spec(t, hello)
	spec.Options.PathToExecutable = file(t, 0o700, fmt.Sprintf("#!/bin/sh\nexec '%s' -test.run='^TestEdgeWanderer$' -test.count=1 agent \"$@\"\n", self))
	spec.Options.Env[wanderEnv] = "1"
	spec.Options.Graces.Sweep = 10 * time.Minute // the last step of the ladder, which would take longer than the test waits
	ctx := limit(t)
	s, err := r.rt.Open(ctx, spec)
	require.NoError(t, err)
	require.NoError(t, s.Close(ctx), "it need not wait for the end of the ladder")
	assert.Empty(t, withToken(t, tokenOf(spec)), "no-orphans")
}

// TestEdgeStatesOfASessionThatIsGivenUp: a session whose actor crashes too often
// ends like any other, over closing.
func TestEdgeStatesOfASessionThatIsGivenUp(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 20, 10) {
		w := newWorld(t, seed, killingWhen(func(_ int, actor string, _ kernel.Moment) bool { return strings.HasPrefix(actor, "s#") }))
		spec := w.Gated(&scripted.Script{})
		spec.Options.Supervisors.Session.Intensity = supervisor.Intensity{Max: 3, Window: time.Hour}
		var states []string
		spec.Options.OnEvent = func(r session.EventRecord) {
			if changed, ok := r.Event.(*session.StateChanged); ok {
				states = append(states, changed.From, changed.To)
			}
		}
		s, err := w.Open(context.Background(), spec)
		if err == nil { // it was ready for a moment
			require.NoError(t, w.Executor().Await(context.Background(), s.Done()))
			err = s.Err()
		}
		require.ErrorContains(t, err, "killed by the test", "seed %d", seed)
		w.Finish()
		require.NotEmpty(t, states)
		require.Equal(t, []string{"closing", "closing", "failed"}, states[len(states)-3:], "seed %d", seed)
	}
}
