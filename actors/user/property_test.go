package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestAnsweredOnceInAnyOrder drives a session through random interleavings of
// what the agent, the actors and the user do, and compares it with a model.
func TestAnsweredOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{rt: rt, ids: make(map[string]*modelID), rig: newRig(t, limits(session.Limits{Bytes: 1000, HardBytes: hardBytes, Control: 10 * time.Second}))}
		_, err := m.Send(context.Background(), userMessage("u")) // answers are remembered in a turn
		require.NoError(rt, err)
		rt.Repeat(map[string]func(*rapid.T){
			"":               func(*rapid.T) { m.check() },
			"agent writes":   func(*rapid.T) { m.agentWrites() },
			"agent asks":     func(*rapid.T) { m.agentAsks() },
			"agent repeats":  func(*rapid.T) { m.agentRepeats() },
			"agent reuses":   func(*rapid.T) { m.agentReuses() },
			"late callback":  func(*rapid.T) { m.lateCallback() },
			"agent cancels":  func(*rapid.T) { m.agentCancels() },
			"agent answers":  func(*rapid.T) { m.agentAnswers() },
			"actor takes":    func(*rapid.T) { m.actorTakes() },
			"actor dies":     func(*rapid.T) { m.actorDies() },
			"callback ends":  func(*rapid.T) { m.callbackEnds() },
			"user calls":     func(*rapid.T) { m.userCalls() },
			"user abandons":  func(*rapid.T) { m.userAbandons() },
			"user reads":     func(*rapid.T) { m.userReads() },
			"user turns off": func(*rapid.T) { m.userTurnsOff() },
			"time passes":    func(*rapid.T) { m.timePasses() },
			"session closes": func(*rapid.T) { m.sessionCloses() },
		})
		m.sessionEnds()
		m.check()
	})
}

const (
	hardBytes = 4000
	lineBytes = 500
)

// model is what a session should have done after any number of steps.
type model struct {
	*rig
	rt *rapid.T

	wrote     []string // content, as the agent wrote it
	seen      []string // content, as the user saw it
	requests  []*modelRequest
	ids       map[string]*modelID
	stale     []*Request // taken, and cancelled since
	calls     []*modelCall
	consumer  *user.Consumer
	closing   bool
	discarded bool // what is not read now is lost on purpose
}

// modelRequest is what the agent asked under an id. Others may have the same id.
type modelRequest struct {
	id, command string
	request     *Request // once an actor took it
	open        bool
	answered    bool
}

// modelID is what was written under an id.
type modelID struct {
	want    int // answers, repetitions included
	reused  bool
	answers []string // lines
}

type modelCall struct {
	call             *user.Call
	opened           time.Time
	ended            error // nil while it is open
	written, cancels int
}

var (
	errAnswered  = errors.New("answered")
	errRefused   = errors.New("refused")
	errAbandoned = errors.New("abandoned")
)

// put gives one line to the session if the reader may read, and does what it does.
func (m *model) put(line string, do func()) bool {
	m.full()
	if !m.mayRead() {
		return false
	}
	m.Put(m.frames(line))
	do()
	return true
}

// full finds the calls that a session fails because nobody reads.
func (m *model) full() {
	if m.mayRead() {
		return
	}
	for _, c := range m.calls {
		if c.ended == nil {
			c.ended = session.ErrConsumerStalled
		}
	}
}

func (m *model) agentWrites() {
	typ := rapid.SampledFrom([]string{"assistant", "stream_event"}).Draw(m.rt, "type")
	size := rapid.IntRange(100, lineBytes).Draw(m.rt, "size")
	line := strings.Replace(padded(typ, size), `"pad"`, fmt.Sprintf(`"%03d"`, len(m.wrote)%1000), 1)
	if m.put(line, func() {}) {
		m.wrote = append(m.wrote, line)
	}
}

func (m *model) agentAsks() {
	m.asks(fmt.Sprint("p", len(m.requests)))
}

// agentReuses asks for something else under an id that was used before.
func (m *model) agentReuses() { m.asks(m.someRequest().id) }

func (m *model) asks(id string) {
	q := &modelRequest{id: id, command: fmt.Sprint("command ", len(m.requests))}
	if m.put(q.line(), func() { m.comes(q) }) {
		m.requests = append(m.requests, q)
	}
}

func (q *modelRequest) line() string { return runs(`"`+q.id+`"`, q.command) }

