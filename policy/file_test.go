package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
)

// A path that may be another name for any file is neither allowed by a pattern,
// nor ruled out by one.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"below /proc":       "/proc/self/root/etc/x",
		"a file descriptor": "/dev/fd/3",
		"a backslash":       `/repo/sub/a\b`,
		"too long":          "/repo/sub/" + strings.Repeat("a/", 64) + strings.Repeat("b", 4096),
		"too many segments": "/repo/sub/" + strings.Repeat("a/", 200) + "b",
	} {
		input, err := json.Marshal(map[string]string{"file_path": path})
		require.NoError(t, err)
		c := call("Read", string(input))
		assert.Equal(t, ask, compile(t, policy.Rules{Allow: []string{"Read(//**)"}}).Decide(c), "allow, %s", name)
		assert.Equal(t, ask, compile(t, policy.Rules{Allow: []string{"Read"}, Deny: []string{"Read(//secret/**)"}}).Decide(c), "deny, %s", name)
	}
}

// A pattern holds below the directory that Cwd resolves to, and one that ends
// with a slash holds for searches of that directory.
func TestPatternsOfDirectories(t *testing.T) {
	t.Parallel()
	linked := compile(t, policy.Rules{Allow: []string{"Read"}, Deny: []string{"Read(./x)"}, Cwd: "/link", Resolve: func(path string) (string, error) {
		return strings.Replace(path, "/link", "/real", 1), nil
	}})
	assert.Equal(t, deny, linked.Decide(policy.Call{Tool: "Read", Input: json.RawMessage(`{"file_path":"/real/x"}`), Cwd: "/real"}))
	assert.Equal(t, allow, compile(t, policy.Rules{Allow: []string{"Grep(./src/)"}}).Decide(call("Grep", `{"path":"src"}`)))
}

// Input for a running process cannot be held against a rule about a command.
func TestInputOfRunningProcesses(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Allow: []string{"BashInput", "Monitor"}, Deny: []string{"Bash(git push:*)"}})
	assert.Equal(t, ask, p.Decide(call("BashInput", `{"command":"ls"}`)))
	assert.Equal(t, ask, p.Decide(call("Monitor", `{}`)))
}
