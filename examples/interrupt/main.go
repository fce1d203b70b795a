// Command interrupt stops an agent in the middle of an answer, reads the
// receipt, and continues the same session.
//
//	go run ./examples/interrupt                 # a scripted agent, no account
//	go run ./examples/interrupt -agent claude   # Claude Code; or qoder
//
// Look for: the counting stops after a few numbers, the turn's result says that it was
// aborted, and the same agent answers the second prompt.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/demo"
	"github.com/agent-troupe/troupe/sdk"
)

func main() { demo.Main("Count from 1 to 1000, and nothing else.", run) }

func run(ctx context.Context, agent, prompt string) (err error) {
	opts, err := options(agent)
	if err != nil {
		return err
	}
	opts.IncludePartialMessages = true // the loop sees the answer while it is written
	client := sdk.NewClient(opts)
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))) }()

	turn, err := client.Send(ctx, sdk.UserText(prompt))
	if err != nil {
		return err
	}
	const enough = 5
	pieces := 0
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *sdk.PartialAssistantMessage:
			if m.Text() == "" || pieces == enough {
				continue // or written before the agent read the interrupt
			}
			fmt.Print(m.Text())
			if pieces++; pieces == enough {
				receipt, err := client.Interrupt(ctx) // may be called inside the loop that reads
				if err != nil {
					return err
				}
				fmt.Printf("\n-- interrupted; messages that still wait: %d\n", len(receipt.StillQueued))
			}
		case *sdk.ResultMessage: // an interrupted turn has a result, too
			fmt.Printf("-- result: %s (%s)\n", m.Subtype, m.TerminalReason)
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
