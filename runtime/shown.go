package runtime

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
)

// Format writes which fields are set, without secrets, for every verb.
func (p Preview) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(p)) }

// LogValue returns the text that Format writes, for package log/slog.
func (p Preview) LogValue() slog.Value { return slog.StringValue(shown.Struct(p)) }
