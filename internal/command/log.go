package command

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// eventLog logs what happens in the session of some options, from its first event on.
type eventLog struct {
	log   *slog.Logger
	begun atomic.Bool
	over  sync.Once
	ended chan struct{} // closed after the last line
}

func logEvents(o *sdk.Options, log *slog.Logger) *eventLog {
	l := &eventLog{log: log, ended: make(chan struct{})}
	o.OnEvent = l.event
	return l
}

func (l *eventLog) event(r sdk.EventRecord) {
	l.begun.Store(true)
	level := r.Event.Level()
	switch r.Event.(type) {
	case *session.Ended:
		level = min(level, slog.LevelInfo) // the command itself says why
		defer l.over.Do(func() { close(l.ended) })
	case *session.WarningIssued:
		return // logWarnings has them
	}
	l.log.Log(context.Background(), level, r.Event.String())
}

// finish waits for the last line of a session that has ended.
func (l *eventLog) finish(ctx context.Context) {
	if !l.begun.Load() {
		return // there was no session
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
}

// logWarnings logs what is legal in the options and probably not meant. That a
// rule allows what would be asked for is what the rule is for.
func logWarnings(log *slog.Logger, s *settings, all []session.Warning) {
	for _, w := range all {
		if w.Option != "CanUseTool" {
			log.Warn(s.inTerms(w.String()))
		}
	}
}
