package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

// heavyPolicy has n deny rules of each kind, none of which fits.
func heavyPolicy(tb testing.TB, n int) *Policy {
	tb.Helper()
	r := Rules{Cwd: "/repo", Home: "/home/u", Resolve: func(path string) (string, error) { return path, nil }}
	r.Allow = []string{"Bash", "Read", "MultiEdit", "Glob", "WebFetch", "Skill", "mcp__ok"}
	kinds := []string{"Read(**/*.pem%d)", "Bash(nosuch%d push:*)", "Read(secrets%d/**/x/*)", "Edit(//etc/**/*x%d)", "WebFetch(domain:*.x%d.org)", "Skill(s%d:*)", "mcp__s%d__*"}
	for i := range n {
		r.Deny = append(r.Deny, fmt.Sprintf(kinds[i%len(kinds)], i))
	}
	p, err := Compile(r)
	require.NoError(tb, err)
	return p
}

// heavyInputs are inputs of about n bytes that are expensive in some way.
func heavyInputs(n int) map[string]Call {
	input := func(key, text string) json.RawMessage {
		b, _ := json.Marshal(map[string]string{key: text})
		return b
	}
	words := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	bash := func(command string) Call { return Call{Tool: "Bash", Input: input("command", command), Cwd: "/repo"} }
	deep := func(bound int) string { return "/repo/" + strings.Repeat("a/", min(n, bound)/2) + "x" }
	return map[string]Call{
		"words":         bash("cat " + words("file%d ")),
		"deep paths":    bash("cd " + strings.Repeat("a/", n/4) + ";cat " + words("b%d ")),
		"pieces":        bash("cat " + words("a%d=")),
		"commands":      bash(words("cmd%d;")),
		"wrapped":       bash(strings.Repeat("env ", n/4) + "x"),
		"scripts":       bash(words("sh 'cat f%d';")),
		"substitutions": bash("x " + words("$(a%d)")),
		"options":       bash("git log " + words("--x%d ")),
		"Read":          {Tool: "Read", Input: input("file_path", deep(maxPath)), Cwd: "/repo"},
		"MultiEdit":     {Tool: "MultiEdit", Input: input("file_path", deep(maxPath)), Cwd: "/repo"},
		"Glob":          {Tool: "Glob", Input: input("pattern", strings.Repeat("a/", n/2)), Cwd: "/repo"},
		"one name":      {Tool: "Read", Input: input("file_path", "/repo/"+strings.Repeat("a", min(n, 4000))), Cwd: "/repo"},
		"url":           {Tool: "WebFetch", Input: input("url", "https://"+strings.Repeat("a.", n/2)+"org")},
		"skill":         {Tool: "Skill", Input: input("skill", strings.Repeat("a:", n/2))},
		"tool":          {Tool: "mcp__" + strings.Repeat("a", n) + "__b"},
	}
}

// steps is what a decision costs, without a bound.
func steps(p *Policy, c Call) int {
	w := &work{left: 1 << 40}
	p.explain(c, w)
	return 1<<40 - w.left
}

// Work that grows with the input is charged before it is done.
func TestWorkIsPaidFor(t *testing.T) {
	t.Parallel()
	w, compared := &work{left: 10}, 0
	assert.False(t, w.wildcards(1, 1000, func(int) bool { return false }, func(int, int) bool { compared++; return false }))
	star := func(i int) bool { return i == 0 }
	assert.False(t, w.wildcards(2, 1000, star, func(int, int) bool { compared++; return false }))
	assert.Less(t, compared, 12)
	assert.True(t, w.exhausted())

	long := strings.Repeat("a", 1<<16)
	w = &work{left: 100}
	assert.False(t, wordSpec{"a", "a"}.fits(long, w))
	assert.True(t, w.exhausted())

	junk := json.RawMessage(`{"junk":"` + long + `","file_path":"/repo/x"}`)
	p, err := Compile(Rules{Allow: []string{"Read(./**)"}, Cwd: "/repo"})
	require.NoError(t, err)
	assert.Greater(t, steps(p, Call{Tool: "Read", Input: junk, Cwd: "/repo"}), len(long)/8)
}

// Each piece of a word that a program writes to is paid for before it is looked up
// among the guarded names, and none is looked up when nothing is left.
func TestGuardedNamesArePaidFor(t *testing.T) {
	t.Parallel()
	const pieces = 1000
	resolved := 0
	p, err := Compile(Rules{Allow: []string{"Bash"}, Cwd: "/repo", Resolve: func(path string) (string, error) {
		resolved++
		return path, nil
	}})
	require.NoError(t, err)
	d := &decision{Policy: p, work: &work{left: maxWork}, dir: "/repo"}
	before := d.left
	assert.True(t, d.guardedName("", "//"+strings.Repeat("x", pieces)))
	assert.Equal(t, 8+2+pieces, before-d.left)

	d.left = 10
	for range pieces {
		d.guardedName("/repo", "a/longer/name")
	}
	assert.Zero(t, resolved)
	assert.True(t, d.exhausted())
}

