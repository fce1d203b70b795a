package router_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a router in virtual time between the user's side, stubs of its neighbours
// and a record of what they are told. Its parent is a root that lives.
type rig struct {
	*user.Side
	t       *testing.T
	sched   *sim.Scheduler
	sys     *kernel.System
	cfg     router.Config
	box     *router.Box
	parent  kernel.Address[int]
	lives   int
	crashes []error

	lines   []string
	events  []session.Event
	told    int             // summaries that the session was told
	sum     machine.Summary // the last of them
	failed  error           // why the session cannot use the agent
	ran     []machine.Run
	over    []uint64 // requests whose callbacks are over
	missed  []router.Wanted
	dialect stubDialect
}

// stubDialect is Claude's, with some of it replaced.
type stubDialect struct {
	dialect.Dialect
	initialize func() (json.RawMessage, error)
	check      error
	after      []protocol.HostRequest
}

func (d *stubDialect) Initialize(o *dialect.Input) (json.RawMessage, error) {
	if d.initialize != nil {
		return d.initialize()
	}
	return d.Dialect.Initialize(o)
}

func (d *stubDialect) CheckInitialize(*dialect.Input, json.RawMessage) error { return d.check }

func (d *stubDialect) BeforeEOF(json.RawMessage) []protocol.HostRequest      { return nil }
func (d *stubDialect) AfterInitialize(*dialect.Input) []protocol.HostRequest { return d.after }

// behavior is an actor that is a function.
type behavior[M any] func(*kernel.Context[M], M)

func (behavior[M]) Start(*kernel.Context[M]) error           { return nil }
func (b behavior[M]) Handle(c *kernel.Context[M], m M) error { b(c, m); return nil }
func (behavior[M]) Stop(*kernel.Context[M])                  {}

func listen[M any](r *rig, name string, at *kernel.Address[M], heard func(M)) {
	r.t.Helper()
	require.NoError(r.t, kernel.SpawnRoot[M](r.sys, name, at, behavior[M](func(_ *kernel.Context[M], m M) { heard(m) })))
}

// rules are what a session says, with that dialect.
type rules struct {
	routertest.Rules
	dialect *stubDialect
}

func (r rules) Initialize(int) ([]byte, error) { return r.dialect.Initialize(&dialect.Input{}) }

func (r rules) Initialized(response []byte) ([]machine.Called, error) {
	if err := r.dialect.CheckInitialize(nil, response); err != nil {
		return nil, err
	}
	var calls []machine.Called
	for _, req := range r.dialect.AfterInitialize(nil) {
		body, err := r.dialect.Encode(req)
		if err != nil {
			return nil, err
		}
		calls = append(calls, machine.Called{Subtype: req.Subtype(), Body: body})
	}
	return calls, nil
}

