package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Request is a control request of the agent that an actor answers.
type Request struct {
	ID     string // for reports; the answer carries the id as the agent wrote it
	Kind   session.Kind
	Frame  protocol.Frame
	Opened time.Time

	seq    uint64
	name   string        // tool or event, for reports
	limit  time.Duration // zero: none
	taken  bool
	over   bool
	cancel context.CancelCauseFunc
}

// keptRoom is for how many open requests a session keeps room.
const keptRoom = 64

// enter keeps a request that an actor has to take.
func (l *Ledger) enter(r *Request) {
	l.requests = append(l.requests, r)
	l.untaken[r.Kind].push(r)
	l.due.Kinds[r.Kind] = true
}

// cancel ends the callback of a request.
func (l *Ledger) cancel(e machine.Cancel) {
	i, ok := slices.BinarySearchFunc(l.requests, e.Seq, func(r *Request, seq uint64) int { return cmp.Compare(r.seq, seq) })
	if !ok {
		return
	}
	r := l.requests[i]
	if l.requests = slices.Delete(l.requests, i, i+1); len(l.requests) == 0 && cap(l.requests) > keptRoom {
		l.requests = nil // a flood is over
	}
	r.over = true
	if r.cancel != nil {
		why := e.Why
		if why == nil {
			why = context.Canceled
		}
		r.cancel(why)
		r.cancel = nil
	}
}

// Take gives out the requests of a kind that nobody has taken yet, oldest
// first. Whoever takes one answers it.
func (l *Ledger) Take(kind session.Kind) []*Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken []*Request
	for queue := &l.untaken[kind]; queue.len() > 0; {
		if r := queue.pop(); !r.over {
			r.taken = true
			taken = append(taken, r)
		}
	}
	return taken
}

// Waiting reports whether requests of a kind may be there that nobody has
// taken.
func (l *Ledger) Waiting(kind session.Kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.untaken[kind].len() > 0
}

// Scope binds the callback's context to the request: when the agent cancels
// it, or it is answered without the callback, cancel is called. It reports
// false when that has happened already.
func (l *Ledger) Scope(r *Request, cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.over {
		return false
	}
	r.cancel = cancel
	return true
}

// Describe says what a request is about and how long its callback may take.
func (l *Ledger) Describe(r *Request, name string, limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.name, r.limit = name, limit
}

// Answer gives the one answer of a request: a success with response (nil: no
// response key), or an error when errText is not empty. It reports false when
// the request is no longer open. What is no JSON is denied, and an event says so.
func (l *Ledger) Answer(r *Request, response json.RawMessage, errText string) bool {
	return l.answer(r, machine.Answered{Response: response, ErrText: errText})
}

// Refuse gives an error as the one answer of a request, with a code that tells
// the agent what is missing; an empty code is left out.
func (l *Ledger) Refuse(r *Request, text, code string) bool {
	return l.answer(r, machine.Answered{ErrText: text, Code: code})
}

// Fail answers one request without its callback: gates deny, the rest answers
// an error. The callback's context ends with cause.
func (l *Ledger) Fail(r *Request, reason string, cause error) bool {
	return l.answer(r, machine.Answered{Deny: reason, Cause: cause})
}

// Drop ends a request that the agent has given up by other means than a
// control_cancel_request: the callback's context ends, and no answer is sent. It
// reports false when the request is no longer open.
func (l *Ledger) Drop(r *Request) bool { return l.answer(r, machine.Answered{Drop: true}) }

func (l *Ledger) answer(r *Request, a machine.Answered) bool {
	a.Seq, a.ID, a.Kind = r.seq, r.ID, r.Kind
	l.mu.Lock()
	defer l.mu.Unlock()
	a.Name = r.name
	open := !r.over
	l.step(a)
	return open
}

// FailTaken answers every request of a kind that an actor had taken and can no
// longer finish.
func (l *Ledger) FailTaken(kind session.Kind, reason string) {
	l.failTaken(reason, func(r *Request) bool { return r.Kind == kind })
}

// FailAllTaken is FailTaken for every kind.
func (l *Ledger) FailAllTaken(reason string) {
	l.failTaken(reason, func(*Request) bool { return true })
}

func (l *Ledger) failTaken(reason string, which func(*Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var seqs []uint64
	for _, r := range l.requests {
		if r.taken && which(r) {
			seqs = append(seqs, r.seq)
		}
	}
	if len(seqs) > 0 {
		l.step(machine.CallbacksLost{Seqs: seqs, Reason: reason})
	}
}

// Watches reports whether the session is closing and waits for the answers to all
// requests, so that it has to be told of each.
func (l *Ledger) Watches() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.Closing && l.routing.Serving
}

// Gates is the number of requests that wait for a person: permissions,
// elicitations, dialogs.
func (l *Ledger) Gates() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum.Gates
}

// Unanswered is the number of requests of any kind that wait.
func (l *Ledger) Unanswered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.Open()
}
