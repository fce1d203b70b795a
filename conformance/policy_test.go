//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

func TestPolicyRulesDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy  sdk.Policy
		command string
		nobody  bool
		asked   int
		made    bool
	}{
		"allow":              {sdk.Policy{Allow: []string{"Bash(touch:*)"}}, "touch made", false, 0, true},
		"allow, nobody":      {sdk.Policy{Allow: []string{"Bash(touch:*)"}}, "touch made", true, 0, true},
		"deny":               {sdk.Policy{Allow: []string{"Bash"}, Deny: []string{"Bash(touch:*)"}}, "echo x; touch made", false, 0, false},
		"ask":                {sdk.Policy{Allow: []string{"Bash"}, Ask: []string{"Bash(touch:*)"}}, "touch made", false, 1, true},
		"ask, nobody":        {sdk.Policy{Allow: []string{"Bash"}, Ask: []string{"Bash(touch:*)"}}, "touch made", true, 0, false},
		"no rule, nobody":    {sdk.Policy{Allow: []string{"Bash(mkdir:*)"}}, "touch made", true, 0, false},
		"not a literal word": {sdk.Policy{Allow: []string{"Bash(touch:*)"}}, "touch $(echo made)", true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			a := &asker{}
			o := r.options()
			o.Policy = &tc.policy
			if !tc.nobody {
				o.CanUseTool = a.decide
			}
			_, result := r.once(o, r.run(tc.command))
			assert.Len(t, a.since(), tc.asked)
			if tc.made {
				assert.FileExists(t, r.at("made"))
				assert.Empty(t, result.PermissionDenials)
				return
			}
			assert.NoFileExists(t, r.at("made"))
			assert.Len(t, result.PermissionDenials, 1)
		})
	}
}

// What the agent would not ask about, a policy still decides.
func TestPolicyIsNotPassedBy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	o.AllowedTools = []string{"Bash"}
	o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)", "Read(secret)"}, Default: policy.Agent}
	c := r.connect(o)

	all, result := r.ask(c, r.run("touch made"))
	assert.NoFileExists(t, r.at("made"))
	assert.Len(t, result.PermissionDenials, 1)
	assert.Contains(t, r.toolResult(all).Content.Text(), "Bash(touch:*)")

	r.model.Script("read", modelapi.Say(modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("secret")})), modelapi.Say(modelapi.Text("Read done.")))
	all, _ = r.ask(c, "read it [[scn:read]]")
	assert.Contains(t, r.toolResult(all).Content.Text(), "Read(secret)")

	_, result = r.ask(c, r.run("mkdir dir"))
	assert.DirExists(t, r.at("dir"))
	assert.Empty(t, result.PermissionDenials)
	r.close(c)
}

// A subagent's calls are under the policy as well.
func TestPolicyForSubagents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	o.Policy = &sdk.Policy{Deny: []string{"Bash(touch *)"}, Default: policy.Agent}
	_, result := r.once(o, "delegate [[scn:agentfg]]")
	assert.NoFileExists(t, r.at("made-by-bash"))
	assert.False(t, result.Failed())
}

// A hook of the user's that allows does not outrank the policy: the agent takes
// the strictest of its hooks.
func TestPolicyBesideAHookThatAllows(t *testing.T) {
	t.Parallel()
	allows := sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil
	})
	for name, tc := range map[string]struct {
		policy sdk.Policy
		asked  int
		made   bool
	}{
		"deny":                    {sdk.Policy{Deny: []string{"Bash(touch:*)"}}, 0, false},
		"ask":                     {sdk.Policy{Ask: []string{"Bash(touch:*)"}}, 1, true},
		"no rule":                 {sdk.Policy{}, 1, true},
		"the rest is the agent's": {sdk.Policy{Default: policy.Agent}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			a := &asker{}
			o := r.options()
			o.Policy, o.Hooks, o.CanUseTool = &tc.policy, []sdk.Hook{allows}, a.decide
			_, _ = r.once(o, r.run("touch made"))
			assert.Len(t, a.since(), tc.asked)
			if tc.made {
				assert.FileExists(t, r.at("made"))
			} else {
				assert.NoFileExists(t, r.at("made"))
			}
		})
	}
}

// What a hook of the user's puts in place of the input is held against the
// policy if the agent still asks.
func TestPolicyAfterAHookThatModifies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{UpdatedInput: input(t, "touch made")}, nil
	})}
	o.Policy = &sdk.Policy{Allow: []string{"Bash(mkdir:*)"}, Deny: []string{"Bash(touch:*)"}}
	_, result := r.once(o, r.run("mkdir dir"))
	assert.NoFileExists(t, r.at("made"))
	assert.NoDirExists(t, r.at("dir"))
	assert.Len(t, result.PermissionDenials, 1)
}

// A policy that allows a tool does not answer for an ask rule of the agent's own
// settings, also if that is about a part of a command.
func TestPolicyBesideAskRulesOfTheSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := &asker{}
	o := r.options()
	o.Settings = json.RawMessage(`{"permissions":{"ask":["Bash(touch:*)"]}}`)
	o.Policy, o.CanUseTool = &sdk.Policy{Allow: []string{"Bash"}}, a.decide
	c := r.connect(o)
	for command, asked := range map[string]int{
		"touch one":                   1,
		"echo a | tee b && touch two": 1,
		"echo a | tee c && mkdir dir": 0,
		"mkdir other":                 0,
		"mkdir more; touch more/x":    1,
	} {
		_, result := r.ask(c, r.run(command))
		assert.Len(t, a.since(), asked, command)
		assert.Empty(t, result.PermissionDenials, command)
	}
	r.close(c)
	assert.FileExists(t, r.at("two"))
	assert.FileExists(t, r.at("c"))
}