func newRig(t *testing.T, limits ...session.Limits) *rig {
	t.Helper()
	r := &rig{t: t, sched: sim.New(1), dialect: stubDialect{Dialect: claude.New()}}
	seams := r.sched.Config()
	seams.OnCrash = func(c kernel.Crash) { r.crashes = append(r.crashes, c.Reason) }
	r.sys = kernel.NewSystem(seams)
	emit := func(e session.Event) { r.events = append(r.events, e) }
	machineConfig := machine.Config{
		Limits: &append(limits, session.Limits{})[0],
		Rules: rules{dialect: &r.dialect, Rules: routertest.Rules{
			Deny: func(_ session.Kind, _ protocol.Frame, reason string) ([]byte, string) { return nil, reason },
		}},
	}
	r.cfg = router.Config{Named: func(string) {},
		Clock: r.sched, Emit: emit,
		Self: new(kernel.Address[machine.Input]), Session: new(kernel.Address[machine.LifeInput]), Transport: new(kernel.Address[machine.ToTransport]),
		Callbacks: new(router.Lazy),
	}
	r.Side = user.New(user.Config{
		Limits: machineConfig.Limits, Clock: r.sched, Rand: r.sched, Exec: r.sched, Emit: emit,
		Router: func(in machine.Input, _ bool) { r.tell(in) },
		UserLine: func(m *protocol.UserMessage) ([]byte, error) {
			return r.dialect.UserLine((&dialect.Input{}).UserDefaults(), m)
		},
	})
	r.cfg.User = r.Side
	r.box = router.NewBox(r.cfg, machineConfig)
	listen(r, "session", r.cfg.Session, func(in machine.LifeInput) {
		switch in := in.(type) {
		case machine.Changed:
			r.told++
			r.sum = *in.Summary
		case machine.Unusable:
			r.failed = in.Err
		case router.Wanted:
			r.missed = append(r.missed, in)
		}
	})
	listen(r, "callbacks", &r.cfg.Callbacks.Get().Supervisor, func(m router.ToCallbacks) { r.missed = append(r.missed, m.(router.Wanted)) })
	listen(r, "transport", r.cfg.Transport, func(m machine.ToTransport) {
		if w, ok := m.(machine.Write); ok {
			r.lines = append(r.lines, strings.TrimSuffix(string(w.Line), "\n"))
		}
	})
	for _, kind := range []session.Kind{session.KindPermission, session.KindHook, session.KindMCP, session.KindModelPolicy, session.KindInquiry} {
		listen(r, kind.String(), &r.cfg.Callbacks.Get().Kinds[kind], func(m machine.ToCallback) {
			switch m := m.(type) {
			case machine.Run:
				r.ran = append(r.ran, m)
			case machine.Cancel:
				r.over = append(r.over, m.Seq)
			}
		})
	}
	require.NoError(t, kernel.SpawnRoot[int](r.sys, "parent", &r.parent, behavior[int](func(c *kernel.Context[int], life int) {
		require.NoError(t, kernel.Spawn(c, fmt.Sprintf("router#%d", life), r.cfg.Self, router.New(r.box)))
	})))
	t.Cleanup(r.sched.Close)
	return r
}

func (r *rig) tell(in machine.Input) { r.cfg.Self.Tell(nil, in) }

// start spawns the next incarnation of the router.
func (r *rig) start() *rig {
	r.t.Helper()
	r.lives++
	r.parent.Tell(nil, r.lives)
	r.settle()
	require.True(r.t, r.cfg.Self.Live())
	return r
}

// kill ends the router that lives.
func (r *rig) kill() {
	r.t.Helper()
	require.NoError(r.t, kernel.StopAndWait(r.t.Context(), r.cfg.Self))
}

// connect makes an agent that can be written to.
func (r *rig) connect() *rig {
	r.tell(machine.Connected{Gen: 1})
	r.settle()
	return r
}

// initialized is a rig whose agent answered initialize.
func initialized(t *testing.T) *rig {
	t.Helper()
	r := newRig(t).start().connect()
	r.read(success(r.sent("initialize"), `{"commands":[]}`))
	require.NotNil(t, r.Initialized())
	r.lines, r.told, r.ran = nil, 0, nil
	return r
}

func (r *rig) settle() { r.pass(0) }

// pass lets virtual time go by.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	over := make(chan struct{})
	r.sched.AfterFunc(d, func() { close(over) })
	require.NoError(r.t, r.sched.Await(context.Background(), over))
}

// read gives lines of the agent to the router.
func (r *rig) read(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		f, err := protocol.ParseFrame([]byte(line))
		require.NoError(r.t, err)
		r.tell(machine.FramesRead{Frames: []protocol.Frame{f}})
	}
	r.settle()
}

// call makes a control request as the user does.
func (r *rig) call(subtype string, limit ...time.Duration) *user.Call {
	r.t.Helper()
	c, err := r.Call(subtype, json.RawMessage(fmt.Sprintf(`{"subtype":%q}`, subtype)), cmp.Or(limit...))
	require.NoError(r.t, err)
	return c
}

// send sends a user message under the uuid u.
func (r *rig) send() *user.Turn {
	r.t.Helper()
	turn, err := r.Send(context.Background(), &protocol.UserMessage{
		Common:  protocol.Common{UUID: "u"},
		Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("hi")},
	})

	require.NoError(r.t, err)
	return turn
}

// kinds are those of the requests that were given out.
func (r *rig) kinds() []session.Kind {
	var all []session.Kind
	for _, run := range r.ran {
		all = append(all, run.Kind)
	}
	slices.Sort(all)
	return all
}

