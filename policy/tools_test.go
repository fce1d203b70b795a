package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

func TestToolsByOtherNames(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{
		Allow: []string{"mcp__ok", "Bash(git:*)", "Read(**)", "Skill"},
		Deny:  []string{"mcp__x", "Bash(rm:*)", "Read(./secrets/**)", `Read(private/\[!a])`, "Skill(push)"}, Cwd: "/repo",
	})
	for _, c := range []struct {
		tool, input string
		want        protocol.PermissionBehavior
	}{
		{"Monitor", `{"command":"rm x"}`, "deny"},
		{"Monitor", `{"command":"git log"}`, "ask"},
		{"Monitor", `{"command":"cat secrets/key"}`, "deny"},
		{"PowerShell", `{"command":"git log"}`, "ask"},
		{"Mcp", `{"server_name":"x","tool_name":"y"}`, "deny"},
		{"Mcp", `{"server_name":"ok","tool_name":"y"}`, "allow"},
		{"ReadMcpResourceTool", `{"server":"x","uri":"y"}`, "deny"},
		{"ReadMcpResourceTool", `{"server":"ok","uri":"y"}`, "ask"},
		{"Mcp", `{"server_name":"ok"}`, "ask"},
		{"Mcp", `{"server_name":"ok","server":"x","tool_name":"y"}`, "ask"},
		{"ListMcpResources", `{}`, "ask"},
		{"Monitor", `{"ws":{"url":"wss://x"}}`, "ask"},
		{"bash", `{"command":"rm x"}`, "ask"},
		{"mcp__ok__y", `{}`, "allow"},
		{"mcp__ok___y", `{}`, "ask"},
		{"Bash", `{"command":"git log","dir_path":"/repo"}`, "allow"},
		{"Bash", `{"command":"git log","dir_path":"/tmp"}`, "ask"},
		{"Bash", `{"command":"git show key","dir_path":"secrets"}`, "deny"},
		{"Read", `{"file_path":"x"}`, "allow"},
		{"Read", `{"file_path":"private/[!a]"}`, "deny"},
		{"Read", `{"file_path":"private/b"}`, "allow"},
		{"Skill", `{"skill":"a:b:push"}`, "ask"},
		{"Skill", `{"skill":"a:b:pull"}`, "allow"},
		{"Read", `{"file_path":" /etc/passwd"}`, "ask"},
		{"Read", `{"file_path":"x\ufeff"}`, "ask"},
	} {
		got := p.Explain(policy.Call{Tool: c.tool, Input: json.RawMessage(c.input), Cwd: "/repo"})
		assert.Equal(t, c.want, got.Behavior, "%s %s\n%s", c.tool, c.input, got)
	}
}

// The work for a script grows with its length.
func TestLongScripts(t *testing.T) {
	p := compile(t, policy.Rules{Deny: []string{"Bash(git push:*)"}, Allow: []string{"Bash(a:*)"}})
	call := bash(strings.Repeat("a;", 8000))
	allocs := testing.AllocsPerRun(1, func() { p.Explain(call) })
	assert.Less(t, allocs, float64(4<<20))
}

// A rule about every command is about those of all tools, an allow rule about
// its own tool alone.
func TestBareRulesAboutCommands(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"Bash", "Monitor", "PowerShell"} {
		c := call(tool, `{"command":"ls"}`)
		assert.Equal(t, deny, compile(t, policy.Rules{Allow: []string{tool}, Deny: []string{"Bash"}}).Decide(c), tool)
		assert.Equal(t, allow, compile(t, policy.Rules{Allow: []string{tool}}).Decide(c), tool)
		assert.Equal(t, tool == "Bash", compile(t, policy.Rules{Allow: []string{"Bash"}}).Decide(c) == allow, tool)
	}
}
