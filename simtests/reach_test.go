package simtests_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/supervisor"
)

// everyFault is one of each kind, with probabilities at which a session still gets
// somewhere.
func everyFault() []simtests.Fault {
	return []simtests.Fault{
		simtests.AgentCrash(0.01), simtests.AgentExit(0.004, 0), simtests.AgentExit(0.004, 1), simtests.AgentExit(0.004, 143), simtests.CrashInTool(0.05), simtests.CrashWaiting(0.03, 5*time.Second),
		simtests.IgnoreTerm(0.2), simtests.StayAfterEOF(0.2), simtests.StallStdout(0.02, time.Second), simtests.BlockStdin(0.05, 3*time.Second),
		simtests.SplitWrites(0.1), simtests.Noise(0.03), simtests.OverlongLine(0.02, 20_000), simtests.UnknownType(0.03), simtests.UnknownAnswer(0.03),
		simtests.APIRetryStorm(0.05, 429, 3), simtests.APIRetryStorm(0.05, 529, 6), simtests.CancelInFlight(0.1),
		simtests.AnswerTwice(0.3), simtests.AnswerMissing(0.2), simtests.AnswerLate(0.3), simtests.AnswersReordered(0.3),
		simtests.SlowCallback(0.1, "", 20*time.Second), simtests.PanicCallback(0.05, "PreToolUse"), simtests.GoexitCallback(0.05, "CanUseTool"),
		simtests.ErrorCallback(0.05, ""), simtests.ZeroCallback(0.05, ""), simtests.OutliveCallback(0.03, "", 3*time.Minute),
		simtests.KillActor(0.004), simtests.KillInside(0.01), simtests.KillStep(0.0015), simtests.KillFleet(0.05), simtests.ClockJump(0.002, time.Minute), simtests.HostShutdown(0.001),
		simtests.TranscriptMissing(0.2), simtests.TranscriptTruncated(0.3), simtests.TranscriptUnsynced(0.5, time.Second), simtests.ConsumerStalls(0.1, 5*time.Second), simtests.ConsumerLeaves(0.02),
	}
}

// reachScript is a conversation with everything in it that an agent does: tools behind a
// permission and hooks, an MCP tool, calls side by side, a background task, a turn that
// lasts.
func reachScript() *scripted.Script {
	return &scripted.Script{Turns: []scripted.Turn{
		{When: "pay", Steps: scripted.Steps{
			scripted.Text("let me see"),
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "pay"}, Gate: agent.GateAsk, Effect: "paid", Takes: 5 * time.Millisecond},
			scripted.Text("paid"),
		}},
		{When: "shop", Steps: scripted.Steps{
			scripted.Parallel{
				&scripted.MCPCall{Server: "shop", Tool: "price", Arguments: map[string]any{"item": "tea"}},
				&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls"}, Gate: agent.GateAsk, Takes: time.Second},
			},
			&scripted.SubAgent{Description: "look", Prompt: "look", Background: true, Steps: scripted.Steps{scripted.Delay(2 * time.Second), scripted.Text("seen")}, Report: "seen", Then: scripted.Steps{scripted.Text("it is there")}},
			scripted.Text("bought"),
		}},
		{When: "work", Steps: scripted.Steps{scripted.Text("1"), scripted.Delay(30 * time.Second), scripted.Text("2"), scripted.Text("3"), scripted.Text("4")}},
	}}
}

func shop(w *simtests.World) *sdk.MCPServer {
	type in struct {
		Item string `json:"item"`
	}
	s, err := sdk.NewMCPServer("shop", "1", sdk.NewTool("price", "the price of an item", func(context.Context, in) (*sdk.ToolResult, error) {
		return sdk.Text("3"), nil
	}))
	require.NoError(w, err)
	return s
}

