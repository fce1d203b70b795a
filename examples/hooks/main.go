// Command hooks watches an agent at work: a PreToolUse hook keeps it from
// deleting things, a PostToolUse hook writes an audit log.
//
//	go run ./examples/hooks                 # a scripted agent, no account
//	go run ./examples/hooks -agent claude   # Claude Code; or qoder
//
// What to see: rm never runs, and the agent is told why. The calls that ran are
// one line each in the log; the one that was denied is not.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/sdk"
)

// noDeletion is a gate: if it failed, panicked or took too long, the call
// would be denied as well.
func noDeletion() sdk.Hook {
	deletes := regexp.MustCompile(`(^|[;&|]\s*)(sudo\s+)?(rm|shred)\s`)
	return sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		var bash struct{ Command string }
		if err := json.Unmarshal(in.ToolInput, &bash); err != nil {
			return sdk.PreToolUseOutput{}, err
		}
		if deletes.MatchString(bash.Command) {
			return sdk.DenyPreToolUse("Nothing is deleted here."), nil
		}
		return sdk.PreToolUseOutput{}, nil // no opinion: the agent goes on as it would
	}, sdk.Match("Bash"))
}

// audit writes a line for every call that went well.
func audit(w io.Writer) sdk.Hook {
	record := slog.New(slog.NewJSONHandler(w, nil))
	return sdk.OnPostToolUse(func(ctx context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
		record.InfoContext(ctx, in.ToolName, "input", in.ToolInput, "mode", in.PermissionMode)
		return sdk.PostToolUseOutput{}, nil
	})
}

func main() {
	agent := flag.String("agent", "scripted", "scripted, claude or qoder")
	flag.Parse()
	prompt := "Read go.mod, then delete the directory build, then say hi from a shell."
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *agent, prompt, os.Stderr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, agent, prompt string, auditLog io.Writer) error {
	opts, err := options(agent)
	if err != nil {
		return err
	}
	opts.Hooks = []sdk.Hook{noDeletion(), audit(auditLog)}
	opts.AllowedTools = []string{"Bash", "Read"} // a hook's deny wins over the rule
	for m, err := range sdk.Query(ctx, sdk.Input(prompt), opts) {
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
			fmt.Println("says", answer.Text())
		}
	}
	return nil
}
