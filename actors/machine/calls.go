package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Call is a control request of the host without an answer.
type Call struct {
	ID, Subtype string
	Body        json.RawMessage
	Opened      time.Time
	Limit       time.Duration // zero: none
	SetBy       string
	Own         bool // the session's own: it goes out at once
	Setup       bool // without its answer the session cannot be used
	Order       uint64
	Written     bool
}

// called takes a call.
func (m *Routing) called(in Called) {
	if m.Over || m.Closing && !in.Own {
		m.do(CallOver{ID: in.ID, Err: m.closed()})
		return
	}
	if in.Subtype == "interrupt" && m.asleep() {
		nothing := &protocol.ControlResponse{Subtype: protocol.ResponseSuccess, RequestID: in.ID, Response: json.RawMessage("{}")}
		m.do(CallOver{ID: in.ID, Response: nothing})
		return
	}
	m.call(in, false)
}

func (m *Routing) call(in Called, setup bool) {
	if in.ID == "" {
		in.ID = m.nextID()
	}
	m.Order++
	m.Calls = append(m.Calls, Call{
		ID: in.ID, Subtype: in.Subtype, Body: in.Body, Opened: m.now, Limit: in.Limit, SetBy: in.SetBy,
		Own: in.Own || setup, Setup: setup, Order: m.Order,
	})
	if in.Subtype == "interrupt" {
		m.Proof.interrupt()
		m.Facts.Stopped = m.InFlight()
	}
	m.writeOut()
	m.resume() // the answer may follow messages without a reader
}

// OwnID begins the ids of the routing's own calls. Those of others never begin so.
const OwnID = "troupe-"

func (m *Routing) nextID() string {
	m.Made++
	return OwnID + strconv.Itoa(m.Made)
}

// callOf is the place of the open call of that id, or -1. The host's ids are
// strings.
func (m *Routing) callOf(id protocol.ID) int {
	text := id.Text()
	return slices.IndexFunc(m.Calls, func(c Call) bool { return c.ID == text && id.Equal(protocol.TextID(c.ID)) })
}

// takeCall removes an open call.
func (m *Routing) takeCall(i int) Call {
	c := m.Calls[i]
	if m.Calls = slices.Delete(m.Calls, i, i+1); len(m.Calls) == 0 {
		m.Calls = nil
	}
	return c
}

// interrupting reports whether an interrupt waits for its answer.
func (m *Routing) interrupting() bool {
	return slices.ContainsFunc(m.Calls, func(c Call) bool { return c.Subtype == "interrupt" })
}

// response handles a control_response.
func (m *Routing) response(f protocol.Frame) {
	i := m.callOf(f.ID)
	if i < 0 {
		m.emit(&session.UnexpectedFrame{Type: Short(f.Type), Subtype: Short(f.Subtype), RequestID: Short(f.ID.Text())})
		return
	}
	c := m.takeCall(i)
	resp, err := protocol.DecodeControlResponse(f)
	if err != nil {
		m.callOver(&c, nil, err)
		return
	}
	for _, pending := range slices.Concat(resp.PendingPermissionRequests, resp.PendingUserDialogRequests) {
		pending.Raw = bytes.Clone(pending.Raw) // not the whole answer
		m.request(pending)
	}
	if resp.Failed() {
		m.callOver(&c, nil, refusal(c.Subtype, resp))
		return
	}
	if c.Subtype == "interrupt" {
		m.endCancelled(resp)
	}
	m.callOver(&c, resp, nil)
}

// callOver ends a call that is no longer open.
func (m *Routing) callOver(c *Call, resp *protocol.ControlResponse, err error) {
	if c.Setup && c.Subtype == "initialize" && err == nil {
		err = m.initialized(resp.Response)
	}
	if c.Setup && err != nil {
		m.fail(err)
	}
	m.flushed(c, err)
	m.do(CallOver{ID: c.ID, Response: resp, Err: err})
}

// initialized makes the calls that the dialect wants before the first user message,
// and lets everything else out.
func (m *Routing) initialized(response json.RawMessage) error {
	calls, err := m.rules.Initialized(response)
	if err != nil {
		return err
	}
	for _, c := range calls { // before the user's work
		m.call(c, true)
	}
	if response == nil {
		response = json.RawMessage("null")
	}
	var capabilities []string
	m.Facts.Initialized, capabilities = m.rules.Keep(response) // not the buffer that it was read into
	if capabilities != nil {
		m.Facts.Capabilities = capabilities
		m.Recovery.Knows = m.Recovery.Knows || m.cfg.RemembersMessages
	}
	m.learned()
	if m.Gen > 1 && !m.Recovery.Passive && !slices.ContainsFunc(m.Turns, func(t Turn) bool { return t.Resend != NotResent }) {
		m.emit(&session.Recovered{SessionID: m.Facts.SessionID, Sent: session.SentNothing, Why: "no message was under way"})
	}
	m.writeOut()
	return nil
}

// endCancelled ends the queued turns that an interrupt took with it: they will have
// no result.
func (m *Routing) endCancelled(resp *protocol.ControlResponse) {
	var receipt protocol.InterruptResponse
	if resp.Decode(&receipt) != nil {
		return
	}
	if len(receipt.Unread) > 0 {
		m.emit(&session.WarningIssued{Problem: "the answer to interrupt holds what is no list of uuids: " + Short(strings.Join(receipt.Unread, ", "))})
	}
	for _, id := range receipt.Cancelled {
		if t := m.turnOf(id); t != nil {
			m.turnOver(t, session.ErrNotRun)
		}
	}
}

// expireCalls ends the calls whose limit has passed: the agent is notified, the caller
// gets a [session.TimeoutError].
func (m *Routing) expireCalls() {
	for i := 0; i < len(m.Calls); {
		c := &m.Calls[i]
		if c.Limit <= 0 || m.now.Before(c.Opened.Add(c.Limit)) {
			i++
			continue
		}
		what := "control request " + c.Subtype
		if c.Subtype == "initialize" {
			what = "initialize"
		}
		m.dropCall(i, &session.TimeoutError{What: what, Limit: c.Limit, SetBy: c.SetBy})
	}
}

// callDropped ends a call that its caller no longer waits for.
func (m *Routing) callDropped(in CallDropped) {
	if i := slices.IndexFunc(m.Calls, func(c Call) bool { return c.ID == in.ID }); i >= 0 {
		m.dropCall(i, in.Why)
	}
}

// dropCall ends a call without an answer, and tells the agent.
func (m *Routing) dropCall(i int, why error) {
	c := m.takeCall(i)
	if c.Written {
		_ = m.write(protocol.AppendControlCancel(nil, c.ID), FromHost) // a dead transport needs no cancel
	}
	m.callOver(&c, nil, why)
}

// dropCalls ends all calls, because the messages before their answers have no reader.
func (m *Routing) dropCalls() {
	for len(m.Calls) > 0 {
		m.dropCall(0, fmt.Errorf("control request %s: %w", m.Calls[0].Subtype, session.ErrConsumerStalled))
	}
}
