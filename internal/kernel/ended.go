package kernel

import (
	"context"
	"errors"
	"fmt"
)

// StoppedBy reports whether err is the end of ctx.
func StoppedBy(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// Ended makes an error of an ended ctx match context.Canceled or
// context.DeadlineExceeded, whatever cause the ctx was given.
func Ended(ctx context.Context, err error) error {
	if !StoppedBy(ctx, err) || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctx.Err(), err)
}