// wrote lists what was written: types, with the subtype of requests.
func (r *rig) wrote() []string {
	r.t.Helper()
	var all []string
	for _, line := range r.lines {
		f, err := protocol.ParseFrame([]byte(line))
		require.NoError(r.t, err)
		what := f.Type
		if f.Type == protocol.TypeControlRequest {
			what = f.Subtype
		}
		all = append(all, what)
	}
	return all
}

// sent is the id of the one request of a subtype that was written.
func (r *rig) sent(subtype string) string {
	r.t.Helper()
	i := slices.Index(r.wrote(), subtype)
	require.GreaterOrEqual(r.t, i, 0, "%s was not written", subtype)
	f, err := protocol.ParseFrame([]byte(r.lines[i]))
	require.NoError(r.t, err)
	return f.RequestID
}

func success(id, response string) string {
	return fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`, id, response)
}

func failure(id, text string) string {
	return fmt.Sprintf(`{"type":"control_response","response":{"subtype":"error","request_id":%q,"error":%q}}`, id, text)
}

func request(id, subtype string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":%q}}`, id, subtype)
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestInitializeComesFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.call("set_model")
	r.send()
	r.settle()
	assert.Empty(t, r.lines, "there is no agent yet")
	r.connect()
	assert.Equal(t, []string{"initialize"}, r.wrote())
	for range 3 {
		r.tell(machine.Connected{Gen: 1})
	}
	r.pass(time.Second)
	assert.Equal(t, []string{"initialize"}, r.wrote(), "once, and nothing before its answer")

	told := r.told
	r.read(success(r.sent("initialize"), `{"commands":[],"capabilities":["a"]}`))
	assert.Equal(t, []string{"initialize", "set_model", "user"}, r.wrote(), "then what waits, in the order it was made")
	assert.JSONEq(t, `{"commands":[],"capabilities":["a"]}`, string(r.Initialized()))
	assert.Greater(t, r.told, told)
	require.NoError(t, r.failed)
}

func TestWhatTheDialectWantsComesBeforeTheUsersWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	model := "m"
	r.dialect.after = []protocol.HostRequest{&protocol.SetModelRequest{Model: &model}, &protocol.InterruptRequest{}}
	r.start()
	r.send()
	r.call("mine")
	r.connect()
	r.read(success(r.sent("initialize"), `{}`))
	assert.Equal(t, []string{"initialize", "set_model", "interrupt", "user", "mine"}, r.wrote())
	require.NoError(t, r.failed)
	r.read(failure(r.sent("set_model"), "no such model"))
	var refusal *session.ControlError
	require.ErrorAs(t, r.failed, &refusal, "the session cannot be used without it")
}

func TestInitializeThatGoesWrong(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		prepare func(r *rig)
		after   func(r *rig)
		want    string
	}{
		"it cannot be built": {func(r *rig) {
			r.dialect.initialize = func() (json.RawMessage, error) { return nil, odd }
		}, nil, "odd"},
		"it is refused": {nil, func(r *rig) { r.read(failure(r.sent("initialize"), "not today")) },
			"the agent refused control request initialize: not today"},
		"its answer will not do": {func(r *rig) { r.dialect.check = odd }, func(r *rig) { r.read(success(r.sent("initialize"), `{}`)) },
			"odd"},
		"it is never answered": {nil, func(r *rig) { r.pass(2 * time.Minute) },
			"initialize: no answer within 2m0s (set by Limits.Initialize)"},
		"what follows cannot be encoded": {func(r *rig) {
			r.dialect.after = []protocol.HostRequest{unknownRequest{}}
		}, func(r *rig) { r.read(success(r.sent("initialize"), `{}`)) }, "test_of_next_week"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if c.prepare != nil {
				c.prepare(r)
			}
			r.start()
			r.connect()
			r.call("set_model")
			if c.after != nil {
				c.after(r)
			}
			r.settle()
			require.ErrorContains(t, r.failed, c.want, "the session is told")
			assert.Nil(t, r.Initialized())
			assert.NotContains(t, r.wrote(), "set_model")
			assert.Empty(t, r.crashes)
		})
	}
}

func (d *stubDialect) Encode(req protocol.HostRequest) (json.RawMessage, error) {
	if _, ok := req.(unknownRequest); ok {
		return nil, &session.UnsupportedCapabilityError{Backend: "stub", Request: req.Subtype()}
	}
	return d.Dialect.Encode(req)
}

