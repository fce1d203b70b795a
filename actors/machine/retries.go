package machine

import (
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Retries watches over a turn in which the agent only tries the model's API again.
type Retries struct {
	Since    time.Time // of the first since the last progress; zero: it does not retry
	Due      time.Time // when the turn is given up; zero: never
	Attempts int
	Status   int    // HTTP, of the last one; 0: none
	Kind     string // what the agent calls the failure
	// GaveUp is the error of the turn, which is interrupted; nil unless it is given up.
	GaveUp *session.RetryLimitError
}

// retried takes note of an api_retry. Nothing that the agent does changes a refusal of the
// login.
func (m *Routing) retried(f *protocol.Frame) {
	var in struct {
		Status int    `json:"error_status"`
		Kind   string `json:"error"`
	}
	if m.cfg.Retry <= 0 || protocol.Unmarshal(f.Raw, &in) != nil {
		return
	}
	r := &m.Retries
	if r.Since.IsZero() {
		r.Since, r.Attempts = m.now, 0
		r.Due = m.now.Add(m.cfg.Retry)
	}
	r.Attempts++
	r.Status, r.Kind = in.Status, Short(in.Kind)
	if (&session.RetryLimitError{Status: in.Status}).Refused() {
		r.Due = m.now
	}
}

// watchRetries ends a turn that has only been retried for too long, once.
func (m *Routing) watchRetries() {
	r := &m.Retries
	switch {
	case r.Since.IsZero():
	case !m.InFlight() || m.Closing || m.Over:
		*r = Retries{}
	case r.GaveUp == nil && !r.Due.IsZero() && !m.now.Before(r.Due):
		r.Due = time.Time{}
		r.GaveUp = &session.RetryLimitError{
			Status: r.Status, Kind: r.Kind, Attempts: r.Attempts, For: m.now.Sub(r.Since), Limit: m.cfg.Retry,
		}
		m.emit(&session.TurnRetries{Err: r.GaveUp})
		if m.cfg.Interrupt != nil && !m.interrupting() {
			m.call(*m.cfg.Interrupt, false)
		}
	}
}

// retriesOver is the error in place of the result of a turn that was given up; nil if it
// has succeeded after all, or was not given up.
func (m *Routing) retriesOver(r *protocol.ResultMessage) error {
	gaveUp := m.Retries.GaveUp
	m.Retries = Retries{}
	if gaveUp == nil || !r.Failed() {
		return nil
	}
	return gaveUp
}
