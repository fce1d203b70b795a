package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// KindOf sorts a control request by its subtype.
func KindOf(subtype string) Kind {
	switch subtype {
	case "can_use_tool":
		return Permission
	case "hook_callback":
		return Hook
	case "mcp_message":
		return MCP
	case "get_model_policy":
		return ModelPolicy
	case "elicitation", "elicitation_response", "request_user_dialog",
		"fetch_job_token", "fetch_service_account_token",
		"memory_should_generate", "skill_evolution_should_review", "resolve_session_artifacts":
		return Inquiry
	}
	return Other
}

type requestState int

const (
	requestOpen requestState = iota
	requestTaken
	requestAnswered
	requestCancelled
)

// Request is a control request of the agent. It gets exactly one answer,
// unless the agent cancels it.
type Request struct {
	ID     string // for reports; the answer carries the id as the agent wrote it
	Kind   Kind
	Frame  protocol.Frame
	Opened time.Time

	name  string        // tool or event, for reports
	limit time.Duration // zero: none

	who    Identity
	seq    uint64
	state  requestState
	cancel context.CancelCauseFunc
}

// Bounds of the lines that open requests keep, in bytes. Those above [LargeLine]
// are counted apart: while they are open they also keep their part of the
// runtime's budget.
const (
	requestBytes      = 10 << 20
	largeRequestBytes = 64 << 20
	requestCost       = 512 // of each, besides its line
)

// asksPerson says whether the answer may have to wait for a person.
func (r *Request) asksPerson() bool {
	switch r.Frame.Subtype {
	case "can_use_tool", "elicitation", "elicitation_response", "request_user_dialog":
		return true
	}
	return false
}

type requests struct {
	open    map[string]*Request // neither answered nor cancelled, by the text of their ids
	bytes   int64               // of the open ones up to LargeLine
	large   int64               // of the others
	untaken [Other + 1]fifo[*Request]
	gates   int // those among the open ones that wait for a person
	seq     uint64
	past    memory
}

// Open handles the control_request at the head of the inbox. One that comes
// again is not run again, see [Ledger.admit]. kind says who has to be told; ok is
// false when nobody has.
func (l *Ledger) Open(f protocol.Frame) (kind Kind, ok bool) {
	who := IdentityOf(&f)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.popControl()
	return l.open(f, who)
}

func (l *Ledger) open(f protocol.Frame, who Identity) (kind Kind, ok bool) {
	r := l.admit(f, who)
	switch {
	case r == nil:
		return 0, false
	case l.closing && !l.serving:
		l.deny(r, "the session is closing")
		return 0, false
	case l.facts.gatesOff != nil:
		l.deny(r, "the agent calls no hooks")
		return 0, false
	case l.tooManyOpen(r):
		l.deny(r, "too many requests are open")
		return 0, false
	}
	l.requests.untaken[r.Kind].push(r)
	return r.Kind, true
}

// tooManyOpen judges the request that came last. A large one alone is never too
// many.
func (l *Ledger) tooManyOpen(r *Request) bool {
	q := &l.requests
	if len(q.open) > l.cfg.Limits.Requests {
		return true
	}
	if size := int64(len(r.Frame.Raw)); size > LargeLine {
		return q.large > max(largeRequestBytes, size)
	}
	return q.bytes > requestBytes
}

// keep counts what a request holds while it is open; n is 1 when it opens, and
// -1 when it is over.
func (l *Ledger) keep(r *Request, n int64) {
	size := int64(len(r.Frame.Raw))
	if size > LargeLine {
		l.requests.large += n * size
		l.stream.budget.Charge(n * size)
		return
	}
	l.requests.bytes += n * (size + requestCost)
}