// unknownRequest is a request that no dialect encodes.
type unknownRequest struct{ protocol.HostRequest }

func (unknownRequest) Subtype() string { return "test_of_next_week" }

func TestInitializeThatIsAnsweredLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, session.Limits{Initialize: time.Second}).start().connect()
	id := r.sent("initialize")
	r.pass(time.Second)
	require.ErrorIs(t, r.failed, context.DeadlineExceeded)
	assert.Equal(t, []string{"initialize", "control_cancel_request"}, r.wrote())
	r.read(success(id, `{}`))
	assert.Nil(t, r.Initialized(), "too late")
	require.ErrorIs(t, r.failed, context.DeadlineExceeded)
}

func TestInitializeThatIsAnsweredJustInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, session.Limits{Initialize: time.Second}).start().connect()
	r.pass(time.Second - 1)
	r.read(success(r.sent("initialize"), `{}`))
	r.pass(time.Hour)
	require.NoError(t, r.failed)
	assert.Equal(t, []string{"initialize"}, r.wrote())
}

func TestRequestsGoToWhoAnswersThem(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	r.read(request("a", "can_use_tool"), request("b", "hook_callback"), request("c", "can_use_tool"), request("d", "mcp_message"), request("e", "get_model_policy"), request("f", "elicitation"))
	assert.Equal(t, []session.Kind{session.KindPermission, session.KindPermission, session.KindHook, session.KindMCP, session.KindModelPolicy, session.KindInquiry}, r.kinds())
	assert.Positive(t, r.told)
	assert.Equal(t, 3, r.sum.Gates)
	r.ran = nil
	r.read(request("a", "can_use_tool"))
	assert.Empty(t, r.ran, "a repeated id is nobody's")
	assert.Empty(t, r.missed)
}

// TestRequestsForNobody are those of a kind that has no actor yet, or just now.
func TestRequestsForNobody(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	require.NoError(t, kernel.StopAndWait(t.Context(), &r.cfg.Callbacks.Get().Kinds[session.KindHook]))
	r.read(request("a", "hook_callback"))
	assert.Equal(t, []router.Wanted{{Kind: session.KindHook}}, r.missed, "their supervisor starts it")
	require.NoError(t, kernel.StopAndWait(t.Context(), &r.cfg.Callbacks.Get().Supervisor))
	r.read(request("b", "hook_callback"))
	assert.Equal(t, []router.Wanted{{Kind: session.KindHook}, {Kind: session.KindHook}}, r.missed, "the session starts the supervisor")
}

func TestRequestsThatAreNoCallbacksBusiness(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	r.read(request("a", "of_next_week"), `{"type":"control_request","request_id":"c"}`)
	require.Len(t, r.lines, 2)
	assert.Contains(t, r.lines[0], `"error":"Unsupported control request subtype: of_next_week"`)
	assert.Contains(t, r.lines[0], `"request_id":"a"`)
	assert.Contains(t, r.lines[1], `"subtype":"error"`, "an answer to what cannot be read, too")
	assert.Empty(t, r.ran)
}

func TestTheAgentTakesRequestsBack(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"control_cancel_request", "control_cancel"} {
		r := initialized(t)
		r.read(request("a", "can_use_tool"))
		require.Equal(t, 1, r.sum.Gates)
		told := r.told
		r.read(fmt.Sprintf(`{"type":%q,"request_id":"a"}`, alias))
		assert.Zero(t, r.sum.Gates)
		assert.Equal(t, []uint64{r.ran[0].Seq}, r.over)
		assert.Greater(t, r.told, told, "the session sees that no gate is open")
		assert.Empty(t, r.lines)
	}
}

func TestRequestsThatAnAnswerLists(t *testing.T) {
	t.Parallel()
	r := newRig(t).start().connect()
	id := r.sent("initialize")
	r.lines = nil
	r.read(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{},"pending_permission_requests":[%s],"pending_user_dialog_requests":[%s]}}`,
		id, request("p", "can_use_tool"), request("d", "request_user_dialog")))
	assert.Equal(t, []session.Kind{session.KindPermission, session.KindInquiry}, r.kinds())
	assert.Empty(t, r.lines)

	call := r.call("set_model")
	r.settle()
	r.ran = nil
	r.read(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"error","request_id":%q,"error":"no","pending_permission_requests":[%s]}}`, call.ID, request("q", "can_use_tool")))
	assert.Equal(t, []session.Kind{session.KindPermission}, r.kinds(), "whatever answer lists them")
}

