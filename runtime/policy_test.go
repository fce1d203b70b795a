package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestThePolicyOfASpec is enforced without package sdk, also about calls that the agent
// would not ask about.
func TestThePolicyOfASpec(t *testing.T) {
	t.Parallel()
	deny := func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		return protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "a person says no"}, nil
	}
	for name, c := range map[string]struct {
		rules policy.Rules
		gate  agent.Gate
		ask   session.CanUseTool
		asked int
		runs  int
	}{
		"an allow rule":                 {rules: policy.Rules{Allow: []string{"Bash(date)"}}, runs: 1},
		"an allow rule, the agent asks": {rules: policy.Rules{Allow: []string{"Bash(date)"}}, gate: agent.GateAsk, runs: 1},
		"a deny rule":                   {rules: policy.Rules{Deny: []string{"Bash"}}, ask: allow},
		"a deny rule, the agent asks":   {rules: policy.Rules{Deny: []string{"Bash"}}, gate: agent.GateAsk, ask: allow},
		"no rule, nobody to ask":        {},
		"no rule, a person allows":      {ask: allow, asked: 1, runs: 1},
		"no rule, a person denies":      {ask: deny, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				w := inSim(t, seed)
				call := gate()
				call.Gate = agent.GateAllow
				if c.gate != "" {
					call.Gate = c.gate
				}
				spec := w.spec(turns(scripted.Steps{call}))
				asked := 0
				spec.Options.Policy, spec.Options.Cwd = &c.rules, "/repo"
				if c.ask != nil {
					spec.Options.CanUseTool = func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
						asked++
						return c.ask(ctx, r)
					}
				}
				s := w.open(spec)
				_, err := w.send(s, "go").Result(t.Context())
				require.NoError(t, err)
				assert.Len(t, w.Effects(), c.runs, "seed %d", seed)
				assert.Equal(t, c.asked, asked, "seed %d", seed)
				require.NoError(t, s.Close(t.Context()))
			}
		})
	}
}

// TestThePolicyOfASpecFailsClosed: an actor dies while it has the call of an agent that
// asks by itself about nothing. The person who would have allowed it is not heard.
func TestThePolicyOfASpecFailsClosed(t *testing.T) {
	t.Parallel()
	for victim, mode := range map[string]protocol.PermissionMode{
		"permission#": protocol.ModeDefault, "hooks#": protocol.ModeBypassPermissions, // there the hook itself asks
	} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				asked := false
				w := inSim(t, seed, func(c *kernel.Config) {
					c.Chaos = func(actor string, _ any, _ kernel.Moment) bool {
						strike := asked && strings.HasPrefix(actor, victim)
						asked = asked && !strike
						return strike
					}
				})
				call := gate()
				call.Gate = agent.GateAllow
				spec := w.spec(turns(scripted.Steps{call, scripted.Delay(time.Minute), scripted.Text("done")}))
				spec.Options.Policy, spec.Options.Cwd = &policy.Rules{}, "/repo"
				spec.Options.PermissionMode, spec.Options.AllowDangerouslySkipPermissions = mode, mode == protocol.ModeBypassPermissions
				persons := 0
				spec.Options.CanUseTool = func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					persons, asked = persons+1, true
					_ = w.Executor().Await(ctx, never)
					return allow(ctx, r)
				}
				s := w.open(spec)
				turn := w.send(s, "go")
				w.Pass(time.Second)
				s.Tree(t.Context()) // a message for every actor
				result, err := turn.Result(t.Context())
				require.NoError(t, err, "seed %d", seed)
				assert.Equal(t, "done", result.Result)
				assert.False(t, asked, "seed %d: nobody died", seed)
				assert.Equal(t, 1, persons, "seed %d", seed)
				assert.Empty(t, w.Effects(), "seed %d", seed)
				require.NoError(t, s.Close(t.Context()))
			}
		})
	}
}

// TestThePolicyAndTheHooksOfASpec: the user's hooks keep their places, what they change is
// judged, and the slice of the options stays as it was.
func TestThePolicyAndTheHooksOfASpec(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns(scripted.Steps{gate()}))
	spec.Options.Policy, spec.Options.CanUseTool = &policy.Rules{Allow: []string{"Bash(date)"}, Deny: []string{"Bash(rm:*)"}}, allow
	hooks := make([]session.Hook, 1, 4)
	hooks[0] = session.Hook{Event: protocol.HookPreToolUse, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
		return json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"rm x"}}}`), nil
	}}
	spec.Options.Hooks = hooks
	p, err := spec.Preview()
	require.NoError(t, err)
	assert.Contains(t, string(p.Initialize), `"hook_1"`, "the policy's is the last")
	s := w.open(spec)
	_, err = w.send(s, "go").Result(t.Context())
	require.NoError(t, err)
	assert.Empty(t, w.Effects())
	assert.Len(t, spec.Options.Hooks, 1)
	assert.Zero(t, hooks[:2][1], "nothing is written behind the user's hooks")
	require.NoError(t, s.Close(t.Context()))
}

// TestMistakesInThePolicyOfASpec are reported with those that the dialect finds.
func TestMistakesInThePolicyOfASpec(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	spec.Options.Policy, spec.Options.InitializeTimeout = &policy.Rules{Allow: []string{"Bash("}}, -1
	_, err := w.Open(t.Context(), spec)
	require.ErrorContains(t, err, `Policy.Allow[0]: "Bash(" at byte 5 does not end`)
	require.ErrorContains(t, err, "InitializeTimeout")
	_, previewed := spec.Preview()
	require.EqualError(t, previewed, err.Error())
	assert.Empty(t, w.Sessions())

	spec.Options.Policy, spec.Options.InitializeTimeout = &policy.Rules{Default: policy.Agent}, 0
	s := w.open(spec)
	require.Len(t, s.Warnings(), 1)
	assert.Equal(t, "Policy.Default", s.Warnings()[0].Option)
	require.NoError(t, s.Close(t.Context()))
}
