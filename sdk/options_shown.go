package sdk

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/dialect"
)

// String shows which options are set, without secrets: the values of numbers and
// booleans, and of Cwd, Model, PermissionMode and a few more. Everything else is
// hidden, here and in logs of package log/slog. MarshalJSON has all of it.
func (o Options) String() string { return dialect.Shown(o) }

// GoString is String.
func (o Options) GoString() string { return o.String() }

// Format writes String for every verb of package fmt.
func (o Options) Format(f fmt.State, verb rune) { dialect.PrintShown(f, verb, o.String()) }

// LogValue is String, for package log/slog.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }
