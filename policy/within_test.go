package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
)

// A rule about a command that works on files does not reach beyond the
// directories of the policy.
func TestCommandsStayInTheDirectories(t *testing.T) {
	t.Parallel()
	rules := policy.Rules{
		Allow: []string{"Bash(touch:*)", "Bash(cat:*)", "Bash(cd:*)", "Bash(dd:*)", "Bash(cut:*)", "Bash(cp:*)", "Bash(grep:*)", "Bash(touch /tmp/exact)", "Bash(timeout 5 rm:*)", "Bash(say:*)"},
		Cwd:   "/work/repo", Directories: []string{"/work/lib", "/work/out/"}, Home: "/home/u",
		Resolve: func(path string) (string, error) {
			if path == "/work/repo/broken" {
				return "", errors.New("loop")
			}
			for link, to := range map[string]string{"/work/repo/out": "/etc", "/work/repo/lib": "/work/lib", "/work/lib/in": "/work/repo/x"} {
				if path == link || strings.HasPrefix(path, link+"/") {
					return to + strings.TrimPrefix(path, link), nil
				}
			}
			return path, nil
		},
	}
	p := compile(t, rules)
	for command, want := range map[string]string{
		"touch x": "allow", "touch ./x": "allow", "touch a/x": "allow", "touch /work/repo/x": "allow", "touch /work/repo": "allow", "cat -": "allow",
		"touch ../x": "ask", "touch ../repo/x": "allow", "touch ../repo2/x": "ask", "touch /tmp/x": "ask", "touch /work/repo2": "ask", "touch x /tmp/y": "ask", "touch -- /tmp/x": "ask", "touch /": "ask",
		"touch /work/lib/x": "allow", "touch ../lib/x": "allow", "touch /work/out/x": "allow", "touch /work/libx": "ask",
		"touch out/x": "ask", "touch lib/x": "allow", "touch broken": "ask", "touch /work/lib/in": "allow",
		"touch a/../x": "ask", "touch /work/repo/a/../x": "ask", "touch /tmp/exact": "ask",
		"cd a && cat x": "allow", "cd a && cat ../x": "ask", "cd .. && ls": "ask", "cd": "ask", "cd /work/lib": "allow", "cd - && cat x": "allow", "cd - && cat ../x": "ask",
		"touch -r/etc/x y": "ask", "touch --reference=/etc/x y": "ask", "touch --reference=x y": "allow", "cp -t../.. x": "ask", "cp a b": "allow", "cp -r a b": "ask", "cp -- a b": "ask", "mv -f a b": "ask", "timeout 5 mv -f a b": "ask",
		"dd if=/etc/x of=y": "ask", "dd if=x of=y": "allow", "cut -d/ -f1 x": "allow",
		"grep /x y": "allow", "grep x /etc/x": "ask", "grep -e x /etc/x": "ask", "grep -ne x /etc/x": "ask", "grep --regexp x /etc/x": "ask", "grep --regexp=x /etc/x": "ask",
		"timeout 5 rm x": "allow", "timeout 5 rm /tmp/x": "ask",
		"say /tmp/x": "allow", // what it does with it is not known
	} {
		why := p.Explain(policy.Call{Tool: "Bash", Input: bash(command).Input, Cwd: "/work/repo"})
		assert.Equal(t, want, string(why.Behavior), "%s: %s", command, why)
	}

	// The agent says where it asks.
	blocked := func(path string) string {
		return string(p.Decide(policy.Call{Tool: "Bash", Input: bash("say x").Input, Cwd: "/work/repo", Blocked: path}))
	}
	assert.Equal(t, "allow", blocked("/work/repo/x"))
	assert.Equal(t, "allow", blocked("/work/lib/x"))
	assert.Equal(t, "ask", blocked("/tmp/x"))
	assert.Equal(t, "ask", blocked("../x"))

	// A rule about all commands allows all paths.
	assert.Equal(t, allow, compile(t, policy.Rules{Allow: []string{"Bash"}, Cwd: "/work/repo"}).Decide(bash("touch /tmp/x")))

	_, err := policy.Compile(policy.Rules{Directories: []string{"lib"}})
	require.ErrorContains(t, err, "is not an absolute path")
}
