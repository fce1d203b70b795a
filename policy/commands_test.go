package policy_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// commandCase is a line of testdata/commands.txt.
type commandCase struct {
	line    int
	rules   policy.Rules
	want    protocol.PermissionBehavior
	command string
}

// readCommands reads the corpus: a rule or a command on each line, told apart
// by the quotes of the command. Rules behind commands begin a new block.
func readCommands(tb testing.TB) []commandCase {
	tb.Helper()
	f, err := os.Open("testdata/commands.txt")
	require.NoError(tb, err)
	defer f.Close()
	var (
		cases []commandCase
		rules policy.Rules
		done  bool // with the rules of this block
	)
	for s, n := bufio.NewScanner(f), 1; s.Scan(); n++ {
		verdict, text, found := strings.Cut(s.Text(), " ")
		if !found || verdict == "#" {
			continue
		}
		if strings.HasPrefix(text, `"`) {
			command, err := strconv.Unquote(text)
			require.NoError(tb, err, "line %d", n)
			cases, done = append(cases, commandCase{n, rules, protocol.PermissionBehavior(verdict), command}), true
			continue
		}
		if done {
			rules, done = policy.Rules{}, false
		}
		switch verdict {
		case "allow":
			rules.Allow = append(rules.Allow, text)
		case "ask":
			rules.Ask = append(rules.Ask, text)
		case "deny":
			rules.Deny = append(rules.Deny, text)
		default:
			require.Fail(tb, "line", "%d: %q", n, s.Text())
		}
	}
	return cases
}

func bash(command string) policy.Call {
	input, _ := json.Marshal(map[string]string{"command": command})
	return policy.Call{Tool: "Bash", Input: input, Cwd: "/repo/sub"}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	cases := readCommands(t)
	require.Greater(t, len(cases), 200)
	for _, c := range cases {
		p := compile(t, c.rules)
		got := p.Explain(bash(c.command))
		assert.Equal(t, c.want, got.Behavior, "line %d: %q\n%s", c.line, c.command, got)
		assert.Equal(t, got.Behavior, p.Decide(bash(c.command)))
	}
}
