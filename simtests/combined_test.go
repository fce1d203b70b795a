package simtests_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/supervisor"
)

// What a session may have that says something about its tool calls, or repeats them.
const (
	withPolicy = 1 << iota
	withHooks
	withCallback
	withMCP
	withChildren
	withRestarts
	combinations
)

// combination names a part of them.
func combination(parts int) string {
	var names []string
	for i, name := range []string{"policy", "hooks", "callback", "mcp", "children", "restarts"} {
		if parts&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "nothing"
	}
	return strings.Join(names, ",")
}

// Whatever a correct program combines, and whatever goes wrong meanwhile, no oracle of the
// kit has anything to say. TROUPE_SEEDS is divided by 5: with 5000 each of the 64
// combinations has 1,000 histories.
func TestNoFalseAlarm(t *testing.T) {
	t.Parallel()
	for parts := range combinations {
		t.Run(combination(parts), func(t *testing.T) {
			t.Parallel()
			simtests.Explore(t, simtests.Config{Seeds: fewer(20), Cost: 5, First: uint64(parts) * 100_000}, func(w *simtests.World) {
				combine(w, parts)
			})
		})
	}
}

// combine is one or two users whose sessions have these parts.
func combine(w *simtests.World, parts int) {
	w.Faults(
		simtests.AgentCrash(0.01), simtests.CrashInTool(0.05), simtests.CrashWaiting(0.03, 5*time.Second), simtests.CancelInFlight(0.1),
		simtests.SlowCallback(0.2, "", 20*time.Second), simtests.PanicCallback(0.1, ""), simtests.GoexitCallback(0.05, ""), simtests.ErrorCallback(0.2, "PreToolUse"),
		simtests.ErrorCallback(0.1, "CanUseTool"), simtests.ZeroCallback(0.1, ""), simtests.OutliveCallback(0.03, "", 3*time.Minute), simtests.SplitWrites(0.05),
		simtests.KillActor(0.004), simtests.KillInside(0.01), simtests.ClockJump(0.002, time.Minute), simtests.TranscriptUnsynced(0.3, time.Second),
	)
	for range 1 + w.Rand().IntN(2) {
		w.Go(func() { combined(w, parts) })
	}
	w.Run()
}

func combined(w *simtests.World, parts int) {
	o := &sdk.Options{PermissionTimeout: time.Duration(w.Rand().IntN(2)) * time.Minute}
	if w.Rand().IntN(3) == 0 {
		o.PermissionMode = []sdk.PermissionMode{sdk.ModeAcceptEdits, sdk.ModePlan, sdk.ModeDontAsk}[w.Rand().IntN(3)]
	}
	if parts&withPolicy != 0 {
		o.Policy = &sdk.Policy{Allow: []string{"Bash(pay:*)", "mcp__shop__price"}, Deny: []string{"Bash(rm:*)"}}
	}
	if parts&withHooks != 0 {
		o.Hooks = gatesOf(w)
	}
	if parts&withCallback != 0 {
		o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			if w.Rand().IntN(4) == 0 {
				return sdk.Deny("not now"), nil
			}
			return sdk.Allow(), nil
		}
	}
	if parts&withMCP != 0 {
		o.SDKMCPServers = []*sdk.MCPServer{shop(w)}
	}
	if parts&withChildren != 0 {
		o.Children = []*session.Child{recorder(w)}
	}
	if parts&withRestarts != 0 {
		o.MaxRestarts = 2
		o.Recovery = []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport}[w.Rand().IntN(3)]
		o.Supervisors.Callbacks.Strategy = []supervisor.Strategy{nil, supervisor.OneForAll}[w.Rand().IntN(2)]
	}
	c, err := w.Dial(o, combinedScript(parts))
	if err != nil {
		return // the agent died at once
	}
	w.Go(func() { _ = w.Read(c, nil) }) // its error is that of the session
	for _, prompt := range []string{"pay", "shop"} {
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Minute)
		_, _, err := simtests.Ask(ctx, c, prompt)
		cancel()
		if err != nil {
			break
		}
	}
	_ = c.Close(w.Context()) // an agent that has died says so
}

