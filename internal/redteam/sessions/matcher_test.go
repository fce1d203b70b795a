package sessions_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-troupe/troupe/sdk"
)

// A hook is called for Bash by each pattern that matches it as a regular expression of Go, or
// the pattern is refused, or a warning names it: a list of names is compared name by name, so
// "Ba" is no part of Bash. An agent drops a hook whose pattern its engine refuses.
func TestCLIMatchersThatNeverFire(t *testing.T) {
	patterns := []string{"Bash", "bash", "(?i)bash", "(?i:bash)", "(?i)bash|write", "Bash|(?i)write", `\ABash\z`, `^Bash\z`, `\QBash\E`, "(?P<tool>Bash)", "(?<tool>Bash)", "[[:alpha:]]+", "[[:upper:]].*", `\p{L}+`, `\pL+`, `\p{Lu}.*`, "(?s)B.*", "(?s:B.*)", "(?U)B.*", "(?m)^Bash$", "(?:Bash)", "^(Bash|Write)$", "Ba", "B.*", ".*", "*", "", "Bash|Write", "Bash, Write", "B[a-z]+", "B\\w+", `B\x{61}sh`, `\x42ash`, `B\141sh`, `\a|Bash`, "Bash++", "Bash{1}", "^Bash$", "Bash$", "^Ba", "ash"}
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	var mu sync.Mutex
	fired := map[string]bool{}
	kept := []string{}
	for _, p := range patterns {
		h := sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			fired[p] = true
			return sdk.PreToolUseOutput{}, nil
		}, sdk.Match(p))
		alone := *o
		alone.Hooks = []sdk.Hook{h}
		if _, err := sdk.PreviewLaunch(&alone); err != nil {
			t.Logf("refused %q: %v", p, err)
			continue
		}
		o.Hooks = append(o.Hooks, h)
		kept = append(kept, p)
	}
	c := sdk.NewClient(o)
	if err := c.Connect(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.turn(c, one(shell("true")))
	warned := map[string]bool{}
	for _, w := range c.Warnings() {
		t.Log(w)
		if strings.HasPrefix(w.Option, "Hooks[") {
			warned[w.Rule] = true
		}
	}
	_ = c.Close(r.ctx)
	for _, p := range kept {
		re, err := regexp.Compile(p)
		goes := err == nil && re.MatchString("Bash")
		if goes && !fired[p] && !warned[p] {
			t.Errorf("the gate with Match(%q) is never asked, and nothing says so", p)
		}
		if fired[p] && warned[p] {
			t.Errorf("the warning about Match(%q) is wrong: the hook was called", p)
		}
	}
	t.Log("fired:", slices.Sorted(maps.Keys(fired)))
	r.mu.Lock()
	t.Log(r.events)
	r.mu.Unlock()
}
