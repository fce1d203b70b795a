package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// Paths that no rule allows to be written, in spellings that the agent's recorded
// decisions treat alike.
func TestGuardedPaths(t *testing.T) {
	t.Parallel()
	rules := policy.Rules{Allow: []string{"Bash", "Write"}, Cwd: "/work/repo", Home: "/home/u"}
	p, err := policy.Compile(rules)
	require.NoError(t, err)
	for command, want := range map[string]protocol.PermissionBehavior{
		"touch .git/x": "ask", "touch git/x": "allow", "cat .git/x": "allow", "cd .git": "allow",
		"touch .bashrc": "ask", "touch .bashrc/x": "allow", "touch .bashrc/": "ask",
		"touch .claude/worktrees/w/x": "allow", "touch .claude/worktrees/w/.claude/worktrees/x": "ask", "touch .claude/x": "ask",
		"dd if=x of=.git/x": "ask", "dd if=x of=y": "allow", "install -t.git x": "ask", "install -t x y": "allow",
		"touch //server/x": "ask", "cd .husky && touch x": "ask", "sh -c 'touch .git/x'": "ask", "touch $X/.git/x": "ask",
		"rm -rf ~": "ask", "rm -rf /home/u": "ask", "rm -rf /home": "ask", "rm -rf /home/u/x": "allow", "rm -rf /work": "ask", "rm -rf x": "allow", "rm -rf */": "ask",
		"cd $X && rm -rf .": "ask", "cd $X && rm -rf ..": "ask", "cd $X && rm -rf *": "ask", "cd $X && rm -rf x": "allow",
		"touch 'x": "ask",
	} {
		why := p.Explain(policy.Call{Tool: "Bash", Input: bash(command).Input, Cwd: "/work/repo"})
		assert.Equal(t, want, why.Behavior, "%s: %s", command, why)
	}
	for file, want := range map[string]protocol.PermissionBehavior{"x": "allow", ".git/x": "ask", "/work/repo/.vscode/x": "ask", "~/.bashrc": "ask", "GIT~1/x": "ask"} {
		raw, err := json.Marshal(map[string]string{"file_path": file})
		require.NoError(t, err)
		why := p.Explain(policy.Call{Tool: "Write", Input: raw, Cwd: "/work/repo"})
		assert.Equal(t, want, why.Behavior, "%s: %s", file, why)
	}

	// They are asked about as what no rule names is.
	rules.Default = policy.Deny
	p, err = policy.Compile(rules)
	require.NoError(t, err)
	assert.Equal(t, protocol.BehaviorDeny, p.Decide(policy.Call{Tool: "Bash", Input: bash("touch .git/x").Input, Cwd: "/work/repo"}))
}