// The cost of a decision is linear in the input and in the rules.
func TestWorkIsLinear(t *testing.T) {
	t.Parallel()
	few, many := heavyPolicy(t, 20), heavyPolicy(t, 100)
	small, large := heavyInputs(1000), heavyInputs(4000)
	for name := range small {
		once := steps(few, small[name])
		assert.Less(t, steps(few, large[name]), 6*once, "%s: four times the input", name)
		assert.Less(t, steps(many, small[name]), 7*once, "%s: five times the rules", name)
		assert.Less(t, steps(many, heavyInputs(1000)[name]), maxWork, "%s: 1 kB and 100 rules are decided", name)
	}
}

// A call that takes more work than a decision may is denied, whatever is allowed.
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	p := heavyPolicy(t, 100)
	for name, c := range heavyInputs(1 << 18) {
		w := &work{left: maxWork / 8} // the race detector makes all of it slow
		got := p.explain(c, w)
		assert.Equal(t, w.left < 0, got.Behavior == protocol.BehaviorDeny, "%s: %.200s", name, got)
		assert.Greater(t, w.left, -len(c.Input)*parseSteps-1<<20, name)
	}
	c := heavyInputs(5000)["words"]
	all := steps(p, c)
	for left := 0; left < all; left += 1 + all/10 {
		w := &work{left: left}
		got := p.explain(c, w)
		require.Equal(t, protocol.BehaviorDeny, got.Behavior, "with %d steps", left)
		assert.Contains(t, got.Reason, "within the work that a decision may take")
		assert.Empty(t, got.Rule.Text)
	}
}

// With 4 kB and 100 rules the most expensive calls are decided. Scripts of the
// kind that agents send take a fraction of the budget.
func TestRealisticCallsAreDecided(t *testing.T) {
	t.Parallel()
	p := heavyPolicy(t, 100)
	for name, c := range heavyInputs(4000) {
		assert.Less(t, steps(p, c), maxWork, name)
	}
	line := "git log --oneline -5 && go test ./policy/... -run 'TestFoo' -count=1 2>&1 | tail -20; sed -n '1,80p' internal/session/reader.go; grep -rn \"func New\" . | head\n"
	for name, script := range map[string]string{
		"commands":      strings.Repeat(line, 4000/len(line)),
		"here-document": "cat > internal/x.go <<'EOF'\n" + strings.Repeat("func (a *b) c(d int) error { return fmt.Errorf(\"x/%d.go\", d) }\n", 60) + "EOF\n",
	} {
		input, err := json.Marshal(map[string]string{"command": script})
		require.NoError(t, err)
		assert.Less(t, steps(p, Call{Tool: "Bash", Input: input, Cwd: "/repo"}), maxWork/4, name)
	}
}

// Once the budget is used up, a decision stops: it follows no more links than
// the steps that were left pay for.
func TestWorkStopsAtTheBudget(t *testing.T) {
	t.Parallel()
	resolved := 0
	p, err := Compile(Rules{Deny: []string{"Read(x)"}, Cwd: "/repo", Resolve: func(path string) (string, error) {
		resolved++
		return path, nil
	}})
	require.NoError(t, err)
	c := heavyInputs(4000)["words"]
	steps(p, c)
	require.Greater(t, resolved, 400)
	resolved = 0
	got := p.explain(c, &work{left: len(c.Input)*parseSteps + 20*resolveSteps})
	assert.Equal(t, protocol.BehaviorDeny, got.Behavior)
	assert.LessOrEqual(t, resolved, 20)
}

// Each decision has a separate budget: a call that is denied for its work does not take
// from the next one, nor from those that are decided at the same time.
func TestWorkIsCountedPerDecision(t *testing.T) {
	t.Parallel()
	p := heavyPolicy(t, 100)
	large, small := heavyInputs(15000)["words"], heavyInputs(1000)["words"]
	require.Greater(t, steps(p, large), maxWork)
	want := p.Explain(small)
	require.NotEqual(t, protocol.BehaviorDeny, want.Behavior)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 3 {
				got := p.Explain(large)
				assert.Equal(t, protocol.BehaviorDeny, got.Behavior)
				assert.Contains(t, got.Reason, "within the work that a decision may take")
				assert.Equal(t, want, p.Explain(small))
			}
		})
	}
	group.Wait()
}

func BenchmarkExplain(b *testing.B) {
	for _, rules := range []int{1, 20, 100} {
		p := heavyPolicy(b, rules)
		for _, size := range []int{1000, 2000, 4000, 8000} {
			for _, name := range []string{"words", "deep paths", "commands"} {
				c := heavyInputs(size)[name]
				b.Run(fmt.Sprintf("%s/rules=%d/bytes=%d", strings.ReplaceAll(name, " ", "-"), rules, size), func(b *testing.B) {
					for b.Loop() {
						p.Explain(c)
					}
					b.ReportMetric(float64(steps(p, c)), "steps/op") // the loop resets metrics
				})
			}
		}
	}
}