// admit registers a request; nil when it is over already.
//
// An answer names nothing but the id, and the agent alone knows to which of its
// requests it takes it. So whatever is answered must be safe for each of them:
//
//   - The same id and the same body, while the first is open: one answer is
//     enough. Once it is answered: the same bytes. When they are forgotten: a
//     new request, but an MCP message gets an error, since its tool may have run.
//   - The same id and another body, while the first is open: an allow for either
//     could open the other, so both are denied at once.
//   - The same id and another body, once the first is answered or cancelled: a new
//     request.
//   - No id: the answer could be taken for that of any other such request, so it
//     is a denial, and nobody is asked.
func (l *Ledger) admit(f protocol.Frame, who Identity) *Request {
	l.requests.seq++
	r := &Request{
		ID: f.ID.Text(), Kind: KindOf(f.Subtype), Frame: f,
		Opened: l.cfg.Clock.Now(), who: who, seq: l.requests.seq,
	}
	if f.ID.IsZero() {
		l.repeated(r, "it has no id and was denied")
		r.state = requestAnswered
		_ = l.write(l.denialOfAnything(r, "the request has no id"), Denial)
		return nil
	}
	first := l.requests.open[r.ID]
	switch {
	case first != nil && first.who == who:
		l.repeated(r, "it came again before its answer, and gets the same one")
		return nil
	case first != nil:
		l.collide(first, r)
		return nil
	}
	if answer := l.requests.past.answer(who); answer != nil {
		l.repeated(r, "it came again, and got the same answer")
		_ = l.write(answer, Again)
		return nil
	}
	l.register(r)
	if r.Kind == MCP && l.requests.past.hasRun(who) {
		l.repeated(r, "it came again after its answer was forgotten, and was not run again")
		l.deny(r, "the message came before and was answered; it is not run again")
		return nil
	}
	return r
}

// collide denies two requests that are open under one id.
func (l *Ledger) collide(first, second *Request) {
	l.repeated(second, "another one is open under its id, and both were denied")
	if first.cancel != nil {
		first.cancel(errSameID)
	}
	const reason = "another request is open under the same id"
	l.commitAs(first, l.denialOfAnything(first, reason), Denial)
	l.register(second)
	l.commitAs(second, l.denialOfAnything(second, reason), Denial)
}

var errSameID = errors.New("the agent made another request under the same id, and both were denied")

func (l *Ledger) register(r *Request) {
	if l.requests.open == nil {
		l.requests.open = make(map[string]*Request)
	}
	l.requests.open[r.ID] = r
	l.keep(r, 1)
	if r.asksPerson() {
		l.requests.gates++
	}
}

func (l *Ledger) repeated(r *Request, outcome string) {
	l.cfg.Emit(session.RepeatedRequest{Kind: r.Kind.String(), RequestID: Short(r.ID), Outcome: outcome})
}

// Take gives out the requests of a kind that nobody has taken yet, oldest
// first. Whoever takes one answers it.
func (l *Ledger) Take(kind Kind) []*Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken []*Request
	for queue := &l.requests.untaken[kind]; queue.len() > 0; {
		if r := queue.pop(); r.state == requestOpen {
			r.state = requestTaken
			taken = append(taken, r)
		}
	}
	return taken
}

// Waiting reports whether requests of a kind may be there that nobody has
// taken.
func (l *Ledger) Waiting(kind Kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests.untaken[kind].len() > 0
}

