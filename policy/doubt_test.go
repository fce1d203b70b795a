package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// The agent's remarks about a call, and its directory, can make an allow rule narrower,
// and a deny rule wider.
func TestDoubt(t *testing.T) {
	t.Parallel()
	read := func(path string) policy.Call {
		raw, err := json.Marshal(map[string]string{"file_path": path})
		assert.NoError(t, err)
		return policy.Call{Tool: "Read", Input: raw, Cwd: "/work/repo"}
	}
	shell := func(command string) policy.Call {
		c := bash(command)
		c.Cwd = "/work/repo"
		return c
	}
	with := func(c policy.Call, change func(*policy.Call)) policy.Call { change(&c); return c }
	outside := func(c *policy.Call) { c.Outside = true }
	blocked := func(path string) func(*policy.Call) { return func(c *policy.Call) { c.Blocked = path } }
	in := func(dir string) func(*policy.Call) { return func(c *policy.Call) { c.Cwd = dir } }
	allowing := func(rules ...string) policy.Rules { return policy.Rules{Allow: rules, Cwd: "/work/repo"} }
	denying := func(rules ...string) policy.Rules {
		return policy.Rules{Allow: []string{"Bash", "Read"}, Deny: rules, Cwd: "/work/repo"}
	}
	for name, tc := range map[string]struct {
		rules policy.Rules
		call  policy.Call
		want  protocol.PermissionBehavior
	}{
		"a path inside":                               {allowing("Read(./**)"), read("x"), "allow"},
		"a path that leads out":                       {allowing("Read(./**)"), with(read("x"), outside), "ask"},
		"a path that the agent names leads out":       {allowing("Read(./**)"), with(read("x"), blocked("/tmp/x")), "ask"},
		"a path that the agent names is inside":       {allowing("Read(./**)"), with(read("x"), blocked("/work/repo/x")), "allow"},
		"a rule about the outside":                    {allowing("Read(//opt/data/**)"), with(read("/opt/data/x"), outside), "allow"},
		"a rule about a directory above":              {allowing("Read(//work/**)"), with(read("x"), outside), "allow"},
		"a command that leads out":                    {allowing("Bash(say:*)"), with(shell("say x"), outside), "ask"},
		"a command, and nothing leads out":            {allowing("Bash(say:*)"), shell("say x"), "allow"},
		"a program of the directory":                  {allowing("Bash(make:*)", "Bash(cd:*)"), shell("make"), "allow"},
		"a program of another directory":              {allowing("Bash(make:*)", "Bash(cd:*)"), shell("cd a && make"), "ask"},
		"and back":                                    {allowing("Bash(make:*)", "Bash(cd:*)"), shell("cd a && cd /work/repo && make"), "ask"},
		"denied in the directory of the rules":        {denying("Read(./secret)"), read("secret"), "deny"},
		"perhaps denied, from another directory":      {denying("Read(./secret)"), with(read("secret"), in("/work/repo/a")), "ask"},
		"denied, by the path from there":              {denying("Read(./secret)"), with(read("../secret"), in("/work/repo/a")), "deny"},
		"a program that sudo runs":                    {denying("Bash(push:*)"), shell("sudo ls"), "allow"},
		"a program that sudo runs somewhere else":     {denying("Bash(push:*)"), shell("sudo -D x ls"), "ask"},
		"a program that sudo runs below another root": {denying("Bash(push:*)"), shell("sudo -R x ls"), "ask"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := compile(t, tc.rules).Explain(tc.call)
			assert.Equal(t, tc.want, why.Behavior, "%s", why)
		})
	}
}
