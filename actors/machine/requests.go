package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Request is a control request of the agent that is open: it gets exactly one
// answer, unless the agent cancels it.
type Request struct {
	Seq    uint64
	Kind   session.Kind
	Raw    []byte
	Opened time.Time
	Who    Identity
	Person bool // its answer may have to wait for a person
	Ran    bool // it was given to the actor of its kind

	frame protocol.Frame
}

func (r *Request) id() string { return r.frame.ID.Text() }

// Bounds of the lines that open requests keep, in bytes. Those above [LargeLine] are
// counted apart: while they are open they also keep their part of the runtime's
// budget.
const (
	requestBytes      = 10 << 20
	largeRequestBytes = 64 << 20
	requestCost       = 512 // of each, besides its line
)

// keptRoom is for how many open requests a session keeps room.
const keptRoom = 64

// request handles a control_request.
func (m *Routing) request(f protocol.Frame) {
	r := m.admit(f)
	switch {
	case r == nil:
	case m.Closing && !m.Serving:
		m.deny(r, "the session is closing")
	case m.Facts.GatesOff != nil:
		m.deny(r, "the agent calls no hooks")
	case m.tooManyOpen(r):
		m.deny(r, "too many requests are open")
	case r.Kind == session.KindOther:
		m.commit(r, r.frame.ID.AppendError(nil, "Unsupported control request subtype: "+f.Subtype, "", ""), Answer)
	default:
		r.Ran = true
		m.do(Run{Seq: r.Seq, Kind: r.Kind, Frame: &r.frame, Opened: r.Opened})
	}
}

// tooManyOpen judges the request that came last. A large one alone is never too
// many.
func (m *Routing) tooManyOpen(r *Request) bool {
	if len(m.requests) > m.cfg.Limits.Requests {
		return true
	}
	if size := int64(len(r.Raw)); size > LargeLine {
		return m.Flow.LargeRequests > max(largeRequestBytes, size)
	}
	return m.Flow.RequestBytes > requestBytes
}

// admit registers a request; nil when it is over already.
//
// An answer has only the id, and only the agent knows to which of its requests it
// applies it. So an answer must be safe for each of them:
//
//   - The same id and the same body, while the first is open: one answer is
//     enough. Once it is answered: the same bytes. When they are forgotten: a
//     new request, but an MCP message gets an error, since its tool may have run.
//   - The same id and another body, while the first is open: an allow for either
//     could open the other, so both are denied at once.
//   - The same id and another body, once the first is answered or cancelled: a new
//     request.
//   - No id: the answer could be taken for that of any other such request, so it is a
//     denial without a callback.
func (m *Routing) admit(f protocol.Frame) *Request {
	m.Seq++
	kind, person := m.rules.KindOf(f.Subtype)
	r := &Request{Seq: m.Seq, Kind: kind, Person: person, Raw: f.Raw, Opened: m.now, Who: IdentityOf(&f), frame: f}
	if f.ID.IsZero() {
		m.repeated(r, "it has no id and was denied")
		_ = m.write(m.denialOfAnything(r, "the request has no id"), Denial)
		return nil
	}
	first := m.open[r.id()]
	switch {
	case first != nil && first.Who == r.Who:
		m.repeated(r, "it came again before its answer, and gets the same one")
		return nil
	case first != nil:
		m.collide(first, r)
		return nil
	}
	if answer := m.Past.answer(r.Who); answer != nil {
		m.repeated(r, "it came again, and got the same answer")
		_ = m.write(answer, Again)
		return nil
	}
	m.keepRequest(r)
	m.chargeRequest(r, 1)
	if r.Kind == session.KindMCP && m.Past.hasRun(r.Who) {
		m.repeated(r, "it came again after its answer was forgotten, and was not run again")
		m.deny(r, "the message came before and was answered; it is not run again")
		return nil
	}
	return r
}

// collide denies two requests that are open under one id.
func (m *Routing) collide(first, second *Request) {
	m.repeated(second, "another one is open under its id, and both were denied")
	m.do(Cancel{Seq: first.Seq, Kind: first.Kind, Why: ErrSameID})
	const reason = "another request is open under the same id"
	m.commit(first, m.denialOfAnything(first, reason), Denial)
	m.keepRequest(second)
	m.chargeRequest(second, 1)
	m.commit(second, m.denialOfAnything(second, reason), Denial)
}

// ErrSameID ends a callback whose request shares its id with another one.
var ErrSameID = errors.New("the agent made another request under the same id, and both were denied")

// keepRequest enters an open request.
func (m *Routing) keepRequest(r *Request) {
	if m.open == nil {
		m.open = make(map[string]*Request)
	}
	m.requests, m.open[r.id()] = append(m.requests, r), r
	if r.Person {
		m.gates++
	}
}

// chargeRequest counts what a request holds while it is open; n is 1 when it opens,
// and -1 when it is over.
func (m *Routing) chargeRequest(r *Request, n int64) {
	size := int64(len(r.Raw))
	if size > LargeLine {
		m.Flow.LargeRequests += n * size
		m.do(Charge{n * size})
		return
	}
	m.Flow.RequestBytes += n * (size + requestCost)
}

// dropRequest removes an open request.
func (m *Routing) dropRequest(r *Request) {
	if i, ok := m.find(r.Seq); ok {
		m.requests = slices.Delete(m.requests, i, i+1)
	}
	delete(m.open, r.id())
	if len(m.requests) == 0 && cap(m.requests) > keptRoom {
		m.requests, m.open = nil, nil // a flood is over
	}
	m.chargeRequest(r, -1)
	if r.Person {
		m.gates--
		m.Memory.waited(m.now, r)
	}
	if r.Ran {
		m.do(Cancel{Seq: r.Seq, Kind: r.Kind})
	}
}

