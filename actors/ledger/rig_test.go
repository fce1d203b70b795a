package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a ledger in virtual time, with a record of what it writes and
// reports.
type rig struct {
	*ledger.Ledger
	t      testing.TB
	sched  *sim.Scheduler
	out    *outlet
	events []session.Event
}

// outlet takes lines for the agent, or refuses them.
type outlet struct {
	lines []string
	as    []ledger.Class
	fail  func(line string) error // nil: everything is taken
}

func (o *outlet) Write(b []byte, as ledger.Class) error {
	o.as = append(o.as, as)
	if o.fail != nil {
		if err := o.fail(string(b)); err != nil {
			return err
		}
	}
	o.lines = append(o.lines, strings.TrimSuffix(string(b), "\n"))
	return nil
}

func newRig(t testing.TB, change ...func(*ledger.Config)) *rig {
	t.Helper()
	r := &rig{t: t, sched: sim.New(1), out: &outlet{}}
	cfg := ledger.Config{
		Clock: r.sched, Rand: r.sched, Exec: r.sched,
		Emit: func(e session.Event) { r.events = append(r.events, e) },
		Deny: func(q *ledger.Request, reason string) ([]byte, string) {
			if q.Kind == session.KindPermission {
				return []byte(fmt.Sprintf(`{"behavior":"deny","message":%q}`, reason)), ""
			}
			return nil, reason
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	r.Ledger = ledger.New(cfg)
	r.SetOutlet(r.out)
	t.Cleanup(r.sched.Close)
	return r
}

// limits changes the limits of a rig's ledger.
func limits(l session.Limits) func(*ledger.Config) {
	return func(c *ledger.Config) { c.Limits = l }
}

func frame(t testing.TB, line string) protocol.Frame {
	t.Helper()
	f, err := protocol.ParseFrame([]byte(line))
	require.NoError(t, err, line)
	return f
}

// put gives lines to the inbox, as one read of the agent's output.
func (r *rig) put(lines ...string) {
	r.t.Helper()
	r.Put(r.frames(lines...))
}

func (r *rig) frames(lines ...string) []protocol.Frame {
	r.t.Helper()
	all := make([]protocol.Frame, len(lines))
	for i, line := range lines {
		all[i] = frame(r.t, line)
	}
	return all
}

// sort handles what is in the inbox, as the router does. It returns the calls
// that were answered.
func (r *rig) sort() (settled []*ledger.Call) {
	for {
		f, _, ok := r.DeliverContent()
		if !ok {
			return settled
		}
		switch f.Type {
		case protocol.TypeControlResponse:
			if c := r.Settle(f); c != nil {
				settled = append(settled, c)
			}
		case protocol.TypeControlRequest:
			r.Open(f)
		case protocol.TypeControlCancel, protocol.TypeControlCancelAlias:
			r.Cancel(f)
		default:
			r.Skip()
		}
	}
}

// read puts lines and sorts them.
func (r *rig) read(lines ...string) []*ledger.Call {
	r.t.Helper()
	r.put(lines...)
	return r.sort()
}

// wrote returns the lines written since the last call.
func (r *rig) wrote() []string {
	lines := r.out.lines
	r.out.lines = nil
	return lines
}

// ready makes the agent initialized.
func (r *rig) ready() *rig {
	r.SetInitialized(json.RawMessage(`{}`))
	return r
}

// turn opens a turn under a uuid and writes it.
func (r *rig) turn(uuid string) *ledger.Turn {
	r.t.Helper()
	turn, err := r.OpenTurn(userMessage(uuid))
	require.NoError(r.t, err)
	require.NoError(r.t, r.WriteTurns(encodeUser))
	return turn
}

func userMessage(uuid string) *protocol.UserMessage {
	return &protocol.UserMessage{
		Common:  protocol.Common{UUID: uuid},
		Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("hi")},
	}
}

func encodeUser(m *protocol.UserMessage) ([]byte, error) {
	return []byte(fmt.Sprintf(`{"type":"user","uuid":%q}`+"\n", m.UUID)), nil
}

func (r *rig) consume() *ledger.Consumer {
	r.t.Helper()
	c, err := r.Consume()
	require.NoError(r.t, err)
	return c
}

// drain reads what is there without waiting for more: the raw lines, and how
// the stream ended, if it did.
func (r *rig) drain(c *ledger.Consumer, of *ledger.Turn) (lines []string, end error) {
	r.t.Helper()
	now, cancel := context.WithCancelCause(context.Background())
	cancel(errNothing)
	for {
		e, err := c.NextOf(now, of)
		if errors.Is(err, errNothing) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(e.Frame.Raw))
	}
}

var errNothing = errors.New("nothing there now")

func (r *rig) mayRead() bool { return r.ReadWait(false) == nil }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// permission is a can_use_tool request.
func permission(id string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}`, id)
}

func request(id, subtype string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":%q}}`, id, subtype)
}

func cancelRequest(id string) string {
	return fmt.Sprintf(`{"type":"control_cancel_request","request_id":%q}`, id)
}

func success(id, response string) string {
	return fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`, id, response)
}

func refused(id, text string) string {
	return fmt.Sprintf(`{"type":"control_response","response":{"subtype":"error","request_id":%q,"error":%q}}`, id, text)
}

func assistant(n int) string { return fmt.Sprintf(`{"type":"assistant","n":%d}`, n) }

// padded is a content line of exactly size bytes.
func padded(typ string, size int) string {
	line := fmt.Sprintf(`{"type":%q,"pad":""}`, typ)
	return strings.Replace(line, `"pad":"`, `"pad":"`+strings.Repeat("x", size-len(line)), 1)
}

func resultOf(uuids ...string) string {
	b, _ := json.Marshal(uuids) // strings cannot fail
	return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":false,"result":"ok","user_message_uuids":%s}`, b)
}

const plainResult = `{"type":"result","subtype":"success","is_error":false,"result":"ok"}`

// eventsOf returns the events of one type.
func eventsOf[E session.Event](r *rig) []E {
	var found []E
	for _, e := range r.events {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

// pass lets virtual time go by.
func pass(t testing.TB, s *sim.Scheduler, d time.Duration) {
	t.Helper()
	over := make(chan struct{})
	s.AfterFunc(d, func() { close(over) })
	require.NoError(t, s.Await(context.Background(), over))
}

// WriteCalls and WriteTurns write whatever waits.
func (r *rig) WriteCalls() error { return r.WriteTurns(encodeUser) }

func (r *rig) WriteTurns(encode func(*protocol.UserMessage) ([]byte, error)) error {
	_, err := r.WriteOut(encode)
	return err
}
