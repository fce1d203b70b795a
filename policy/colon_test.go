package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// The null command : is not among the commands that need no rule. Claude Code 2.1.329 asks about each of these with the
// rule, and runs true beside an allowed command (observed).
func TestTheNullCommand(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Allow: []string{"Bash(git status:*)"}, Cwd: "/work/repo", Root: "/work/repo", Home: "/home/u"})
	for command, want := range map[string]protocol.PermissionBehavior{
		":": ask, "git status || :": ask, "git status; :": ask, ": && git status": ask, "git status | :": ask,
		"while :; do git status; break; done": ask, "if :; then git status; fi": ask,
		": x y": ask, ": $X": ask, ": > f": ask, ": ${X:=y}": ask,
		"true && git status": allow, "git status || true": allow,
	} {
		in := bash(command)
		in.Cwd = "/work/repo"
		assert.Equal(t, want, p.Explain(in).Behavior, command)
	}
	own := compile(t, policy.Rules{Allow: []string{"Bash(git status:*)", "Bash(:)"}, Cwd: "/work/repo", Root: "/work/repo", Home: "/home/u"})
	in := bash("git status || :")
	in.Cwd = "/work/repo"
	assert.Equal(t, allow, own.Explain(in).Behavior, "a rule of its own")
}
