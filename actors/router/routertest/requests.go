package routertest

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

func (l *Ledger) cancel(e machine.Cancel) {
	i := slices.IndexFunc(l.open, func(r *Request) bool { return r.seq == e.Seq })
	if i < 0 {
		return
	}
	r := l.open[i]
	l.open = slices.Delete(l.open, i, i+1)
	r.end(e.Why)
}

// Take takes the requests of a kind that nobody has taken.
func (l *Ledger) Take(kind session.Kind) []*Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken []*Request
	for _, r := range l.open {
		if r.Kind == kind && !r.taken {
			r.taken = true
			taken = append(taken, r)
		}
	}
	return taken
}

// Waiting reports whether there are some.
func (l *Ledger) Waiting(kind session.Kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.open, func(r *Request) bool { return r.Kind == kind && !r.taken })
}

// Scope binds a context to a request. It reports false if the request is over.
func (l *Ledger) Scope(r *Request, cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.over {
		return false
	}
	r.cancel = cancel
	return true
}

// Answer, Refuse, Fail and Drop end a request. They report false if it was over.

// Answer gives a success, or an error.
func (l *Ledger) Answer(r *Request, response json.RawMessage, errText string) bool {
	return l.answer(r, machine.Answered{Response: response, ErrText: errText})
}

// Refuse gives an error with a code.
func (l *Ledger) Refuse(r *Request, text, code string) bool {
	return l.answer(r, machine.Answered{ErrText: text, Code: code})
}

// Fail answers without a callback.
func (l *Ledger) Fail(r *Request, reason string, cause error) bool {
	return l.answer(r, machine.Answered{Deny: reason, Cause: cause})
}

// Drop answers nothing.
func (l *Ledger) Drop(r *Request) bool { return l.answer(r, machine.Answered{Drop: true}) }

func (l *Ledger) answer(r *Request, a machine.Answered) bool {
	a.Seq, a.ID, a.Kind = r.seq, r.ID, r.Kind
	l.mu.Lock()
	open := !r.over
	l.mu.Unlock()
	l.Tell(a)
	return open
}

// FailTaken is the death of a callback actor.
func (l *Ledger) FailTaken(kind session.Kind, reason string) {
	l.failTaken(reason, func(r *Request) bool { return r.Kind == kind })
}

// FailAllTaken is the death of all of them.
func (l *Ledger) FailAllTaken(reason string) {
	l.failTaken(reason, func(*Request) bool { return true })
}

func (l *Ledger) failTaken(reason string, which func(*Request) bool) {
	l.mu.Lock()
	var seqs []uint64
	for _, r := range l.open {
		if r.taken && which(r) {
			seqs = append(seqs, r.seq)
		}
	}
	l.mu.Unlock()
	if len(seqs) > 0 {
		l.Tell(machine.CallbacksLost{Seqs: seqs, Reason: reason})
	}
}