// comes is what a session does with a request, new or not.
func (m *model) comes(q *modelRequest) {
	if m.ids[q.id] == nil {
		m.ids[q.id] = &modelID{}
	}
	id, other := m.ids[q.id], m.openUnder(q.id)
	switch {
	case other == q: // the one answer follows
	case other != nil: // both are denied
		id.reused = true
		id.want += 2
		other.open, other.answered, q.answered = false, true, true
	case q.answered || m.closing:
		id.reused = id.reused || id.want > 0 && !q.answered
		id.want++
		q.answered = true
	default:
		id.reused = id.reused || id.want > 0
		q.open, q.request = true, nil
	}
}

func (m *model) openUnder(id string) *modelRequest {
	for _, q := range m.requests {
		if q.id == id && q.open {
			return q
		}
	}
	return nil
}

// over ends a request that is open with an answer.
func (m *model) over(q *modelRequest) {
	q.open, q.answered = false, true
	m.ids[q.id].want++
}

func (m *model) someRequest() *modelRequest {
	if len(m.requests) == 0 {
		m.rt.Skip("no request yet")
	}
	return rapid.SampledFrom(m.requests).Draw(m.rt, "request")
}

func (m *model) agentRepeats() {
	q := m.someRequest()
	m.put(q.line(), func() { m.comes(q) })
}

func (m *model) agentCancels() {
	id := m.someRequest().id
	m.put(cancelRequest(id), func() {
		q := m.openUnder(id)
		if q == nil {
			return
		}
		if q.open = false; q.request != nil {
			m.stale = append(m.stale, q.request)
		}
	})
}

// lateCallback answers what the agent took back, and may have asked again since.
func (m *model) lateCallback() {
	if len(m.stale) == 0 {
		m.rt.Skip("none")
	}
	require.False(m.rt, m.Answer(rapid.SampledFrom(m.stale).Draw(m.rt, "stale"), json.RawMessage(allow), ""))
}

func (m *model) agentAnswers() {
	c := m.someCall()
	line, how := success(c.call.ID, `{}`), errAnswered
	if rapid.Bool().Draw(m.rt, "refused") {
		line, how = refused(c.call.ID, "no"), errRefused
	}
	m.put(line, func() {
		if c.ended == nil {
			c.ended = how
		}
	})
}

func (m *model) actorTakes() {
	for _, r := range m.Take(session.KindPermission) {
		i := slices.IndexFunc(m.requests, func(q *modelRequest) bool { return q.line() == string(r.Frame.Raw) })
		require.Nil(m.rt, m.requests[i].request, "taken twice")
		require.True(m.rt, m.requests[i].open, "taken although it is over")
		m.requests[i].request = r
	}
}

func (m *model) actorDies() {
	m.FailTaken(session.KindPermission, "dead")
	for _, q := range m.requests {
		if q.request != nil && q.open {
			m.over(q)
		}
	}
}

func (m *model) callbackEnds() {
	q := m.someRequest()
	if q.request == nil {
		m.rt.Skip("nobody took it")
	}
	var ok bool
	switch rapid.IntRange(0, 2).Draw(m.rt, "how") {
	case 0:
		ok = m.Answer(q.request, json.RawMessage(allow), "")
	case 1:
		ok = m.Answer(q.request, nil, "went wrong")
	case 2:
		ok = m.Fail(q.request, "no decision", errNoDecision)
	}
	require.Equal(m.rt, q.open, ok, "the first answer counts, and only in time")
	if q.open {
		m.over(q)
	}
}

func (m *model) userCalls() {
	call, err := m.Call("set_model", json.RawMessage(`{"subtype":"set_model"}`), 0)
	if m.closing {
		require.ErrorIs(m.rt, err, session.ErrClosed)
		return
	}
	require.NoError(m.rt, err)
	m.calls = append(m.calls, &modelCall{call: call, opened: m.sched.Now()})
}

func (m *model) someCall() *modelCall {
	if len(m.calls) == 0 {
		m.rt.Skip("no call yet")
	}
	return rapid.SampledFrom(m.calls).Draw(m.rt, "call")
}

func (m *model) userAbandons() {
	c := m.someCall()
	m.Abandon(c.call, errAbandoned)
	if c.ended == nil {
		c.ended = errAbandoned
	}
}

func (m *model) userReads() {
	if m.consumer == nil {
		m.consumer = m.consume()
	}
	_, err := m.Consume()
	require.ErrorIs(m.rt, err, session.ErrBusy)
	m.read1()
}

func (m *model) read1() {
	lines, err := m.drain(m.consumer, nil)
	if err != nil {
		require.True(m.rt, m.Terminated())
	}
	m.seen = append(m.seen, lines...)
}

func (m *model) userTurnsOff() {
	if m.consumer != nil {
		m.consumer.Release()
		m.consumer = nil
		m.discarded = m.discarded || m.closing
	}
}

