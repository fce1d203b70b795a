package machine

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// FlushState is the step of a close between the last turn and the end of stdin: the
// calls of [Rules.BeforeEOF], one after the other, and then the wait until the agent
// is quiet. Meanwhile what the agent asks is answered by the callbacks.
type FlushState struct {
	Done    bool
	Since   time.Time // when it began
	Limit   time.Duration
	Left    []Called
	Call    string    // the id of the one that waits for its answer; "": none does
	QuietAt time.Time // when the agent will have been quiet for long enough; zero: not known
}

// wake is when the flush has to be looked at; zero: not by the clock.
func (f *FlushState) wake() time.Time {
	if f == nil || f.Done {
		return time.Time{}
	}
	return earlier(f.until(), f.QuietAt)
}

func (f *FlushState) until() time.Time { return f.Since.Add(f.Limit) }

func (m *Routing) beginFlush(limit time.Duration) {
	if m.Flush != nil {
		return
	}
	f := &FlushState{Since: m.now, Limit: max(limit, 0)}
	m.Flush = f
	m.Serving = limit > 0
	m.denyIfClosing()
	if limit > 0 {
		calls, err := m.rules.BeforeEOF(m.Facts.Initialized, m.Facts.Capabilities)
		if f.Left = calls; err != nil {
			m.emit(&session.WarningIssued{Problem: err.Error()})
		}
	}
}

// flush continues the flush. It ends when the agent has answered everything, waits for
// no answer and is quiet, and after its limit in any case.
func (m *Routing) flush() {
	f := m.Flush
	if f == nil || f.Done {
		return
	}
	over := !m.now.Before(f.until())
	switch {
	case !m.Up:
		m.giveUpFlush(session.ErrTransportClosed)
	case over:
		m.giveUpFlush(&session.TimeoutError{What: "the flush before the end of stdin", Limit: f.Limit, SetBy: "Graces.Flush"})
	}
	for f.Call == "" && len(f.Left) > 0 {
		next := f.Left[0]
		f.Left = f.Left[1:]
		f.Call = m.nextID()
		next.ID, next.Own = f.Call, true
		m.call(next, false) // the flush has its limit
	}
	f.QuietAt = time.Time{}
	if f.Call != "" {
		return
	}
	quiet := m.ReadAt
	if quiet.Before(f.Since) {
		quiet = f.Since
	}
	quiet = quiet.Add(m.cfg.Quiet)
	switch {
	case over, !m.Up, len(m.requests) == 0 && !m.now.Before(quiet):
		f.Done = true
	case len(m.requests) == 0:
		f.QuietAt = quiet
	}
}

// giveUpFlush ends the flush without what is not answered yet.
func (m *Routing) giveUpFlush(why error) {
	f := m.Flush
	if f.Call != "" {
		m.callDropped(CallDropped{ID: f.Call, Why: why})
	}
	for _, c := range f.Left {
		m.notFlushed(c.Subtype, why)
	}
	f.Left = nil
}

// flushed takes note of a call that is over.
func (m *Routing) flushed(c *Call, err error) {
	if m.Flush == nil || c.ID != m.Flush.Call || c.ID == "" {
		return
	}
	m.Flush.Call = ""
	if err != nil {
		m.notFlushed(c.Subtype, err)
	}
}

func (m *Routing) notFlushed(subtype string, err error) {
	m.emit(&session.WarningIssued{Problem: fmt.Sprintf("%s before the end of stdin failed: %v", subtype, err)})
}
