// Command policy decides about the agent's tool calls by rules. A call that no rule
// names goes to the CanUseTool callback. This program has no callback, so such a call
// is denied.
//
//	go run ./examples/policy                           # a scripted agent, no account
//	go run ./examples/policy -agent claude             # Claude Code; or qoder; -model: the embedded agent
//	go run ./examples/policy -explain 'git push -f'    # which rule decides about a command
//
// The agent is a script because some of its commands must never run, as a push with sudo.
//
// Look for: the reads and the git log run. The secret is not read, although the agent
// would not have asked. The command that hides a push is denied, and the answer names the
// rule.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
)

// rules say what the agent may do. Deny rules come before ask rules, ask rules before
// allow rules.
func rules() *sdk.Policy {
	return &sdk.Policy{
		Allow: []string{"Bash(git:*)", "Bash(go test *)", "Read(./**)", "WebFetch(domain:go.dev)"},
		Ask:   []string{"Bash(git commit:*)"},
		Deny:  []string{"Bash(git push:*)", "Read(.env)"},
		Cwd:   "/repo", // the directory of the scripted agent
	}
}

func main() {
	command := flag.String("explain", "", "a shell command to explain, without an agent")
	choice.Main("Look around, and publish what is there.", func(ctx context.Context, agent *choice.Agent, prompt string) error {
		if *command != "" {
			return explain(*command)
		}
		return run(ctx, agent, prompt)
	})
}

// explain says which rule decides about a shell command, and why.
func explain(command string) error {
	compiled, err := policy.Compile(*rules())
	if err != nil {
		return err
	}
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return err
	}
	fmt.Println(compiled.Explain(policy.Call{Tool: "Bash", Input: input, Cwd: rules().Cwd}))
	return nil
}

func run(ctx context.Context, agent *choice.Agent, prompt string) error {
	opts, err := options(agent)
	if err != nil {
		return err
	}
	opts.Policy = rules()
	if *agent == (choice.Agent{}) {
		opts.Cwd = opts.Policy.Cwd
	} else {
		opts.Policy.Cwd = "" // empty: the working directory of the agent
	}
	for m, err := range sdk.Query(ctx, prompt, opts) {
		if err != nil {
			return err
		}
		for _, call := range sdk.ToolUses(m) {
			fmt.Printf("calls %s %s\n", call.Name, call.Input)
		}
		for _, result := range sdk.ToolResults(m) {
			fmt.Println("gets", result.Content.Text())
		}
		if answer, ok := m.(*sdk.ResultMessage); ok {
			fmt.Printf("says %s (denied calls: %d)\n", answer.Text(), len(answer.PermissionDenials))
		}
	}
	return nil
}
