package transport

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/internal/shown"
)

// Format writes which fields are set, without secrets, for every verb.
func (c Command) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue is what Format writes, for package log/slog.
func (c Command) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }

// Format writes the file's name without its content, for every verb.
func (f File) Format(s fmt.State, verb rune) { shown.Print(s, verb, shown.Struct(f)) }

// LogValue is what Format writes, for package log/slog.
func (f File) LogValue() slog.Value { return slog.StringValue(shown.Struct(f)) }
