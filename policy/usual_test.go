package policy_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// usual is testdata/usual.json: commands that agents write, under four lists of rules,
// each with the decisions of Claude Code 2.1.329 under the same rules.
type usual struct {
	RuleSets map[string]policy.Rules
	Commands []struct {
		Category, Command string
		Pairs             []usualPair
	}
}

type usualPair struct {
	Rules, Default, DontAsk string          // the agent's decisions in these modes
	OneLine                 json.RawMessage // its decisions without line continuations
	// Alone are parts that the agent runs without a rule and that no rule names, Unseen
	// those that run code which no rule can see. A policy denies or asks; see TestUsual.
	Alone, Unseen []string
}

func readUsual(t *testing.T) usual {
	t.Helper()
	raw, err := os.ReadFile("testdata/usual.json")
	require.NoError(t, err)
	var u usual
	require.NoError(t, json.Unmarshal(raw, &u))
	return u
}

// forbidden are pairs that a policy does not allow although the agent does: the option or
// the subcommand writes any file, or runs or installs what the rule does not say. The
// tests of the ways out of a rule forbid each of them.
var forbidden = func() map[[2]string]bool {
	all := map[[2]string]bool{}
	for _, c := range []struct{ rules, command string }{
		{"go ask", "go build -o bin/server ./cmd/server && ls -la bin/server"},
		{"go ask", "CGO_ENABLED=0 GOOS=linux go build -o bin/app ./cmd/app"},
		{"go ask", "go test ./... -coverprofile=coverage.out 2>&1 | tail -3"},
		{"go ask", "git commit -m 'fix: use $HOME instead of ~' --no-verify"},
		{"ask", "go generate ./... && git diff --stat"},
		{"ask", "go install golang.org/x/tools/cmd/goimports@latest"},
		{"ask", "go run ./cmd/tool --help 2>&1 | head -20"},
		{"ask", "go run . < input.txt"},
		{"ask", "cargo add serde --features derive"},
		{"ask", "cargo update -p tokio"},
		{"ask", "cargo install cargo-nextest --locked"},
		{"ask", "npm i -D @types/node typescript"},
		{"ask", "git config user.email \"agent@example.com\" && git config user.name \"Agent\""},
		{"ask", "docker build -t app:test . 2>&1 | tail -20"},
		{"ask", "docker compose up -d"},
		{"ask", "docker compose up -d && sleep 3 && docker compose ps"},
		{"ask", "docker compose logs --tail=50 api 2>&1 | tail -50"},
		{"ask", "docker system prune -f"},
		{"ask", "gh api repos/owner/name/pulls/12/comments"},
		{"ask", "gh api repos/owner/name/pulls/12/comments --jq '.[].body' | head -50"},
		{"web ask", "make -C docs html"},
		{"web", "curl -fsSL https://example.com/x.tar.gz -o x.tar.gz"},
	} {
		for rules := range strings.FieldsSeq(c.rules) {
			all[[2]string{c.command, rules}] = true
		}
	}
	return all
}()

// Under the rules that the agent runs a usual command by, a policy allows it, nearly
// always, and it never allows what the agent does not.
func TestUsual(t *testing.T) {
	t.Parallel()
	const dir = "/work/repo"
	u := readUsual(t)
	type count struct{ equal, stricter, alone, unseen, left int }
	counts := map[string]*count{}
	pairs := 0
	for _, c := range u.Commands {
		counted := c.Category != "near misses" && c.Category != "edges"
		n := counts[c.Category]
		if n == nil {
			n = &count{}
			counts[c.Category] = n
		}
		for _, pair := range c.Pairs {
			pairs++
			rules := u.RuleSets[pair.Rules]
			rules.Cwd, rules.Root, rules.Home = dir, dir, "/home/u"
			command := strings.ReplaceAll(c.Command, "{dir}", dir)
			in := bash(command)
			in.Cwd = dir
			asks := compile(t, rules).Explain(in)
			rules.Default = policy.Deny
			denies := compile(t, rules).Explain(in)
			if denies.Behavior == protocol.BehaviorAsk {
				denies.Behavior = protocol.BehaviorDeny // no answer
			}
			strict := map[string]int{"allow": 0, "ask": 1, "deny": 2}
			compare := func(agent string, ours policy.Explanation) int {
				return strict[string(ours.Behavior)] - strict[agent]
			}
			a, b := compare(pair.Default, asks), compare(pair.DontAsk, denies)
			if pair.OneLine != nil && min(a, b) < 0 {
				a, b = 0, 0 // both are right
			}
			if forbidden[[2]string{c.Command, pair.Rules}] {
				assert.Positive(t, a+b, "%s under %s is left out, and not stricter", c.Command, pair.Rules)
				n.left++
				continue
			}
			if min(a, b) < 0 {
				assert.Fail(t, "weaker", "%s: %q: the agent says %s, %s; the policy %s", pair.Rules, command, pair.Default, pair.DontAsk, asks)
			}
			switch {
			case pair.Alone != nil:
				n.alone++
			case pair.Unseen != nil:
				n.unseen++
			case a == 0 && b == 0:
				n.equal++
			default:
				n.stricter++
				if counted {
					t.Logf("stricter: %s: %q: %s", pair.Rules, command, asks)
				}
			}
		}
	}
	require.Equal(t, 1709, pairs)
	var all count
	for _, category := range slices.Sorted(maps.Keys(counts)) {
		n := counts[category]
		t.Logf("%-17s %3d equal, %3d stricter: %3d%%; alone %d, unseen %d, left out %d", category, n.equal, n.stricter, 100*n.equal/max(1, n.equal+n.stricter), n.alone, n.unseen, n.left)
		if category != "near misses" && category != "edges" {
			all.equal += n.equal
			all.stricter += n.stricter
			all.left += n.left
		}
	}
	require.Equal(t, len(forbidden), all.left, "each pair that is left out is there")
	assert.GreaterOrEqual(t, 100*all.equal, 95*(all.equal+all.stricter))
	t.Logf("together %d of %d equal: %.1f%%", all.equal, all.equal+all.stricter, 100*float64(all.equal)/float64(all.equal+all.stricter))
}
