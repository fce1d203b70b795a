package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

func TestDeniedClasses(t *testing.T) {
	t.Parallel()
	all := []string{"reading files", "writing files", "commands", "the network", "subagents", "skills", classMCP, classOther}
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(names, c) })
	}
	for name, c := range map[string]struct{ allow, want []string }{
		"no rule":            {nil, all},
		"commands":           {[]string{"Bash"}, without("commands")},
		"two names":          {[]string{"Task"}, without("subagents")},
		"each of the tools":  {[]string{"Read", "Grep(*)", "Glob", "WebFetch", "WebSearch"}, without("reading files", "the network")},
		"one of the tools":   {[]string{"Read"}, append([]string{"reading files (except Read)"}, all[1:]...)},
		"a part of a tool":   {[]string{"Bash(go test *)", "Bash(ls)"}, append([]string{all[0], all[1], "commands (except Bash(go test *), Bash(ls))"}, all[3:]...)},
		"an MCP server":      {[]string{"mcp__db"}, append(slices.Clone(all[:6]), "MCP tools (except mcp__db)", classOther)},
		"a tool of no class": {[]string{"AskUserQuestion"}, append(slices.Clone(all[:7]), classOther+" (except AskUserQuestion)")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			denied := deniedClasses(c.allow)
			assert.Equal(t, c.want, denied)
			p, err := policy.Compile(policy.Rules{Allow: c.allow, Default: policy.Deny})
			require.NoError(t, err)
			input := json.RawMessage(`{"file_path":"/d/f","path":"/d","pattern":"x","command":"make","url":"https://go.dev","query":"x","subagent_type":"a","skill":"a"}`)
			for _, class := range callClasses() {
				allowed := 0
				for _, tool := range class.tools {
					if p.Decide(policy.Call{Tool: tool, Input: input}) == protocol.BehaviorAllow {
						allowed++
					}
				}
				named := slices.ContainsFunc(denied, func(text string) bool { return strings.HasPrefix(text, class.name) })
				assert.Equal(t, allowed < len(class.tools), named, "%s, by the policy", class.name)
			}
		})
	}
}

// The note comes once, and only where something is denied because no rule allows it.
func TestBatchSaysWhatIsDenied(t *testing.T) {
	t.Parallel()
	const begin = "calls that no rule allows are denied: "
	for name, c := range map[string]struct {
		args []string
		want string // "": no note
	}{
		"no rules":                   {nil, begin + "reading files, writing files, commands, "},
		"rules":                      {[]string{"--allowed-tools", "Read,Grep,Glob,Bash(go *)"}, begin + "writing files, commands (except Bash(go *)), "},
		"a policy":                   {[]string{"--config", taskFile(t, "o.yaml", "policy: {default: deny, allow: [Bash]}")}, begin + "reading files, writing files, the network, "},
		"everything is allowed":      {[]string{"--yes"}, ""},
		"a person decides":           {[]string{"--approvals"}, ""},
		"quiet":                      {[]string{"-q"}, ""},
		"an agent that has no rules": {[]string{"-a", "acp:true", "-n"}, "what the agent asks permission for is denied; --yes allows it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := newWorld(), taskFile(t, "tasks.jsonl", "{\"prompt\":\"x\"}\n{\"prompt\":\"y\"}\n")
			require.Equal(t, exitOK, w.run(append([]string{"batch", file, "-a", script(t, answering)}, c.args...)...), w.err)
			said := w.err.String()
			if c.want == "" {
				assert.NotContains(t, said, "denied")
				return
			}
			assert.Equal(t, 1, strings.Count(said, "denied"), said)
			assert.Contains(t, said, c.want)
		})
	}
}