func TestDeadlinesOfCalls(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	slow := r.call("slow", time.Minute)
	r.settle()
	quick := r.call("quick", time.Second)
	r.settle()
	r.pass(time.Second)
	require.True(t, isClosed(quick.Done()))
	require.False(t, isClosed(slow.Done()))
	r.pass(30 * time.Second)
	answered := r.call("answered", time.Second)
	r.settle()
	r.read(success(answered.ID, `{}`))
	r.pass(29*time.Second - 1)
	require.False(t, isClosed(slow.Done()))
	r.pass(1)
	require.True(t, isClosed(slow.Done()))
	_, err := slow.Answer()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, []string{"slow", "quick", "control_cancel_request", "answered", "control_cancel_request"}, r.wrote())
}

func TestTheNextIncarnationKeepsTheDeadlines(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	call := r.call("slow", time.Minute)
	r.settle()
	r.pass(30 * time.Second)
	r.kill()
	r.pass(10 * time.Second)
	r.start()
	r.pass(20*time.Second - 1)
	require.False(t, isClosed(call.Done()))
	r.pass(1)
	assert.True(t, isClosed(call.Done()))
}

// TestTheNextIncarnationFindsWhatTheLastOneLeft: messages wait for it, a deadline too.
func TestTheNextIncarnationFindsWhatTheLastOneLeft(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	call := r.call("slow", time.Second)
	r.settle()
	r.kill()
	r.send()
	r.call("set_model")
	r.read(request("a", "can_use_tool"), `{"type":"assistant"}`)
	r.pass(time.Hour)
	require.Empty(t, r.ran)
	require.False(t, isClosed(call.Done()))
	r.start()
	assert.Equal(t, []string{"slow", "user", "set_model", "control_cancel_request"}, r.wrote())
	assert.Equal(t, []session.Kind{session.KindPermission}, r.kinds())
	assert.True(t, isClosed(call.Done()))
	unread, _ := r.Unread()
	assert.Equal(t, 1, unread)
}

func TestADeadTransportIsNoFailure(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	r.tell(machine.Disconnected{})
	turn := r.send()
	r.settle()
	assert.False(t, isClosed(turn.Done()), "the session decides")
	assert.Empty(t, r.crashes)
}

func TestTheSessionIsToldOfTheEnd(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	r.read(`{"type":"assistant"}`)
	told := r.told
	r.tell(machine.OutputEnded{})
	r.settle()
	assert.Greater(t, r.told, told)
	assert.True(t, r.sum.Drained)
}

func TestTheSessionIsToldOfTurns(t *testing.T) {
	t.Parallel()
	r := initialized(t)
	r.send()
	r.settle()
	told := r.told
	assert.Positive(t, told, "one is under way")
	r.read(`{"type":"assistant"}`)
	assert.Equal(t, told, r.told, "messages are the user's")
	r.read(`{"type":"result","subtype":"success","user_message_uuids":["u"]}`)
	assert.Greater(t, r.told, told)
}

// TestAStepThatPanics: nothing that is known after it is trusted, and nothing is
// answered any more, whichever router lives.
func TestAStepThatPanics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dialect.initialize = func() (json.RawMessage, error) { panic("a bug") }
	r.start()
	r.tell(machine.Connected{Gen: 1})
	require.NoError(t, r.sched.Run(1000))
	require.Len(t, r.crashes, 1)
	var bug *session.PanicError
	require.ErrorAs(t, r.crashes[0], &bug)
	assert.Equal(t, "a bug", bug.Value)
	assert.Equal(t, "machine.Connected", bug.Message)
	assert.True(t, r.box.Broken())
	r.lives++
	r.parent.Tell(nil, r.lives)
	r.read(request("a", "can_use_tool"))
	assert.Empty(t, r.ran)
	assert.Empty(t, r.lines)
	assert.Len(t, r.crashes, 1, "the input is not tried again")
	assert.Zero(t, r.cfg.Self.Depth())

	turn := r.send()
	r.kill()
	r.box.Finish(bug)
	r.End(bug)
	_, err := turn.Result()
	require.ErrorIs(t, err, bug)
}
