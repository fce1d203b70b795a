package simtests

import (
	"context"
	"log/slog"
	"strings"

	"github.com/agent-troupe/troupe/model"
)

// theKey is the key of the model. It must be nowhere but in the header of requests.
const theKey = "sk-simulated-0123456789abcdef"

// keyNames are the variables that have keys: those of all servers that are known, and those
// of a vendor's own command.
func keyNames() []string {
	names := []string{"TROUPE_MODEL_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"}
	for _, s := range model.DefaultProfiles().Servers {
		if s.KeyName != "" {
			names = append(names, s.KeyName)
		}
	}
	return names
}

// secret checks a text for the key.
func (ms *minds) secret(where, text string) {
	if strings.Contains(text, theKey) {
		ms.w.Errorf("secret: the key is in %s: %.300s", where, text)
	}
}

// keyless is a log that looks for the key.
type keyless struct {
	w    *World
	with string // attributes of all its records
}

// Enabled implements [slog.Handler].
func (k keyless) Enabled(context.Context, slog.Level) bool {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	return k.w.loops != nil
}

// Handle implements [slog.Handler].
func (k keyless) Handle(_ context.Context, r slog.Record) error {
	text := r.Message + k.with
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	k.w.loops.secret("the log", text)
	return nil
}

// WithAttrs implements [slog.Handler].
func (k keyless) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		k.with += " " + a.String()
	}
	return k
}

// WithGroup implements [slog.Handler].
func (k keyless) WithGroup(string) slog.Handler { return k }