// reach is a user who does about everything: several sessions, some at the same time,
// turns that are interrupted, closes at odd moments.
func reach(w *simtests.World) {
	switch w.Seed() % 25 {
	case 7:
		mirrored(w, false)
		return
	case 12:
		rarelyUsed(w)
		return
	}
	w.Faults(everyFault()...)
	if patient(w) {
		w.Faults(simtests.KillActor(0.05).AtMost(5))
	}
	users := 1 + w.Rand().IntN(2)
	if crowded(w.Seed()) {
		users++
	}
	for range users {
		w.Go(func() { converse(w) })
	}
	switch w.Rand().IntN(30) {
	case 0, 1:
		w.Go(func() { startsNothing(w) })
	case 2, 3:
		w.Go(func() { refuses(w) })
	case 4:
		w.Go(func() { crams(w) })
	case 5, 6:
		w.Go(func() { callBehind(w) })
	}
	w.Run()
}

// crowded reports whether there is less room than sessions in this history.
func crowded(seed uint64) bool { return seed%3 == 0 }

// room is how much room a history has.
func room(seed uint64) runtime.Config {
	if !crowded(seed) {
		return runtime.Config{}
	}
	a := runtime.Admission{MaxProcesses: 1 + int(seed/3%2)}
	if seed%2 == 0 {
		a.MaxSessions, a.MaxWait = 2, 5*time.Minute
	}
	if seed%4 < 2 {
		a.StartsPerSecond = 2
	}
	return runtime.Config{Admission: a}
}

// converse has a conversation, and perhaps goes on with it in another session.
func converse(w *simtests.World) {
	id := talk(w, "")
	for id != "" && w.Rand().IntN(3) == 0 {
		id = talk(w, id)
	}
}

// talk has a conversation, and returns the agent's id of the session, if it knows it.
func talk(w *simtests.World, resume string) string {
	died := false
	o := &sdk.Options{
		Resume: resume, OnEvent: func(r session.EventRecord) {
			if e, ok := r.Event.(*session.StateChanged); ok && e.To == session.StateRecovering.String() {
				died = true
			}
			rows(w, r)
		},
		CanUseTool: allowAll, MaxRestarts: w.Rand().IntN(3), PermissionTimeout: time.Duration(w.Rand().IntN(2)) * time.Minute, AllowedTools: []string{"mcp__shop__price"},
		SDKMCPServers: []*sdk.MCPServer{shop(w)}, MaxLine: 16 << 10,
		Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{}, nil
		})},
		Limits: session.Limits{Messages: 4 + w.Rand().IntN(8), Consumer: time.Duration(w.Rand().IntN(2)) * 30 * time.Second},
	}
	supervised(w, o)
	if w.Rand().IntN(8) == 0 {
		o.Children = []*session.Child{recorder(w)}
	}
	if resume != "" && w.Rand().IntN(4) == 0 { // twice: one of them has the lease
		again := *o
		w.Go(func() {
			if c, err := w.Dial(&again, reachScript()); err == nil {
				_ = c.Close(w.Context()) // it may have died
			}
		})
	}
	c, err := w.Dial(o, reachScript())
	if err != nil {
		return ""
	}
	if w.Rand().IntN(4) > 0 {
		w.Go(func() { _ = w.Read(c, nil) }) // its error is that of the session
	}
	for _, prompt := range []string{"pay", "shop", "work"}[:1+w.Rand().IntN(3)] {
		turn, err := c.Send(w.Context(), sdk.UserText(prompt))
		if err != nil {
			break
		}
		if w.Rand().IntN(6) == 0 { // two at once
			if next, err := c.Send(w.Context(), sdk.UserText("pay")); err == nil {
				w.Go(func() { hears(w.Context(), w, next, &died) })
			}
		}
		switch w.Rand().IntN(6) {
		case 0:
			w.Sleep(time.Duration(w.Rand().IntN(2000)) * time.Millisecond)
			_, _ = c.Interrupt(w.Context()) // it may have died
		case 1:
			w.Sleep(time.Duration(w.Rand().IntN(2000)) * time.Millisecond)
			_ = c.SetModel(w.Context(), "sonnet") // the same
			w.Sleep(time.Second)
			_ = c.Close(w.Context())
		default:
			ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
			hears(ctx, w, turn, &died)
			cancel()
			if w.Rand().IntN(3) == 0 {
				_ = c.Passivate(w.Context()) // it may be in use, or over
			}
		}
	}
	if w.Rand().IntN(6) > 0 { // else it is left open
		_ = c.Close(w.Context()) // one that was made to resist says so
	}
	return c.SessionID()
}

