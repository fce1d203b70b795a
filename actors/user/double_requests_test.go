package user_test

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Request is a request of the agent that the routing has given out.
type Request struct {
	ID     string
	Kind   session.Kind
	Frame  protocol.Frame
	Opened time.Time

	seq    uint64
	taken  bool
	over   bool
	cancel context.CancelCauseFunc
}

func (r *Request) end(why error) {
	if why == nil {
		why = context.Canceled
	}
	if r.over = true; r.cancel != nil {
		r.cancel(why)
		r.cancel = nil
	}
}

func (s *side) cancel(e machine.Cancel) {
	i := slices.IndexFunc(s.open, func(r *Request) bool { return r.seq == e.Seq })
	if i < 0 {
		return
	}
	r := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	r.end(e.Why)
}

// Take takes the requests of a kind that no caller has taken.
func (s *side) Take(kind session.Kind) []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []*Request
	for _, r := range s.open {
		if r.Kind == kind && !r.taken {
			r.taken = true
			taken = append(taken, r)
		}
	}
	return taken
}

// Scope binds a context to a request. It reports false if the request is over.
func (s *side) Scope(r *Request, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.over {
		return false
	}
	r.cancel = cancel
	return true
}

// Answer, Refuse, Fail and Drop end a request. They report false if it was over.

// Answer gives a success, or an error.
func (s *side) Answer(r *Request, response json.RawMessage, errText string) bool {
	return s.answer(r, machine.Answered{Response: response, ErrText: errText})
}

// Fail answers without a callback.
func (s *side) Fail(r *Request, reason string, cause error) bool {
	return s.answer(r, machine.Answered{Deny: reason, Cause: cause})
}

// Drop answers nothing.
func (s *side) Drop(r *Request) bool { return s.answer(r, machine.Answered{Drop: true}) }

func (s *side) answer(r *Request, a machine.Answered) bool {
	a.Seq, a.ID, a.Kind = r.seq, r.ID, r.Kind
	s.mu.Lock()
	open := !r.over
	s.mu.Unlock()
	s.Tell(a)
	return open
}

// FailTaken is the death of a callback actor.
func (s *side) FailTaken(kind session.Kind, reason string) {
	s.failTaken(reason, func(r *Request) bool { return r.Kind == kind })
}

func (s *side) failTaken(reason string, which func(*Request) bool) {
	s.mu.Lock()
	var seqs []uint64
	for _, r := range s.open {
		if r.taken && which(r) {
			seqs = append(seqs, r.seq)
		}
	}
	s.mu.Unlock()
	if len(seqs) > 0 {
		s.Tell(machine.CallbacksLost{Seqs: seqs, Reason: reason})
	}
}
