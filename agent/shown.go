package agent

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
)

// Format writes which fields are set, without secrets, for every verb.
func (l Launch) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(l)) }

// LogValue returns the text that Format writes, for package log/slog.
func (l Launch) LogValue() slog.Value { return slog.StringValue(shown.Struct(l)) }
