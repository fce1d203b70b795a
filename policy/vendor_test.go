package policy_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// Claude Code 2.1.329 decided about the calls of testdata/vendor.json by its own
// rules (conformance.TestVendorDecisions records them). Under rules of the same
// text a policy is never weaker: it does not allow what the agent asks about or
// denies, nor ask about what the agent denies.
func TestNeverWeakerThanTheAgent(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/vendor.json")
	require.NoError(t, err)
	var groups []struct {
		Name             string
		Cwd, Mode        string
		Allow, Ask, Deny []string
		Calls            [][3]string
	}
	require.NoError(t, json.Unmarshal(raw, &groups))
	const dir, home = "/work/repo", "/home/u"
	places := strings.NewReplacer("{dir}", dir, "{home}", home)
	links := func(path string) (string, error) {
		switch path {
		case dir + "/k":
			return dir + "/secrets/key", nil
		case dir + "/rc":
			return dir + "/.bashrc", nil
		}
		if strings.HasPrefix(path, dir+"/h/") {
			return dir + "/.husky" + strings.TrimPrefix(path, dir+"/h"), nil
		}
		if path == dir+"/s" || strings.HasPrefix(path, dir+"/s/") {
			return dir + "/secrets" + strings.TrimPrefix(path, dir+"/s"), nil
		}
		return path, nil
	}
	exceptions := map[string]string{
		"touch  x": "the same command: the agent compares the text of an exact rule, a policy the words that the shell makes of it",
	}
	strict := []string{"allow", "ask", "deny"}
	planned := map[[2]string]protocol.PermissionBehavior{} // what the mode plan alone decides
	for _, g := range groups {
		for _, call := range g.Calls {
			if g.Mode == "plan" && g.Allow == nil {
				planned[[2]string{call[1], call[2]}] = protocol.PermissionBehavior(call[0])
			}
		}
	}
	var equal, stricter, weaker int
	for _, g := range groups {
		p, err := policy.Compile(policy.Rules{Allow: g.Allow, Ask: g.Ask, Deny: g.Deny, Cwd: dir, Home: home, Resolve: links})
		require.NoError(t, err, g.Name)
		for _, call := range g.Calls {
			if call[0] == "error" || exceptions[call[2]] != "" {
				continue // refused before any rule, or an exception
			}
			decision := call[0]
			in := policy.Call{Tool: call[1], Input: vendorInput(t, call[1], places.Replace(call[2])), Cwd: dir}
			if g.Cwd != "" {
				in.Cwd = dir + "/" + g.Cwd
			}
			if decision == "outside" {
				decision, in.Outside = "ask", true
			}
			if decision == "classifier" {
				decision = "ask" // a policy has a person decide instead
			}
			why := p.Explain(in)
			if g.Mode == "plan" && why.Behavior == protocol.BehaviorAllow {
				why.Behavior = planned[[2]string{call[1], call[2]}] // as package sdk does
				if why.Behavior == "classifier" {
					why.Behavior = protocol.BehaviorAsk
				}
			}
			if g.Mode == "dontAsk" && why.Behavior == protocol.BehaviorAsk {
				why.Behavior = protocol.BehaviorDeny // as package sdk does in this mode
			}
			switch vendor, ours := slices.Index(strict, decision), slices.Index(strict, string(why.Behavior)); {
			case ours == vendor:
				equal++
			case ours > vendor:
				stricter++
			default:
				weaker++
				assert.Fail(t, "weaker", "%s: %s(%s): the agent says %s, the policy %s", g.Name, call[1], call[2], call[0], why)
			}
		}
	}
	t.Logf("%d decisions equal, %d stricter, %d weaker", equal, stricter, weaker)
	assert.GreaterOrEqual(t, equal+stricter+weaker, 300)
}

func vendorInput(t *testing.T, tool, arg string) json.RawMessage {
	t.Helper()
	key := map[string]string{
		"Bash": "command", "Read": "file_path", "Write": "file_path", "Edit": "file_path", "NotebookEdit": "notebook_path", "Grep": "path", "Glob": "path",
		"WebFetch": "url", "Skill": "skill", "Agent": "subagent_type",
	}[tool]
	in := map[string]string{}
	if key != "" {
		in[key] = arg
	}
	if tool == "Grep" || tool == "Glob" {
		in["pattern"] = "*"
	}
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	return raw
}