// gatesOf are up to three hooks: some deny, some match nothing, some may fail.
func gatesOf(w *simtests.World) []sdk.Hook {
	deny := sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		if w.Rand().IntN(4) == 0 {
			return sdk.DenyPreToolUse("not now"), nil
		}
		return sdk.PreToolUseOutput{}, nil
	})
	pass := func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{}, nil
	}
	all := []sdk.Hook{
		deny, sdk.OnPreToolUse(pass), sdk.OnPreToolUse(pass, sdk.Match("Edit")), sdk.OnPreToolUse(pass, sdk.OnFailure(session.ContinueOnFailure)),
		sdk.OnPostToolUse(func(context.Context, *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
			return sdk.PostToolUseOutput{}, nil
		}),
	}
	w.Rand().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+w.Rand().IntN(len(all))]
}

// combinedScript names its calls itself, as a script may: those of two sessions, and those
// of two processes of one, have the same ids.
func combinedScript(parts int) *scripted.Script {
	bash := func(id, command string) *scripted.ToolUse {
		return &scripted.ToolUse{ID: id, Name: "Bash", Input: map[string]any{"command": command}, Gate: agent.GateAsk, Effect: "ran"}
	}
	second := scripted.Parallel{bash("toolu_3", "pay 3"), bash("toolu_4", "ls")}
	if parts&withMCP != 0 {
		second = append(second, &scripted.MCPCall{ID: "toolu_5", Server: "shop", Tool: "price", Arguments: map[string]any{"item": "tea"}})
	}
	return &scripted.Script{Turns: []scripted.Turn{
		{When: "pay", Steps: scripted.Steps{bash("toolu_1", "pay 1"), bash("toolu_2", "rm x"), scripted.Text("paid")}},
		{When: "shop", Steps: scripted.Steps{second, scripted.Text("bought")}},
	}}
}

// A hook that fails denies the call, and the policy's own hook, which has nothing against
// it, changes nothing about that: the oracle judges the call, not each answer.
func TestAFailingHookBesideAPolicy(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"fails", "passes"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			simtests.Explore(t, simtests.Config{Seeds: fewer(50), Cost: 10, AllFaults: true}, func(w *simtests.World) {
				hooks := []sdk.Hook{
					sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
						return sdk.PreToolUseOutput{}, errBroken
					}),
					sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
						return sdk.PreToolUseOutput{}, nil
					}),
				}
				if first == "passes" {
					hooks[0], hooks[1] = hooks[1], hooks[0]
				}
				c := w.Open(&sdk.Options{Policy: &sdk.Policy{Allow: []string{"Bash(pay:*)"}}, Hooks: hooks}, combinedScript(0))
				_, _, err := w.Ask(c, "pay")
				require.NoError(w, err)
				require.Empty(w, w.Effects())
			})
		})
	}
}

// The agent cancels one hook of a call, and another one goes on, rightly: nobody has
// cancelled its request.
func TestOneOfTwoHooksIsCancelled(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{}, nil
	}
	simtests.Explore(t, simtests.Config{Seeds: fewer(200), Cost: 2, AllFaults: true}, func(w *simtests.World) {
		w.Faults(simtests.SlowCallback(0.7, "PreToolUse", 40*time.Second), simtests.CancelInFlight(0.3))
		c := w.Open(&sdk.Options{CanUseTool: allowAll, Hooks: []sdk.Hook{sdk.OnPreToolUse(slow), sdk.OnPreToolUse(slow)}}, combinedScript(0))
		for range 3 {
			_, _, err := w.Ask(c, "pay")
			require.NoError(w, err)
		}
	})
}

// A policy in one session is no leave for another one, and the ids of calls of two sessions
// may be equal.
func TestThePolicyOfAnotherSession(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(50), Cost: 10, AllFaults: true}, func(w *simtests.World) {
		for i, o := range []*sdk.Options{
			{Policy: &sdk.Policy{Allow: []string{"Bash(pay:*)"}}},
			{CanUseTool: allowAll},
			{Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.PreToolUseOutput{}, errBroken
			})}},
		} {
			w.Go(func() {
				_, _, err := w.Ask(w.Open(o, combinedScript(0)), "pay")
				require.NoError(w, err, fmt.Sprint("session ", i))
			})
		}
		w.Run()
	})
}