// hears waits for the result of a message, which says whose it is. A process that follows
// another may know the message by another name.
func hears(ctx context.Context, w *simtests.World, turn *sdk.Turn, died *bool) {
	result, err := turn.Result(ctx)
	if err != nil || *died || len(result.UserMessageUUIDs) == 0 {
		return
	}
	if !slices.Contains(result.UserMessageUUIDs, turn.UUID()) {
		w.Errorf("turns: the message %s got the result of %v", turn.UUID(), result.UserMessageUUIDs)
	}
}

// patient reports whether restarts of actors wait for long in this history, so that their
// supervisor may die meanwhile.
func patient(w *simtests.World) bool { return w.Seed()%4 == 0 }

// supervised draws what the deaths of agents and actors do.
func supervised(w *simtests.World, o *sdk.Options) {
	policies := []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport, session.RecoverFail}
	if n := w.Rand().IntN(len(policies) + 2); o.MaxRestarts > 0 {
		switch n {
		case len(policies):
			o.DecideRecovery = func(_ context.Context, f session.Death) session.Recovery {
				w.Sleep(time.Duration(f.Attempt) * time.Second)
				return policies[f.Attempt%len(policies)]
			}
		case len(policies) + 1: // the default
		default:
			o.Recovery = policies[n]
		}
	}
	strategies := []supervisor.Strategy{nil, supervisor.OneForAll, supervisor.RestForOne}
	o.Supervisors.Session.Strategy = strategies[w.Rand().IntN(len(strategies))]
	o.Supervisors.Callbacks.Strategy = strategies[w.Rand().IntN(len(strategies))]
	if patient(w) {
		slow := supervisor.Backoff{Initial: 20 * time.Second, Max: time.Minute}
		o.Supervisors.Backoffs = map[string]supervisor.Backoff{"transport": slow, "router": slow, "callbacks": slow}
	}
}

// fewer is a tenth of n with -short, and a twentieth under the race detector, which takes ten
// times as long; CI plays all of them without it.
func fewer(n int) int {
	switch {
	case sim.Raced():
		return max(n/20, 2)
	case testing.Short():
		return max(n/10, 2)
	}
	return n
}

// A state or a fault that the simulations never reach is one that they say nothing about.
func TestReach(t *testing.T) {
	t.Parallel()
	got := simtests.Explore(t, simtests.Config{Seeds: fewer(300), First: 1_000_000, Twice: 100, Runtime: room}, reach)
	if got.Failed || got.Histories < 100 {
		return // the exploration says why; a few histories show nothing
	}
	few := (got.Histories + 99) / 100
	for s := session.StateAdmitting; s <= session.StateFailed; s++ {
		assert.GreaterOrEqual(t, got.States[s.String()], few, "the state %s was reached in %d of %d histories", s, got.States[s.String()], got.Histories)
	}
	for _, f := range everyFault() {
		assert.GreaterOrEqual(t, got.Faults[f.Name()], few, "the fault %s happened in %d of %d histories", f.Name(), got.Faults[f.Name()], got.Histories)
	}
	for _, name := range allRows() {
		n := got.Sometimes["row: "+name]
		if name == rowFleet {
			n = got.Faults["KillFleet"]
		}
		assert.GreaterOrEqual(t, n, few, "%q of docs/design.md happened in %d of %d histories", name, n, got.Histories)
	}
}

// The planted bugs of tools/simmutate have to be found by this one.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(30), Twice: -1, Shrink: -1, DoNotKeep: true, Runtime: room}, reach)
}

// A callback that returns after its session has ended is no event of the session: nothing
// follows Ended.
func TestNothingFollowsEnded(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 20, AllFaults: true}, func(w *simtests.World) {
		w.Faults(simtests.OutliveCallback(1, "CanUseTool", 3*time.Minute))
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, reachScript())
		_, err := c.Send(w.Context(), sdk.UserText("pay"))
		require.NoError(w, err)
		w.Sleep(time.Second)
		require.NoError(w, c.Close(w.Context()))
		w.Run() // the oracle one-terminal sees what comes now
		w.Sometimes("the callback was late", w.Elapsed() >= 3*time.Minute)
	})
}
