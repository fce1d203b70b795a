// Command approval asks a person in the terminal what the agent may do. It allows
// reads, redirects writes to a scratch directory, and passes the agent's questions
// on. For every other call it asks. With -plan the agent first makes a plan, and works
// only when the person agrees to it.
//
//	go run ./examples/approval                 # a scripted agent, no account
//	go run ./examples/approval -plan           # a scripted agent that plans
//	go run ./examples/approval -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// The agent is a script because the demonstration of the other examples has no questions and
// no plans.
//
// Look for: the read runs, the file is written to the scratch directory, and the question
// and the command wait for your answer. "always" also changes the agent's rules, "stop"
// ends the turn. After the end of the input every call is denied. An answer to a plan
// other than yes goes to the agent as a remark, and the agent plans again. After a yes the
// agent may edit files without further questions.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

func main() {
	agent := choice.Flags()
	plan := flag.Bool("plan", false, "let the agent plan first")
	flag.Parse()
	prompt := "Read go.mod, write a summary to notes.txt, and run the tests."
	if *plan {
		prompt = "Write a package that says hello."
	}
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	var answers io.Reader = os.Stdin
	if os.Getenv("TROUPE_SMOKE") != "" {
		answers = strings.NewReader("")
	}
	scratch := filepath.Join(os.TempDir(), fmt.Sprintf("troupe-scratch-%d", os.Getpid()))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := options(agent, *plan)
	if err != nil {
		log.Fatal(err)
	}
	setUp(opts, scratch, *plan, newPerson(answers))
	if err := run(ctx, opts, prompt); err != nil {
		log.Fatal(err)
	}
}

// setUp has the person decide.
func setUp(opts *sdk.Options, scratch string, plan bool, asked *person) {
	opts.CanUseTool = (&gate{scratch, asked}).decide
	if plan {
		opts.PermissionMode, opts.CanUseTool = sdk.ModePlan, (&reviewer{asked}).decide
	}
}

func run(ctx context.Context, opts *sdk.Options, prompt string) error {
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
