package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// pending is a request of ours that the host has not answered.
type pending struct {
	id      string
	request Object
	scope   *scope
	settled bool
	ok      bool // success answer
	body    json.RawMessage
	err     string // of an error answer
	closed  bool   // the host closed stdin first
	cancel  func() // how it is taken back; nil: control_cancel_request
}

// ask writes a control request. The caller waits for settled.
func (e *engine) ask(sc *scope, request Object) *pending {
	return e.askAs(e.ids.uuid(), sc, request)
}

func (e *engine) askAs(id string, sc *scope, request Object) *pending {
	p := &pending{id: id, scope: sc, request: request}
	e.asked = append(e.asked, p)
	e.writeRequest(p)
	if e.eof {
		e.forget(p)
		p.closed = true
	}
	return p
}

func (e *engine) writeRequest(p *pending) {
	body, err := encode(p.request)
	if err == nil {
		body, err = protocol.AppendControlRequest(nil, p.id, body)
	}
	if err != nil {
		e.fatal("agent: request cannot be encoded: %v", err)
		return
	}
	e.sendLine(bytes.TrimSuffix(body, []byte{'\n'}))
}

// await parks s until p is settled. When limit passes first the request is
// taken back.
func (s *Strand) await(p *pending, limit time.Duration) error {
	err := s.wait(limit, func() bool { return p.settled })
	if err != nil {
		s.e.withdraw(p)
	}
	return err
}

// withdraw takes a request back, once.
func (e *engine) withdraw(p *pending) {
	if p.settled {
		return
	}
	e.forget(p)
	if p.cancel != nil {
		p.cancel()
		return
	}
	e.writeCancel(p.id)
}

func (e *engine) writeCancel(id string) {
	e.sendLine(bytes.TrimSuffix(protocol.AppendControlCancel(nil, id), []byte{'\n'}))
}

// withdrawAll takes back, oldest first, what was asked inside sc.
func (e *engine) withdrawAll(sc *scope) {
	for _, p := range slices.Clone(e.asked) {
		if p.scope.within(sc) {
			e.withdraw(p)
		}
	}
}

// forget ends the wait for an answer.
func (e *engine) forget(p *pending) {
	p.settled = true
	e.asked = slices.DeleteFunc(e.asked, func(q *pending) bool { return q == p })
}

// answered takes a control response; one for an unknown request is ignored.
func (e *engine) answered(f protocol.Frame) {
	r, err := protocol.DecodeControlResponse(f)
	if err != nil {
		return
	}
	for _, p := range e.asked {
		if p.id == r.RequestID {
			p.ok, p.body, p.err = !r.Failed(), r.Response, r.Error
			e.forget(p)
			e.reportAnswer(p)
			return
		}
	}
}

// closeGates settles everything open: the host can no longer answer.
func (e *engine) closeGates() {
	for len(e.asked) > 0 {
		p := e.asked[0]
		p.closed = true
		e.forget(p)
		e.reportAnswer(p)
	}
}

func (e *engine) reportAnswer(p *pending) {
	if e.cfg.Answered != nil {
		e.cfg.Answered(p.request, p.answer())
	}
}

// Answer is the host's answer to a request of the agent.
type Answer struct {
	OK     bool            // true: a success answer; false: an error answer
	Body   json.RawMessage // the response member of a success answer; may be nil
	Error  string          // the text of an error answer
	Closed bool            // the host closed stdin before it answered
}

// Ask sends the host a control request and waits for the answer. After limit the request
// is cancelled, and Ask returns ErrTimeout; 0 means no limit.
func (s *Strand) Ask(request Object, limit time.Duration) (Answer, error) {
	return s.Send(request, "").Wait(limit)
}

func (p *pending) answer() Answer {
	return Answer{OK: p.ok, Body: p.body, Error: p.err, Closed: p.closed}
}

// Asked is a request that [Strand.Send] has written.
type Asked struct {
	s *Strand
	p *pending
}

// Send writes a control request without waiting for its answer. id fixes its
// request id; "" draws one.
func (s *Strand) Send(request Object, id string) Asked {
	if id == "" {
		id = s.e.ids.uuid()
	}
	return Asked{s, s.e.askAs(id, s.scope, request)}
}

// Repeat writes the request again, under the same id.
func (a Asked) Repeat() { a.s.e.writeRequest(a.p) }

// Cancel cancels the request, even if it has been answered.
func (a Asked) Cancel() {
	if a.p.settled {
		a.s.e.writeCancel(a.p.id)
	}
	a.s.e.withdraw(a.p)
}

// Wait waits for the answer, as [Strand.Ask] does.
func (a Asked) Wait(limit time.Duration) (Answer, error) {
	limit = cmp.Or(limit, -1)
	if err := a.s.await(a.p, limit); err != nil {
		return Answer{}, err
	}
	return a.p.answer(), nil
}
