// Command approval asks a person in the terminal what the agent may do. It allows
// reads, redirects writes to a scratch directory, and passes the agent's questions
// on. For every other call it asks.
//
//	go run ./examples/approval                 # a scripted agent, no account
//	go run ./examples/approval -agent claude   # Claude Code; or qoder
//
// What to see: the read runs, the file is written to the scratch directory, and the
// question and the command wait for your answer. "always" also changes the agent's
// rules, "stop" ends the turn. After the end of the input every call is denied.
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

	"github.com/agent-troupe/troupe/sdk"
)

func main() {
	agent := flag.String("agent", "scripted", "scripted, claude or qoder")
	flag.Parse()
	prompt := "Read go.mod, write a summary to notes.txt, and run the tests."
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
	if err := run(ctx, *agent, prompt, scratch, answers); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, agent, prompt, scratch string, answers io.Reader) error {
	opts, err := options(agent)
	if err != nil {
		return err
	}
	opts.CanUseTool = (&gate{scratch, newPerson(answers)}).decide
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
			fmt.Printf("says %s (denied calls: %d)\n", answer.Text(), len(answer.PermissionDenials))
		}
	}
	return nil
}
