package dialect

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
)

// A launch holds secrets in almost every field that can hold text. Printed and logged
// it shows the names of the fields that are set, and the values of a few.

// Format writes which fields are set, without secrets, for every verb.
func (l Launch) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(l)) }

// LogValue returns the text that Format writes, for package log/slog.
func (l Launch) LogValue() slog.Value { return slog.StringValue(shown.Struct(l)) }

// Format writes the variable's name without its value, for every verb.
func (v EnvVar) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(v)) }

// LogValue returns the text that Format writes, for package log/slog.
func (v EnvVar) LogValue() slog.Value { return slog.StringValue(shown.Struct(v)) }

// Format writes the file's name without its content, for every verb.
func (f File) Format(s fmt.State, verb rune) { shown.Print(s, verb, shown.Struct(f)) }

// LogValue returns the text that Format writes, for package log/slog.
func (f File) LogValue() slog.Value { return slog.StringValue(shown.Struct(f)) }

// Format writes which facts are set, without secrets, for every verb.
func (f Facts) Format(s fmt.State, verb rune) { shown.Print(s, verb, shown.Struct(f)) }

// LogValue returns the text that Format writes, for package log/slog.
func (f Facts) LogValue() slog.Value { return slog.StringValue(shown.Struct(f)) }

// Format writes the options without secrets, for every verb.
func (o Input) Format(f fmt.State, verb rune) { o.Options.Format(f, verb) }

// LogValue returns the text that Format writes, for package log/slog.
func (o Input) LogValue() slog.Value { return o.Options.LogValue() }
