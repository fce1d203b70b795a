package world

import (
	"sync"

	"github.com/agent-troupe/troupe/session"
)

// Log keeps the events of one session, up to its end.
type Log struct {
	mu    sync.Mutex
	all   []session.Event
	ended chan struct{}
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{ended: make(chan struct{})} }

// Record takes an event: it is the session's OnEvent.
func (l *Log) Record(r session.EventRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Event)
	if _, ok := r.Event.(*session.Ended); ok {
		close(l.ended)
	}
}

// Reported returns all events of a log once the session has ended.
func (w *World) Reported(l *Log) []session.Event {
	w.Helper()
	w.Await(l.ended)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}
