package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a user's side in virtual time whose agent is initialized, with a record of what
// it writes and reports.
type rig struct {
	*side
	t      testing.TB
	sched  *sim.Scheduler
	out    *outlet
	calls  []*user.Call // that were opened with call
	events []session.Event
}

// outlet takes lines for the agent.
type outlet struct {
	lines []string
	as    []machine.Class
}

func (o *outlet) Write(b []byte, as machine.Class) error {
	o.as = append(o.as, as)
	o.lines = append(o.lines, strings.TrimSuffix(string(b), "\n"))
	return nil
}

// stubRules are those of no dialect in particular.
type stubRules struct {
	routertest.Rules
	deny func(k session.Kind, f protocol.Frame, reason string) ([]byte, string)
}

func (s *stubRules) Denial(k session.Kind, f protocol.Frame, reason string) ([]byte, string) {
	if s.deny != nil {
		return s.deny(k, f, reason)
	}
	if k == session.KindPermission {
		return []byte(fmt.Sprintf(`{"behavior":"deny","message":%q}`, reason)), ""
	}
	return nil, reason
}

// newRaw is a rig whose agent has not answered initialize, which is troupe-1.
func newRaw(t testing.TB, change ...func(*sideConfig)) *rig {
	t.Helper()
	r := &rig{t: t, sched: sim.New(1), out: &outlet{}}
	cfg := sideConfig{
		Config: machine.Config{Rules: &stubRules{}},
		Clock:  r.sched, Rand: r.sched, Exec: r.sched, UserLine: encodeUser,
		Emit: func(e session.Event) { r.events = append(r.events, e) },
	}
	for _, c := range change {
		c(&cfg)
	}
	r.side = newSide(cfg)
	r.SetOutlet(r.out)
	t.Cleanup(r.sched.Close)
	return r
}

func newRig(t testing.TB, change ...func(*sideConfig)) *rig {
	t.Helper()
	r := newRaw(t, change...)
	r.read(success("troupe-1", `{}`))
	r.out.lines, r.out.as, r.events = nil, nil, nil
	r.TakeDue()
	return r
}

// limits changes the limits of a rig.
func limits(l session.Limits) func(*sideConfig) {
	return func(c *sideConfig) { c.Limits = &l }
}

func frame(t testing.TB, line string) protocol.Frame {
	t.Helper()
	f, err := protocol.ParseFrame([]byte(line))
	require.NoError(t, err, line)
	return f
}

func (r *rig) frames(lines ...string) []protocol.Frame {
	r.t.Helper()
	all := make([]protocol.Frame, len(lines))
	for i, line := range lines {
		all[i] = frame(r.t, line)
	}
	return all
}

// read gives lines to the routing, as one read of the agent's output. It returns the
// calls of the rig that were answered.
func (r *rig) read(lines ...string) (settled []*user.Call) {
	r.t.Helper()
	over := func(c *user.Call) bool { return isClosed(c.Done()) }
	r.calls = slices.DeleteFunc(r.calls, over)
	open := slices.Clone(r.calls)
	r.Put(r.frames(lines...))
	return slices.DeleteFunc(open, func(c *user.Call) bool { return !over(c) })
}

// wrote returns the lines written since the last call.
func (r *rig) wrote() []string {
	lines := r.out.lines
	r.out.lines = nil
	return lines
}

// turn opens a turn under a uuid and writes it.
func (r *rig) turn(uuid string) *user.Turn {
	r.t.Helper()
	turn, err := r.Send(context.Background(), userMessage(uuid))
	require.NoError(r.t, err)
	return turn
}

func userMessage(uuid string) *protocol.UserMessage {
	return &protocol.UserMessage{
		Common:  protocol.Common{UUID: uuid},
		Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("hi")},
	}
}

func encodeUser(m *protocol.UserMessage) ([]byte, error) {
	if size, ok := strings.CutPrefix(m.UUID, fills); ok {
		n, err := strconv.Atoi(size)
		return make([]byte, n), err
	}
	return []byte(fmt.Sprintf(`{"type":"user","uuid":%q}`+"\n", m.UUID)), nil
}

func (r *rig) consume() *user.Consumer {
	r.t.Helper()
	c, err := r.Consume()
	require.NoError(r.t, err)
	return c
}

// drain reads what is there without waiting for more: the raw lines, and how
// the stream ended, if it did.
func (r *rig) drain(c *user.Consumer, of *user.Turn) (lines []string, end error) {
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

// filled is what fill leaves in the agent's stdin, in bytes: there is room for small
// lines alone.
const filled = 33<<20 - 32<<10

// fill sends that much.
func (r *rig) fill() {
	r.t.Helper()
	for _, size := range []int{32 << 20, filled - 32<<20} {
		_, err := r.Send(context.Background(), userMessage(fmt.Sprint(fills, size)))
		require.NoError(r.t, err)
	}
	lines := r.out.lines
	r.out.lines = lines[:len(lines)-2]
}

// fills begins the uuid of a message whose line has the length that follows.
const fills = "fill "