// Scope binds the callback's context to the request: when the agent cancels
// it, or it is answered without the callback, cancel is called. It reports
// false when that has happened already.
func (l *Ledger) Scope(r *Request, cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.state != requestTaken {
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

// openRequests lists the open requests of a kind as they came.
func (l *Ledger) openRequests(kind Kind) []*Request {
	var all []*Request
	for _, r := range l.requests.open {
		if kind == anyKind || r.Kind == kind {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Request) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// Answer gives the one answer of a request: a success with response (nil: no
// response key), or an error when errText is not empty. It reports false when
// the request is no longer open; then nothing is written.
func (l *Ledger) Answer(r *Request, response json.RawMessage, errText string) bool {
	line, err := encodeAnswer(r.Frame.ID, response, errText)
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.state > requestTaken {
		l.cfg.Emit(session.LateAnswer{Kind: r.Kind.String(), RequestID: Short(r.ID)})
		return false
	}
	if err != nil {
		l.cfg.Emit(session.CallbackFailed{Kind: r.Kind.String(), Name: Short(r.name), RequestID: Short(r.ID), Err: err})
		l.deny(r, "the answer could not be encoded")
		return false
	}
	l.commit(r, line)
	return true
}

// Refuse gives an error as the one answer of a request, with a code that tells
// the agent what is missing; an empty code is left out.
func (l *Ledger) Refuse(r *Request, text, code string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.state > requestTaken {
		l.cfg.Emit(session.LateAnswer{Kind: r.Kind.String(), RequestID: Short(r.ID)})
		return false
	}
	l.commit(r, r.Frame.ID.AppendError(nil, text, l.cfg.ErrorCodeKey, code))
	return true
}

func encodeAnswer(id protocol.ID, response json.RawMessage, errText string) ([]byte, error) {
	if errText != "" {
		return id.AppendError(nil, errText, "", ""), nil
	}
	return id.AppendSuccess(nil, response)
}

// commit gives the one answer of a request.
func (l *Ledger) commit(r *Request, line []byte) { l.commitAs(r, line, Answer) }

func (l *Ledger) commitAs(r *Request, line []byte, as Class) {
	if r.Kind == MCP && r.state == requestTaken {
		l.requests.past.run(r.who, l.cfg.Limits.Answers)
	}
	l.settle(r, requestAnswered)
	if err := l.write(line, as); err != nil {
		// The answer does not fit, or the agent is gone. A denial is always
		// taken: if it is not, there is no agent left to be harmed.
		if errors.Is(err, session.ErrTooLarge) || errors.Is(err, session.ErrNoRoom) {
			l.cfg.Emit(session.CallbackFailed{
				Kind: r.Kind.String(), Name: Short(r.Frame.Subtype), RequestID: Short(r.ID),
				Err: fmt.Errorf("answer of %d bytes: %w", len(line), err),
			})
		}
		if deny, err := l.denial(r, "the answer could not be written"); err == nil {
			line = deny
			_ = l.write(line, Denial)
		}
	}
	bound := answersIdle
	if l.running() {
		bound = answersInTurn
	}
	l.requests.past.answered(r.who, line, bound)
}

// forgetAnswers gives up the answers that are kept, once no turn is under way.
func (l *Ledger) forgetAnswers() {
	if !l.running() {
		l.requests.past.forget()
	}
}

func (l *Ledger) settle(r *Request, state requestState) {
	r.state = state
	delete(l.requests.open, r.ID)
	l.keep(r, -1)
	if r.asksPerson() {
		l.requests.gates--
	}
	if r.cancel != nil {
		r.cancel(context.Canceled)
		r.cancel = nil
	}
}

func (l *Ledger) denial(r *Request, reason string) ([]byte, error) {
	response, errText := l.cfg.Deny(r, reason)
	return encodeAnswer(r.Frame.ID, response, errText)
}

func (l *Ledger) deny(r *Request, reason string) {
	l.facts.promptDenied = l.facts.promptDenied || isPromptHook(r)
	line, err := l.denial(r, reason)
	if err != nil {
		line = r.Frame.ID.AppendError(nil, reason, "", "")
	}
	l.commitAs(r, line, Denial)
}

func (l *Ledger) denyAll(kind Kind, reason string) {
	for _, r := range l.openRequests(kind) {
		l.deny(r, reason)
	}
}

// Fail answers one request without its callback: gates deny, the rest answers
// an error. The callback's scope ends with cause.
func (l *Ledger) Fail(r *Request, reason string, cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.state > requestTaken {
		return false
	}
	if r.cancel != nil {
		r.cancel(cause)
	}
	l.deny(r, reason)
	return true
}

// FailTaken answers every request of a kind that an actor had taken and can no
// longer finish.
func (l *Ledger) FailTaken(kind Kind, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.openRequests(kind) {
		if r.state == requestTaken {
			l.deny(r, reason)
		}
	}
}

// Cancel handles the control_cancel_request at the head of the inbox: the
// callback's scope ends and no answer is sent. The same request made again is a
// new one.
func (l *Ledger) Cancel(f protocol.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.popControl()
	r := l.requests.open[f.ID.Text()]
	if r == nil || !r.Frame.ID.Equal(f.ID) {
		return // too late: the answer is on its way, and the agent ignores it
	}
	l.settle(r, requestCancelled)
}

// Watches reports whether the session has to hear of each answer to requests of a
// kind: its state shows those that wait for people, and a close waits for all.
func (l *Ledger) Watches(kind Kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return kind.AsksPeople() || l.closing && l.serving
}

// Gates is the number of requests that wait for a person: permissions,
// elicitations, dialogs.
func (l *Ledger) Gates() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests.gates
}

// Unanswered is the number of requests of any kind that wait.
func (l *Ledger) Unanswered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests.open)
}

// FailAllTaken is FailTaken for every kind.
func (l *Ledger) FailAllTaken(reason string) {
	for kind := Permission; kind < anyKind; kind++ {
		l.FailTaken(kind, reason)
	}
}

func unexpected(f protocol.Frame) session.UnexpectedFrame {
	return session.UnexpectedFrame{Type: Short(f.Type), Subtype: Short(f.Subtype), RequestID: Short(f.ID.Text())}
}

// Short is what a report shows of an agent's word: reports are kept.
func Short(s string) string {
	if len(s) > 256 {
		return strings.Clone(s[:256]) + "…"
	}
	return s
}
