// Command permission decides in Go what the agent may do: it allows reads,
// sends writes to a scratch directory, and asks a person about all else.
//
//	go run ./examples/permission                 # a scripted agent, no account
//	go run ./examples/permission -agent claude   # Claude Code; or qoder
//
// What to see: the read goes through, the file is written elsewhere than the
// agent said, and the command waits for your y; anything else denies it, and so
// does the end of the input.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/sdk"
)

// policy decides. It may be asked about many calls at once.
type policy struct {
	scratch string
	person  *person
}

func (p *policy) decide(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	switch r.ToolName {
	case "Read", "Glob", "Grep":
		return sdk.Allow(), nil
	case "Write":
		input := map[string]any{}
		if err := json.Unmarshal(r.Input, &input); err != nil {
			return sdk.PermissionResult{}, err // an error denies, and so does the zero result
		}
		path, _ := input["file_path"].(string)
		input["file_path"] = filepath.Join(p.scratch, filepath.Base(path))
		moved, err := json.Marshal(input)
		return sdk.AllowInput(moved), err
	}
	if p.person.agrees(ctx, fmt.Sprintf("may it use %s with %s?", r.ToolName, r.Input)) {
		return sdk.Allow(), nil
	}
	return sdk.Deny("The user said no. Do without it."), nil
}

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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	opts.CanUseTool = (&policy{scratch, newPerson(answers)}).decide
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
			fmt.Printf("says %s (%d calls denied)\n", answer.Text(), len(answer.PermissionDenials))
		}
	}
	return nil
}
