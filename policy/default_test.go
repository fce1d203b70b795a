package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

func TestDefault(t *testing.T) {
	t.Parallel()
	call := func(tool, input string) policy.Call {
		return policy.Call{Tool: tool, Input: json.RawMessage(input), Cwd: "/repo"}
	}
	unnamed := call("Bash", `{"command":"make"}`)
	const ask, deny, allow = protocol.BehaviorAsk, protocol.BehaviorDeny, protocol.BehaviorAllow
	rules := policy.Rules{Allow: []string{"Bash(git status)"}, Ask: []string{"Read(secret)"}, Deny: []string{"Bash(rm:*)", "TaskStop"}, Cwd: "/repo"}
	for name, tc := range map[string]struct {
		call                 policy.Call
		asks, denies, agents protocol.PermissionBehavior // by default
		byAgent              bool                        // with Agent
	}{
		"an allow rule":                {call("Bash", `{"command":"git status"}`), allow, allow, allow, false},
		"an ask rule":                  {call("Read", `{"file_path":"secret"}`), ask, ask, ask, false},
		"a deny rule":                  {call("Bash", `{"command":"rm x"}`), deny, deny, deny, false},
		"no rule":                      {unnamed, ask, deny, ask, true},
		"a read":                       {call("Read", `{"file_path":"go.mod"}`), ask, deny, ask, true},
		"a subagent":                   {call("Agent", `{"subagent_type":"Explore"}`), ask, deny, ask, true},
		"a subagent by its other name": {call("Task", `{"subagent_type":"Explore"}`), ask, deny, ask, true},
		"a part is not named":          {call("Bash", `{"command":"git status; make"}`), ask, deny, ask, true},
		"not literal":                  {call("Bash", `{"command":"$X"}`), ask, deny, ask, false}, // which may be rm
		"a tool of a server":           {call("mcp__srv__act", `{}`), ask, deny, ask, true},
		"a question":                   {call("AskUserQuestion", `{}`), ask, deny, ask, true},
		"a plan":                       {call("ExitPlanMode", `{}`), ask, deny, ask, true},
		"the structured output":        {call("StructuredOutput", `{}`), allow, allow, allow, false},
		"the list of tasks":            {call("TaskCreate", `{}`), allow, allow, allow, false},
		"the search for tools":         {call("ToolSearch", `{}`), allow, allow, allow, false},
		"nearly a tool":                {call("structuredOutput", `{}`), ask, deny, ask, true},
		"denied though it is a list":   {call("TaskStop", `{}`), deny, deny, deny, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for byDefault, want := range map[policy.Default]protocol.PermissionBehavior{"": tc.asks, "ask": tc.asks, policy.Deny: tc.denies, policy.Agent: tc.agents} {
				r := rules
				r.Default = byDefault
				p, err := policy.Compile(r)
				require.NoError(t, err)
				why := p.Explain(tc.call)
				assert.Equal(t, want, why.Behavior, "%q: %s", byDefault, why)
				assert.Equal(t, byDefault == policy.Agent && tc.byAgent, why.ByAgent, "%q: %s", byDefault, why)
			}
		})
	}
}

// A deny rule that cannot be ruled out asks about what is allowed, and does not
// weaken the default for what is not.
func TestDefaultInDoubt(t *testing.T) {
	t.Parallel()
	p, err := policy.Compile(policy.Rules{Allow: []string{"Bash(env:*)", "Bash(env X=1 foo)"}, Deny: []string{"Bash(foo -x:*)"}, Default: policy.Deny, Cwd: "/repo"})
	require.NoError(t, err)
	for command, want := range map[string]protocol.PermissionBehavior{
		"$X":       protocol.BehaviorDeny,
		"foo -y":   protocol.BehaviorDeny,
		"sh -c $X": protocol.BehaviorDeny,
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
		why := p.Explain(policy.Call{Tool: "Bash", Input: input, Cwd: "/repo"})
		assert.Equal(t, want, why.Behavior, "%s: %s", command, why)
	}
}

func TestDefaultInWords(t *testing.T) {
	t.Parallel()
	for byDefault, want := range map[policy.Default]string{
		policy.Ask:   `ask: "make": no rule is about it`,
		policy.Deny:  `deny: "make": no rule is about it`,
		policy.Agent: `the agent decides: "make": no rule is about it`,
	} {
		p, err := policy.Compile(policy.Rules{Allow: []string{"Bash(git status)"}, Default: byDefault, Cwd: "/repo"})
		require.NoError(t, err)
		assert.Equal(t, want, p.Explain(policy.Call{Tool: "Bash", Input: json.RawMessage(`{"command":"make"}`), Cwd: "/repo"}).String())
		assert.Equal(t, "allow: TodoWrite changes nothing outside of the agent", p.Explain(policy.Call{Tool: "TodoWrite"}).String())
	}
	_, err := policy.Compile(policy.Rules{Default: "allow"})
	assert.EqualError(t, err, `policy: Default "allow": is not a default; use ask, deny or agent`)
}
