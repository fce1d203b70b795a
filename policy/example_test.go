package policy_test

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/policy"
)

// Rules with relative paths need a Cwd; package sdk fills it in, with Options.Cwd.
func ExampleCompile() {
	rules, err := policy.Compile(policy.Rules{
		Allow: []string{"Bash(git:*)", "Read(./**)"},
		Deny:  []string{"Bash(git push:*)", "Read(.env)"},
		Cwd:   "/repo",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []policy.Call{
		{Tool: "Bash", Input: json.RawMessage(`{"command":"git log --oneline"}`), Cwd: "/repo"},
		{Tool: "Bash", Input: json.RawMessage(`{"command":"git status; sudo -u ci git push"}`), Cwd: "/repo"},
		{Tool: "Read", Input: json.RawMessage(`{"file_path":"/repo/deploy/.env"}`), Cwd: "/repo"},
		{Tool: "Read", Input: json.RawMessage(`{"file_path":"/etc/passwd"}`), Cwd: "/repo"},
	} {
		fmt.Println(rules.Explain(call))
	}
	// Output:
	// allow: the allow rule Bash(git:*) is about "git log --oneline"
	// deny: the deny rule Bash(git push:*) is about "sudo -u ci git push"
	// deny: the deny rule Read(.env) is about "/repo/deploy/.env"
	// ask: "/etc/passwd": no rule is about it
}