func (m *model) timePasses() {
	pass(m.t, m.sched, time.Duration(rapid.IntRange(1, 6).Draw(m.rt, "seconds"))*time.Second)
	pass(m.t, m.sched, 0) // a deadline of this instant whose timer was set meanwhile
	now := m.sched.Now()
	for _, c := range m.calls {
		if c.ended == nil && now.Sub(c.opened) >= 10*time.Second {
			c.ended = &session.TimeoutError{}
		}
	}
}

func (m *model) sessionCloses() {
	if !m.closing && rapid.IntRange(0, 9).Draw(m.rt, "really") > 0 {
		return
	}
	m.BeginClosing(true)
	m.closing = true
	m.discarded = m.discarded || m.consumer == nil
	m.denied()
}

func (m *model) denied() {
	for _, q := range m.requests {
		if q.open {
			m.over(q)
		}
	}
}

var errTheEnd = errors.New("the end")

func (m *model) sessionEnds() {
	m.Terminate(errTheEnd)
	m.denied()
	for _, c := range m.calls {
		if c.ended == nil {
			c.ended = errTheEnd
		}
	}
	if m.consumer == nil {
		m.consumer = m.consume()
	}
	m.read1()
	require.Zero(m.rt, m.Snapshot().Unread)
	require.Zero(m.rt, m.Snapshot().UnreadBytes)
	require.Empty(m.rt, m.Snapshot().Waits)
}

// check compares.
func (m *model) check() {
	m.full()
	m.sortWritten()
	open := 0
	for _, q := range m.requests {
		if q.open {
			open++
		}
	}
	for id, a := range m.ids {
		require.Len(m.rt, a.answers, a.want, "answers to %s", id)
		for _, line := range a.answers {
			require.True(m.rt, a.reused || line == a.answers[0], "the same bytes")
		}
	}
	require.Equal(m.rt, open, m.Gates())
	require.Equal(m.rt, open, m.Unanswered())
	for _, c := range m.calls {
		m.checkCall(c)
	}
	m.checkContent()
}

// sortWritten hands the lines that were written to whom they belong.
func (m *model) sortWritten() {
	for _, line := range m.rig.wrote() {
		f := frame(m.t, line)
		if f.Type == protocol.TypeControlResponse {
			id := m.ids[f.RequestID]
			require.NotNil(m.rt, id, line)
			id.answers = append(id.answers, line)
			continue
		}
		if f.Type == "user" {
			continue
		}
		c := m.calls[slices.IndexFunc(m.calls, func(c *modelCall) bool { return c.call.ID == f.RequestID })]
		if f.Type == protocol.TypeControlRequest {
			c.written++
		} else {
			c.cancels++
		}
	}
}

func (m *model) checkCall(c *modelCall) {
	require.Equal(m.rt, c.ended != nil, isClosed(c.call.Done()), "%v", c.ended)
	require.LessOrEqual(m.rt, c.written, 1)
	if c.ended == nil {
		require.Zero(m.rt, c.cancels)
		return
	}
	resp, err := c.call.Answer()
	var timeout *session.TimeoutError
	var refusal *session.ControlError
	takenBack := true
	switch {
	case errors.Is(c.ended, errAnswered):
		takenBack = false
		require.NoError(m.rt, err)
		require.NotNil(m.rt, resp)
	case errors.Is(c.ended, errRefused):
		takenBack = false
		require.ErrorAs(m.rt, err, &refusal)
	case errors.As(c.ended, &timeout):
		require.ErrorAs(m.rt, err, &timeout)
	default:
		takenBack = !errors.Is(c.ended, errTheEnd)
		require.ErrorIs(m.rt, err, c.ended)
	}
	want := 0
	if takenBack {
		want = c.written
	}
	require.Equal(m.rt, want, c.cancels, "one cancel for a call that was written and is taken back: %v", c.ended)
}

// checkContent is ordered-lossless and bounded.
func (m *model) checkContent() {
	rest, missing := m.wrote, 0
	for _, line := range m.seen {
		for rest[0] != line {
			require.Contains(m.rt, rest[0], `"stream_event"`, "only partials may be missing")
			rest = rest[1:]
			missing++
		}
		rest = rest[1:]
	}
	dropped := 0
	for _, e := range eventsOf[*session.MessagesDropped](m.rig) {
		dropped += e.Count
	}
	require.LessOrEqual(m.rt, missing, dropped)
	if m.Terminated() && !m.discarded {
		require.Equal(m.rt, dropped, missing+len(rest), "each one that is missing was reported")
	}
	require.LessOrEqual(m.rt, m.Snapshot().UnreadBytes, int64(hardBytes+lineBytes))
}