func (m *Routing) repeated(r *Request, outcome string) {
	m.emit(&session.RepeatedRequest{Kind: r.Kind.String(), RequestID: Short(r.id()), Outcome: outcome})
}

// Open is the number of requests of any kind that wait.
func (m *Routing) Open() int { return len(m.requests) }

func (m *Routing) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(m.requests, seq, func(r *Request, seq uint64) int { return cmp.Compare(r.Seq, seq) })
}

// bySeq is the open request of that number, or nil.
func (m *Routing) bySeq(seq uint64) *Request {
	if i, ok := m.find(seq); ok {
		return m.requests[i]
	}
	return nil
}

// answered gives the one answer of a request. The first one counts.
func (m *Routing) answered(in Answered) {
	r := m.bySeq(in.Seq)
	switch {
	case r == nil:
		if !in.Drop && in.Deny == "" {
			m.emit(&session.LateAnswer{Kind: in.Kind.String(), RequestID: Short(in.ID)})
		}
	case in.Drop:
		m.dropRequest(r)
	case in.Deny != "":
		if in.Cause != nil {
			m.do(Cancel{Seq: r.Seq, Kind: r.Kind, Why: in.Cause})
		}
		m.deny(r, in.Deny)
	case in.ErrText != "" && in.Code != "":
		m.commit(r, r.frame.ID.AppendError(nil, in.ErrText, m.cfg.ErrorCodeKey, in.Code), Answer)
	default:
		line, err := encodeAnswer(r.frame.ID, in.Response, in.ErrText)
		if err != nil {
			m.emit(&session.CallbackFailed{Kind: r.Kind.String(), Name: Short(in.Name), RequestID: Short(r.id()), Err: err})
			m.deny(r, "the answer could not be encoded")
			return
		}
		m.commit(r, line, Answer)
	}
	if r != nil && in.Failure != nil {
		m.emit(&session.CallbackFailed{Kind: r.Kind.String(), Name: Short(in.Name), RequestID: Short(r.id()), Err: in.Failure})
	}
}

func encodeAnswer(id protocol.ID, response json.RawMessage, errText string) ([]byte, error) {
	if errText != "" {
		return id.AppendError(nil, errText, "", ""), nil
	}
	return id.AppendSuccess(nil, response)
}

// commit is the commit point of an answer: the request is no longer open.
func (m *Routing) commit(r *Request, line []byte, as Class) {
	if r.Kind == session.KindMCP && r.Ran {
		m.Past.run(r.Who, m.cfg.Limits.Answers)
	}
	m.dropRequest(r)
	if err := m.write(line, as); err != nil {
		// The answer does not fit, or the agent is gone. A denial is always
		// taken: if it is not, there is no agent left to be harmed.
		if errors.Is(err, session.ErrTooLarge) || errors.Is(err, session.ErrNoRoom) {
			m.emit(&session.CallbackFailed{
				Kind: r.Kind.String(), Name: Short(r.frame.Subtype), RequestID: Short(r.id()),
				Err: fmt.Errorf("answer of %d bytes: %w", len(line), err),
			})
		}
		if denial, err := m.denial(r, "the answer could not be written"); err == nil {
			line = denial
			_ = m.write(line, Denial)
		}
	}
	bound := answersIdle
	if m.Running() {
		bound = answersInTurn
	}
	m.Past.answered(r.Who, line, bound)
}

// forgetAnswers gives up the answers that are kept, once no turn is under way.
func (m *Routing) forgetAnswers() {
	if !m.Running() {
		m.Past.forget()
	}
}

func (m *Routing) denial(r *Request, reason string) ([]byte, error) {
	response, errText := m.rules.Denial(r.Kind, r.frame, reason)
	return encodeAnswer(r.frame.ID, response, errText)
}

// denialOfAnything denies whatever the agent takes it for the answer of: what denies
// a hook denies everything.
func (m *Routing) denialOfAnything(r *Request, reason string) []byte {
	bare := protocol.Frame{Type: r.frame.Type, ID: r.frame.ID}
	line, err := m.denial(&Request{Kind: session.KindHook, frame: bare}, reason)
	if err != nil {
		line = r.frame.ID.AppendError(nil, reason, "", "")
	}
	return line
}

// deny answers a request without its callback: gates deny, the rest answers an
// error.
func (m *Routing) deny(r *Request, reason string) {
	m.Facts.PromptDenied = m.Facts.PromptDenied || isPromptHook(r.Kind, &r.frame)
	line, err := m.denial(r, reason)
	if err != nil {
		line = r.frame.ID.AppendError(nil, reason, "", "")
	}
	m.commit(r, line, Denial)
}

func (m *Routing) denyAll(reason string) {
	for _, r := range slices.Clone(m.requests) {
		m.deny(r, reason)
	}
}

func (m *Routing) denyIfClosing() {
	if m.Closing && !m.Serving {
		m.denyAll("the session is closing")
	}
}

// withdraw handles a control_cancel_request: the callback's context ends and no
// answer is sent. The same request made again is a new one.
func (m *Routing) withdraw(f protocol.Frame) {
	r := m.open[f.ID.Text()]
	if r == nil || !r.frame.ID.Equal(f.ID) {
		return // too late: the answer is on its way, and the agent ignores it
	}
	m.dropRequest(r)
}
