package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
)

// TestAt: a policy that is moved decides as one that was compiled there.
func TestAt(t *testing.T) {
	t.Parallel()
	places := []policy.Rules{
		{Cwd: "/repo/sub", Root: "/repo", Home: "/home/u"},
		{Cwd: "/other", Home: "/home/v", Directories: []string{"/more"}},
		{Cwd: "/repo/sub", Home: "/home/u", Resolve: func(p string) (string, error) { return "/away" + p, nil }},
	}
	calls := []policy.Call{
		call("Bash", `{"command":"touch a"}`), call("Bash", `{"command":"touch /other/a"}`), call("Bash", `{"command":"touch /more/a && cat /repo/sub/x"}`),
		call("Bash", `{"command":"cat secret/key"}`), call("Bash", `{"command":"cat ~/x > /other/out"}`), call("Read", `{"file_path":"/repo/sub/x"}`),
		call("Read", `{"file_path":"/other/x"}`), call("Read", `{"file_path":"secret/key"}`), call("Read", `{"file_path":"/home/v/x"}`),
		call("Edit", `{"file_path":"/repo/docs/a.md"}`), call("Write", `{"file_path":"/other/docs/a.md"}`), call("WebFetch", `{"url":"https://go.dev"}`),
	}
	for _, rules := range []policy.Rules{
		{Allow: []string{"Read(./**)", "Bash(touch:*)", "Bash(cat:*)"}, Deny: []string{"Read(secret/**)"}},
		{Allow: []string{"Edit(/docs/*.md)", "Read(~/x)", "WebFetch(domain:go.dev)", "Bash(touch:*)"}, Ask: []string{"Edit(./out)"}},
		{Allow: []string{"Bash(touch:*)"}, Deny: []string{"Bash(cat:*)"}},
	} {
		whole := func(at policy.Rules) policy.Rules {
			at.Allow, at.Ask, at.Deny = rules.Allow, rules.Ask, rules.Deny
			return at
		}
		for _, from := range places {
			before, err := policy.Compile(whole(from))
			require.NoError(t, err)
			for _, to := range places {
				moved, err := before.At(to)
				require.NoError(t, err)
				there, err := policy.Compile(whole(to))
				require.NoError(t, err)
				for _, c := range calls {
					c.Cwd = to.Cwd
					assert.Equal(t, there.Explain(c), moved.Explain(c), "%v from %s to %s: %s", rules, from.Cwd, to.Cwd, c.Input)
				}
			}
			again, err := policy.Compile(whole(from))
			require.NoError(t, err)
			for _, c := range calls {
				assert.Equal(t, again.Explain(c), before.Explain(c), "the one that was moved stays as it was")
			}
		}
	}
}

// TestAtRefuses: texts that name no place, and places where a deny rule would be about nothing.
func TestAtRefuses(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Allow: []string{"Read(./**)"}, Deny: []string{"Read(/repo/secret/x)"}, Root: "/elsewhere"})
	for want, r := range map[string]policy.Rules{
		"is not an absolute path": {Cwd: "here"},
		"needs":                   {Home: "/home/u"},
		"begins with one slash":   {Cwd: "/repo", Home: "/home/u"},
		"Directories":             {Cwd: "/other", Directories: []string{"x"}},
	} {
		_, err := p.At(r)
		assert.ErrorContains(t, err, want)
	}
	_, err := p.At(policy.Rules{Cwd: "/other"})
	assert.NoError(t, err)
}
