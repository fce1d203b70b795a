package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/policy"
)

// A rule about ps is not about the environments of other processes.
func TestPSShowsNoEnvironments(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Allow: []string{"Bash(ps *)"}})
	for command, want := range map[string]string{
		"ps": "allow", "ps aux": "allow", "ps -ef": "allow", "ps -eo pid,time,cmd": "allow", "ps -o pid,time -e": "allow", "ps axo pid,etime": "allow", "ps -p 1 -o etime=": "allow", "ps --sort=-rss -A": "allow", "ps -u eve": "allow",
		"ps auxe": "ask", "ps axeww": "ask", "ps e": "ask", "ps eww": "ask", "ps -E": "ask", "ps aux e": "ask", "ps -o environ": "ask", "ps -oenviron": "ask", "ps -eo pid,environ": "ask", "ps -auxe": "ask", "ps 1 e": "ask", "ps -e e": "ask",
	} {
		e := p.Explain(bash(command))
		assert.Equal(t, want, string(e.Behavior), "%s: %s", command, e)
	}
}
