package simtests

import (
	"context"

	"github.com/agent-troupe/troupe/sdk"
)

// Ask sends a prompt and reads the turn to its end. It returns the turn's messages, the
// result among them, and the result. Of an error that ends the turn early the messages
// so far are returned, too. A result that says that the turn failed is not an error;
// see sdk.ResultMessage.Failed.
func Ask(ctx context.Context, c *sdk.Client, prompt string) ([]sdk.Message, *sdk.ResultMessage, error) {
	turn, err := c.Send(ctx, sdk.UserText(prompt))
	if err != nil {
		return nil, nil, err
	}
	messages, err := sdk.Collect(turn.Messages(ctx))
	if err != nil {
		return messages, nil, err
	}
	result, err := turn.Result(ctx)
	return messages, result, err
}

// Ask is the function [Ask] with the world's context.
func (w *World) Ask(c *sdk.Client, prompt string) ([]sdk.Message, *sdk.ResultMessage, error) {
	return Ask(w.ctx, c, prompt)
}
