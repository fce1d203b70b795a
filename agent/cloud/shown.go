package cloud

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
)

// Format writes which fields are set, without secrets, for every verb.
func (c Config) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue returns the text that Format writes, for package log/slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }
