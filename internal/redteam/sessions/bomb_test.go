package sessions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/policy"
)

// The time of one decision grows with the square of the length of a path (and
// with the cube where cd commands stand before it). Nothing ends it: Explain
// has no context, and the task of a hook that passed its deadline goes on.
func TestTimeOfADecision(t *testing.T) {
	rules := policy.Rules{Allow: []string{"Bash", "Read"}}
	for _, d := range []string{".env", "secrets/**", "**/*.pem", "~/.ssh/**", "//etc/**", "~/.aws/**", "**/id_rsa", "**/.git/**", "**/*.key", "**/*.p12"} {
		rules.Deny = append(rules.Deny, "Read("+d+")", "Edit("+d+")")
	}
	p := compile(t, rules)
	for _, n := range []int{125, 250, 500} { // 1000 takes minutes
		command := "cd " + strings.Repeat("a/", n/2) + ";cat " + strings.Repeat("a ", n/2)
		start := time.Now()
		p.Explain(bashCall(command))
		took := time.Since(start)
		t.Logf("%5d bytes %v", len(command), took.Round(time.Millisecond))
		if took > time.Second {
			t.Errorf("a decision about %d bytes took %v", len(command), took.Round(time.Millisecond))
		}
	}
	start := time.Now()
	p.Explain(policy.Call{Tool: "Read", Input: js(t, map[string]string{"file_path": "/repo/" + strings.Repeat("a/", 2000) + "x"})})
	t.Logf("Read of a path of 4 kB: %v", time.Since(start).Round(time.Millisecond))
	if time.Since(start) > time.Second {
		t.Error("a decision about a path took longer than a second")
	}
}
