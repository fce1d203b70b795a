package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Errors to be matched with [errors.Is].
var (
	// ErrIntensity matches a [Failure] of a supervisor whose children failed more often
	// than its [Intensity] allows.
	ErrIntensity = errors.New("supervisor: restart intensity exceeded")
	// ErrStart is the reason of a child that was killed because it did not start within
	// Child.Start.
	ErrStart = errors.New("did not start in time")
	// ErrStuck is the reason of a [Failure] because of a child that did not end.
	ErrStuck = errors.New("did not stop, not even when killed")
	// ErrSignificant is the reason of a supervisor that has stopped because a significant
	// child had ended. The supervisor's error also wraps the child's reason.
	ErrSignificant = errors.New("supervisor: significant child ended")
)

// Failed is one failure of one incarnation of a child.
type Failed struct {
	At          time.Time // when it was reported
	Child       string    // the child's name
	Incarnation int       // the incarnation that ended
	Reason      error     // nil: a permanent child ended normally
}

func (f Failed) String() string { return failed(f.Child, f.Incarnation, f.Reason) }

// Failure is why a supervisor gave up. It matches the reason of the last failure and of
// the earlier failures within the window; if a reason is a Failure of a child supervisor,
// it also matches that one's reasons.
type Failure struct { //nolint:errname // supervision speaks of failures, and this one is more than an error
	Supervisor  string    // Spec.Name of the one that gave up
	Child       string    // whose failure was one too many, or which is stuck
	Incarnation int       // of that child
	Reason      error     // the child's; ErrStuck; nil: a permanent child ended normally
	Why         string    // why the strategy escalated; empty if it did not
	Limit       Intensity // that was exceeded; zero when a child is stuck
	Earlier     []Failed  // the other failures in the window, oldest first
}

// Error returns one line, even if the reason has several.
func (f *Failure) Error() string {
	why := ""
	switch {
	case f.Limit.Max < 0:
		why = ", being told never to restart"
	case f.Limit.Max > 0:
		why = fmt.Sprintf(" after %s within %v", failures(len(f.Earlier)+1), f.Limit.Window)
	}
	if f.Why != "" {
		why = " (" + f.Why + ")"
	}
	return oneLine(fmt.Sprintf("supervisor %s gave up%s: %s", f.Supervisor, why, failed(f.Child, f.Incarnation, f.Reason)))
}

// Is makes the failure match ErrIntensity.
func (f *Failure) Is(target error) bool {
	return target == ErrIntensity && f.Limit != Intensity{}
}

// Unwrap returns the reasons, the last one first.
func (f *Failure) Unwrap() []error {
	var reasons []error
	if f.Reason != nil {
		reasons = append(reasons, f.Reason)
	}
	for i := len(f.Earlier) - 1; i >= 0; i-- {
		if r := f.Earlier[i].Reason; r != nil {
			reasons = append(reasons, r)
		}
	}
	return reasons
}

// LogValue implements [slog.LogValuer].
func (f *Failure) LogValue() slog.Value {
	earlier := make([]string, len(f.Earlier))
	for i, e := range f.Earlier {
		earlier[i] = oneLine(e.String())
	}
	return slog.GroupValue(
		slog.String("supervisor", f.Supervisor),
		slog.String("child", f.Child),
		slog.Int("incarnation", f.Incarnation),
		slog.String("reason", reasonText(f.Reason)),
		whyAttr(f.Why),
		slog.Any("earlier", earlier),
	)
}

// notStarted is the reason of a child that was killed because it did not start.
func notStarted(limit time.Duration, reason error) error {
	err := fmt.Errorf("%w (%v)", ErrStart, limit)
	if reason == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

func significantEnded(child string, incarnation int, reason error) error {
	if reason == nil {
		return fmt.Errorf("%w: %s", ErrSignificant, life(child, incarnation))
	}
	return fmt.Errorf("%w: %s: %w", ErrSignificant, life(child, incarnation), reason)
}

// life is how texts name one incarnation of a child.
func life(child string, incarnation int) string { return fmt.Sprintf("%s#%d", child, incarnation) }

func failed(child string, incarnation int, reason error) string {
	return life(child, incarnation) + ": " + reasonText(reason)
}

func reasonText(reason error) string {
	if reason == nil {
		return "ended normally"
	}
	return reason.Error()
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// failures is a number of them in words.
func failures(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}
