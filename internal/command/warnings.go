package command

import (
	"context"
	"fmt"
	"log/slog"
)

// warn writes a warning to stderr. All warnings have this form.
func (c *console) warn(text string) { c.note("warning: %s", printable(text)) }

// remarks is the log of a run without --verbose: warnings and errors look like messages of
// the command, without a time and a level.
type remarks struct {
	console *console
	least   slog.Level
	attrs   string // of the logger
}

// Enabled implements [slog.Handler].
func (h *remarks) Enabled(_ context.Context, level slog.Level) bool { return level >= h.least }

// Handle implements [slog.Handler].
func (h *remarks) Handle(_ context.Context, r slog.Record) error {
	text := r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		text += attrText(a)
		return true
	})
	if r.Level < slog.LevelError {
		h.console.warn(text)
	} else {
		h.console.note("error: %s", printable(text))
	}
	return nil
}

// WithAttrs implements [slog.Handler].
func (h *remarks) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	for _, a := range attrs {
		with.attrs += attrText(a)
	}
	return &with
}

// WithGroup implements [slog.Handler]. Groups are not shown.
func (h *remarks) WithGroup(string) slog.Handler { return h }

func attrText(a slog.Attr) string { return fmt.Sprintf(", %s: %v", a.Key, a.Value.Resolve()) }
