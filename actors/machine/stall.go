package machine

import (
	"slices"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Stall watches over the progress of turns.
type Stall struct {
	At    time.Time // of the last progress, or when the agent was last left to itself
	Alone bool      // the agent works on a turn, and no callback, tool or task runs
	Due   time.Time // when to look again; zero: nothing to look at
	Said  bool      // the event was emitted, and nothing has come since
	Ended bool      // the agent was killed for it
	Tools []string  // calls of tools without a result; those of subagents, too
}

// maxTools is how many open tool calls are known at once. A turn with more counts as
// one with an open call until its result.
const maxTools = 1024

// progress takes note of a frame. Lines of an agent that only waits are not progress:
// keep-alives, states, and reports that it tries again.
func (m *Routing) progress(f *protocol.Frame, calls []toolBlock) {
	switch f.Type {
	case protocol.TypeKeepAlive, "keepalive", "rate_limit_event", protocol.TypeControlResponse:
		return
	case "system":
		switch f.Subtype {
		case "api_retry":
			m.retried(f)
			return
		case "status", "session_state_changed", "control_request_progress":
			return
		}
	case "assistant", "user":
		if m.cfg.Stall > 0 {
			m.toolCalls(calls)
		}
	case "result":
		m.Stall.Tools = nil
	}
	if m.Stall.At, m.Stall.Said = m.now, false; f.Type != "result" && m.Retries.GaveUp == nil {
		m.Retries = Retries{}
	}
}

// toolCalls notes which calls of tools are open.
func (m *Routing) toolCalls(calls []toolBlock) {
	for _, b := range calls {
		switch {
		case b.Type == "tool_use" && len(m.Stall.Tools) < maxTools:
			m.Stall.Tools = append(m.Stall.Tools, Short(b.ID))
		case b.Type == "tool_result" && len(m.Stall.Tools) < maxTools:
			id := Short(b.ToolUseID)
			m.Stall.Tools = slices.DeleteFunc(m.Stall.Tools, func(open string) bool { return open == id })
		}
	}
}

// watchProgress checks whether a turn made no progress for too long. A request that
// waits for the host or a person, a tool that runs, a background task, and a session
// whose reader waits for a consumer are not stalls.
func (m *Routing) watchProgress() {
	limit, s := m.cfg.Stall, &m.Stall
	alone := limit > 0 && m.InFlight() && len(m.requests) == 0 && len(s.Tools) == 0 && len(m.Facts.Tasks) == 0 &&
		!m.Flow.Stalled && !m.Closing && !m.Over &&
		(m.cfg.Retry <= 0 || m.Retries.Since.IsZero()) // retries have another limit
	if alone && !s.Alone {
		s.At = m.now
	}
	s.Alone = alone
	switch {
	case !alone:
		s.Due = time.Time{}
	case s.Due.IsZero():
		s.Due = m.now.Add(limit)
	case !m.now.Before(s.Due):
		if idle := m.now.Sub(s.At); idle >= limit && !s.Said {
			s.Said = true
			m.emit(&session.TurnStalled{Idle: idle, Limit: limit})
			if m.cfg.Interrupt != nil && !m.interrupting() {
				m.call(*m.cfg.Interrupt, false)
			}
		}
		kill := s.At.Add(limit + m.cfg.StallKill)
		if m.cfg.StallKill > 0 && s.Said && !s.Ended && !m.now.Before(kill) {
			s.Ended = true
			m.do(Climb{m.Gen, Killed, "a turn made no progress (Limits.StallKill)"})
		}
		// The next line begins a new period.
		switch s.Due = s.At.Add(limit); {
		case s.Due.After(m.now):
		case m.cfg.StallKill > 0 && s.Said && !s.Ended:
			s.Due = kill
		default:
			s.Due = m.now.Add(limit)
		}
	}
}
