package main

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func Example() {
	if err := run(context.Background(), &choice.Agent{}, "Go."); err != nil {
		fmt.Println(err)
	}
	// Output:
	// calls Read {"file_path":"go.mod"}
	// gets what is in go.mod
	// calls Read {"file_path":"deploy/.env"}
	// gets PreToolUse:Read hook error: The host's policy denies this call by the rule Read(.env).
	// calls Bash {"command":"git log --oneline | go test ./..."}
	// gets ok
	// calls Bash {"command":"git status; sudo -u ci git push"}
	// gets PreToolUse:Bash hook error: The host's policy denies this call by the rule Bash(git push:*).
	// calls Bash {"command":"git log > /etc/motd"}
	// gets PreToolUse:Bash hook error: No rule of the host's policy allows this call, and there is nobody to ask.
	// says The rules are strict. (denied calls: 3)
}

func Example_explain() {
	for _, command := range []string{
		"git log", "git log | go test ./...", "git commit -m x", "git -c core.pager=sh log", "echo $(git push)", "g'i't push", "make",
	} {
		if err := explain(command); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// allow: the allow rule Bash(git:*) is about "git log"
	// allow: Bash(git:*) is about "git log", Bash(go test *) is about "go test ./..."
	// ask: the ask rule Bash(git commit:*) is about "git commit -m x"
	// ask: the ask rule Bash(git commit:*) cannot be ruled out ("git -c core.pager=sh log")
	// deny: the deny rule Bash(git push:*) is about "git push"
	// deny: the deny rule Bash(git push:*) is about "git push"
	// ask: "make": no rule is about it
}
