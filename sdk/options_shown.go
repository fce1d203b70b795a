package sdk

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/internal/shown"
)

// String shows which options are set, without secrets: the values of numbers and
// booleans, and of Cwd, Model, PermissionMode and a few more. Everything else is
// hidden, here and in logs of package log/slog. MarshalJSON has all of it.
func (o Options) String() string { return shown.Struct(o) }

// GoString is String.
func (o Options) GoString() string { return o.String() }

// Format writes String for every verb of package fmt.
func (o Options) Format(f fmt.State, verb rune) { shown.Print(f, verb, o.String()) }

// LogValue is String, for package log/slog. That package logs a nil *Options as it does
// every nil pointer whose type has such a method: as an error text.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// Format writes which fields are set, without secrets, for every verb.
func (c Claim) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue is what Format writes, for package log/slog.
func (c Claim) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }
