package kernel

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// TimeoutError says which wait ran out, and of what limit. It matches
// [context.DeadlineExceeded].
type TimeoutError struct {
	What  string        // "initialize", "control request set_model", …
	Limit time.Duration // the limit that was in force
	SetBy string        // the option that sets it, or "default"
	// StderrTail and StdoutTail are what the agent wrote last, at most 2 KiB each, as
	// it wrote them; StdoutTail only of lines that were no frames. Set for
	// "initialize".
	StderrTail string
	StdoutTail string
}

func (e *TimeoutError) Error() string {
	by := ""
	if e.SetBy != "" {
		by = " (set by " + e.SetBy + ")"
	}
	return fmt.Sprintf("%s: no answer within %v%s%s", e.What, e.Limit, by, Tails(e.StderrTail, e.StdoutTail))
}

// Tails is the end of an error's text that says what an agent wrote last.
func Tails(stderr, stdout string) string {
	var b strings.Builder
	for _, tail := range []struct{ name, text string }{{"stderr", stderr}, {"stdout", stdout}} {
		if text := strings.TrimSpace(tail.text); text != "" {
			b.WriteString("; " + tail.name + ": " + Visible(text))
		}
	}
	return b.String()
}

// Is makes the error match context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout reports true, as in [net.Error].
func (e *TimeoutError) Timeout() bool { return true }

// WithTimeout is context.WithTimeout on a clock of the caller's. The cause of
// an expired context is e. A limit of zero or less means none.
func WithTimeout(ctx context.Context, clk Clock, e *TimeoutError) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if e.Limit <= 0 {
		return ctx, func() { cancel(context.Canceled) }
	}
	t := clk.AfterFunc(e.Limit, func() { cancel(e) })
	return ctx, func() {
		t.Stop()
		cancel(context.Canceled)
	}
}
