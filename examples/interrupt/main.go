// Command interrupt stops an agent in the middle of its work, reads the receipt, and
// continues the same session.
//
//	go run ./examples/interrupt                 # a demonstration, no account
//	go run ./examples/interrupt -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// Look for: the command would run for 20 seconds, and ends at once; the turn's result says that
// it was aborted; the same agent answers the second prompt.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

func main() { choice.Main("Run `sleep 20` in a shell, then say good morning.", run) }

func run(ctx context.Context, agent *choice.Agent, prompt string) (err error) {
	opts, err := agent.Options()
	if err != nil {
		return err
	}
	opts.AllowedTools = append(opts.AllowedTools, "Bash(sleep *)")
	client := sdk.NewClient(opts)
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))) }()

	turn, err := client.Send(ctx, sdk.UserText(prompt))
	if err != nil {
		return err
	}
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return err
		}
		for _, call := range sdk.ToolUses(m) {
			fmt.Printf("calls %s %s\n", call.Name, call.Input)
			receipt, err := client.Interrupt(ctx) // may be called inside the loop that reads
			if err != nil {
				return err
			}
			fmt.Printf("-- interrupted; messages that still wait: %d\n", len(receipt.StillQueued))
		}
		if result, ok := m.(*sdk.ResultMessage); ok { // an interrupted turn has a result, too
			fmt.Printf("-- result: %s (%s)\n", result.Subtype, result.TerminalReason)
		}
	}

	if turn, err = client.Send(ctx, sdk.UserText("Why did you stop?")); err != nil {
		return err
	}
	result, err := turn.Result(ctx)
	if err != nil {
		return err
	}
	fmt.Println(result.Text())
	return nil
}
