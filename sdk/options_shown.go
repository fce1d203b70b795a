package sdk

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
)

// Format writes which fields are set, without secrets, for every verb.
func (c Claim) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue returns the text that Format writes, for package log/slog.
func (c Claim) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }

// Format writes which fields are set, for every verb, without the settings, which may
// have secrets.
func (s SettingsSource) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(s)) }

// LogValue returns the text that Format writes, for package log/slog.
func (s SettingsSource) LogValue() slog.Value { return slog.StringValue(shown.Struct(s)) }

// Format writes which fields are set, for every verb, without the settings, which may
// have secrets.
func (r ResolvedSettings) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r ResolvedSettings) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }
