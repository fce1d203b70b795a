// Command hooks watches an agent at work: a PreToolUse hook keeps it from
// deleting things, a PostToolUse hook writes an audit log.
//
//	go run ./examples/hooks                 # a demonstration, no account
//	go run ./examples/hooks -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// Look for: rm never runs, not even behind sudo or in a subshell, and the agent gets
// the reason. The log has one line for each call that ran, and none for denied calls.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/sdk"
)

// noDeletion is a gate: if it fails, panics or takes too long, the call is denied.
// Package policy parses the command as a shell does: a regular expression would miss
// "git status; sudo -u ci rm x" or "echo $(rm x)". No parser knows what a script does:
// to limit scripts, list the allowed calls instead, see examples/policy.
func noDeletion() (sdk.Hook, error) {
	rules, err := policy.Compile(policy.Rules{Deny: []string{"Bash(rm:*)", "Bash(shred:*)"}})
	if err != nil {
		return sdk.Hook{}, err
	}
	return sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		verdict := rules.Explain(policy.Call{Tool: in.ToolName, Input: in.ToolInput, Cwd: in.Cwd})
		if verdict.Behavior == protocol.BehaviorDeny {
			return sdk.DenyPreToolUse(fmt.Sprintf("Nothing is deleted here (%v).", verdict)), nil
		}
		return sdk.PreToolUseOutput{}, nil // no decision: the agent decides as without the hook
	}, sdk.Match("Bash")), nil
}

// audit writes a line for every call that succeeded. Decode reads only the keys that
// the struct names.
func audit(w io.Writer) sdk.Hook {
	record := slog.New(slog.NewJSONHandler(w, nil))
	return sdk.OnPostToolUse(func(ctx context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
		var input struct {
			Command string `json:"command"`
			Path    string `json:"file_path"`
		}
		if err := in.Decode(&input); err != nil {
			return sdk.PostToolUseOutput{}, err
		}
		record.InfoContext(ctx, in.ToolName, "command", input.Command, "path", input.Path, "mode", in.PermissionMode)
		return sdk.PostToolUseOutput{}, nil
	})
}

// describe says what a call would do. Package tools has a type for the input of each
// of the agents' own tools; block.Decode reads any other.
func describe(block *sdk.ToolUseBlock) string {
	input, err := tools.DecodeInput(block.Name, block.Input)
	if err != nil {
		return fmt.Sprintf("calls %s with an input that cannot be read: %v", block.Name, err)
	}
	switch input := input.(type) {
	case *tools.BashInput:
		return "runs " + input.Command
	case *tools.ReadInput:
		return "reads " + input.FilePath
	default:
		return fmt.Sprintf("calls %s %s", block.Name, block.Input)
	}
}

func main() {
	choice.Main("Read README.md, then delete the directory build, then say hi from a shell.", func(ctx context.Context, agent *choice.Agent, prompt string) error {
		return run(ctx, agent, prompt, os.Stderr)
	})
}

func run(ctx context.Context, agent *choice.Agent, prompt string, auditLog io.Writer) error {
	opts, err := agent.Options()
	if err != nil {
		return err
	}
	gate, err := noDeletion()
	if err != nil {
		return err
	}
	opts.Hooks = []sdk.Hook{gate, audit(auditLog)}
	opts.AllowedTools = []string{"Bash", "Read"} // a hook's deny wins over the rule
	for m, err := range sdk.Query(ctx, prompt, opts) {
		if err != nil {
			return err
		}
		for _, call := range sdk.ToolUses(m) {
			fmt.Println(describe(call))
		}
		for _, result := range sdk.ToolResults(m) {
			fmt.Println("gets", strings.TrimSpace(result.Content.Text()))
		}
		if answer, ok := m.(*sdk.ResultMessage); ok {
			fmt.Println("says", answer.Text())
		}
	}
	return nil
}
