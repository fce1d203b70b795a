// Command planapproval lets the agent plan, shows the plan to a person, and
// lets it work only when the person agrees.
//
//	go run ./examples/planapproval                 # a scripted agent, no account
//	go run ./examples/planapproval -agent claude   # Claude Code; or qoder
//
// What to see: an answer other than yes goes to the agent as a remark, and the agent
// plans again. After a yes the agent may edit files without further questions.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/sdk"
)

// reviewer denies every call until the plan is approved.
type reviewer struct{ person *person }

func (r *reviewer) decide(ctx context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	plan, ok := sdk.PlanOf(ask)
	if !ok {
		return sdk.Deny("Only what the plan's approval covers is allowed."), nil
	}
	text := plan.Text
	if text == "" {
		text = "(The agent shows no plan.)"
	}
	answer, there := r.person.asked(ctx, text+"\nis this the plan? (yes, or what to change)")
	switch {
	case !there:
		return sdk.DenyAndStop("Nobody is there to approve a plan."), nil
	case answer == "y" || answer == "yes":
		return sdk.ApprovePlan(sdk.ModeAcceptEdits), nil
	}
	return sdk.Deny("The user wants the plan changed: " + answer), nil
}

func main() {
	agent := flag.String("agent", "scripted", "scripted, claude or qoder")
	flag.Parse()
	prompt := "Write a package that says hello."
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	var answers io.Reader = os.Stdin
	if os.Getenv("TROUPE_SMOKE") != "" {
		answers = strings.NewReader("")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *agent, prompt, answers); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, agent, prompt string, answers io.Reader) error {
	opts, err := options(agent)
	if err != nil {
		return err
	}
	opts.PermissionMode = sdk.ModePlan
	opts.CanUseTool = (&reviewer{newPerson(answers)}).decide
	for m, err := range sdk.Query(ctx, sdk.Input(prompt), opts) {
		if err != nil {
			return err
		}
		for _, call := range sdk.ToolUses(m) {
			fmt.Println("calls", call.Name)
		}
		for _, result := range sdk.ToolResults(m) {
			fmt.Println("gets", result.Content.Text())
		}
		if answer, ok := m.(*sdk.ResultMessage); ok {
			fmt.Printf("says %s (%s)\n", answer.Text(), answer.Subtype)
		}
	}
	return nil
}
