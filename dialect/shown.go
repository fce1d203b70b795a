package dialect

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/internal/shown"
)

// Options and MCP servers hold secrets in almost every field that can hold a
// text. Printed and logged they show the names of the fields that are set, and
// the values of a few. Marshalled to JSON they are whole.

// String shows which fields are set, without secrets.
func (o Options) String() string { return shown.Struct(o) }

// GoString is String.
func (o Options) GoString() string { return o.String() }

// Format writes String for every verb.
func (o Options) Format(f fmt.State, verb rune) { shown.Print(f, verb, o.String()) }

// LogValue is String, for package log/slog.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// Format writes which fields are set, without secrets, for every verb.
func (l Launch) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(l)) }

// LogValue is what Format writes, for package log/slog.
func (l Launch) LogValue() slog.Value { return slog.StringValue(shown.Struct(l)) }

// Format writes the variable's name without its value, for every verb.
func (v EnvVar) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(v)) }

// LogValue is what Format writes, for package log/slog.
func (v EnvVar) LogValue() slog.Value { return slog.StringValue(shown.Struct(v)) }

// Format writes the file's name without its content, for every verb.
func (f File) Format(s fmt.State, verb rune) { shown.Print(s, verb, shown.Struct(f)) }

// LogValue is what Format writes, for package log/slog.
func (f File) LogValue() slog.Value { return slog.StringValue(shown.Struct(f)) }
