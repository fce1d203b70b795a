package main

import (
	"context"
	"log/slog"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// logEvents logs what happens in a runtime until it is shut down, which ends the
// returned channel.
func logEvents(rt *runtime.Runtime, log *slog.Logger) <-chan struct{} {
	logged := make(chan struct{})
	events := rt.Events(context.Background()) // from now on
	go func() {
		defer close(logged)
		for r := range events {
			level := r.Event.Level()
			switch r.Event.(type) {
			case *session.Ended:
				level = min(level, slog.LevelInfo) // the command itself says why
			case *session.WarningIssued:
				continue // logWarnings has them
			}
			log.Log(context.Background(), level, r.Event.String())
		}
	}()
	return logged
}

// logWarnings logs what is legal in the options and probably not meant. That a
// rule allows what would be asked for is what the rule is for.
func logWarnings(log *slog.Logger, s *settings, all []sdk.Warning) {
	for _, w := range all {
		if w.Option != "CanUseTool" {
			log.Warn(s.inTerms(w.String()))
		}
	}
}
