package machine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// rules deny what they are asked to, and set the agent up with one more call.
type rules struct{}

func (rules) Initialize(int) ([]byte, error) { return []byte(`{"subtype":"initialize"}`), nil }

func (rules) Initialized(response []byte) ([]machine.Called, error) {
	if string(response) == `"old"` {
		return nil, &session.ProtocolVersionError{Backend: "agent", Version: "1.0", Major: "2"}
	}
	return []machine.Called{{Subtype: "set_model", Body: json.RawMessage(`{"subtype":"set_model"}`)}}, nil
}

func (rules) BeforeEOF([]byte, []string) ([]machine.Called, error) {
	return []machine.Called{{Subtype: "flush", Body: json.RawMessage(`{"subtype":"flush"}`)}}, errOdd
}

var errOdd = errors.New("another cannot be made")

func (rules) CheckVersion(v string) error {
	if v == "9.9" {
		return &session.ProtocolVersionError{Backend: "agent", Version: v, Major: "2"}
	}
	return nil
}

func (rules) Keep(response []byte) (kept []byte, capabilities []string) {
	var in struct {
		Capabilities []string `json:"capabilities"`
	}
	_ = protocol.Unmarshal(response, &in) // then it has none
	return slices.Clone(response), in.Capabilities
}
func (rules) Shared(list []string) []string { return list }
func (rules) CheckSession(string) string    { return "" }

func (rules) Again(line []byte, done []machine.ToolCall) ([]byte, error) {
	return fmt.Appendf(nil, `{"again":%q,"done":%d}`, line, len(done)), nil
}

func (rules) Afresh(line []byte, uuid string) ([]byte, error) {
	if string(line) == "odd" {
		return nil, errOdd
	}
	return fmt.Appendf(nil, `{"afresh":%q,"uuid":%q}`, line, uuid), nil
}

func (rules) Onward(line []byte, uuid string, done []machine.ToolCall, quote bool) ([]byte, error) {
	if string(line) == "odd" {
		return nil, errOdd
	}
	return fmt.Appendf(nil, `{"onward":%q,"uuid":%q,"done":%d,"quote":%v}`, line, uuid, len(done), quote), nil
}

func (rules) KindOf(subtype string) (kind session.Kind, person bool) {
	switch subtype {
	case "can_use_tool":
		return session.KindPermission, true
	case "hook_callback":
		return session.KindHook, false
	case "mcp_message":
		return session.KindMCP, false
	case "elicitation":
		return session.KindInquiry, true
	}
	return session.KindOther, false
}

func (rules) Denial(k session.Kind, _ protocol.Frame, reason string) ([]byte, string) {
	if k == session.KindHook || k == session.KindPermission {
		return []byte(`{"behavior":"deny"}`), ""
	}
	return nil, reason
}

// configs are agents of several habits.
func configs() []machine.Config {
	small := session.Limits{Messages: 6, Bytes: 4096, HardBytes: 9000, Answers: 4, Requests: 12, Control: 5 * time.Second, Initialize: 9 * time.Second}
	return []machine.Config{
		{Rules: rules{}, Limits: &small},
		{Rules: rules{}, Limits: &small, RepeatsInit: true, ResultAfterCancelled: true, ProveGates: true},
		{Rules: rules{}, Limits: &small, RepeatsInit: true, Discard: true},
		{Rules: rules{}, Limits: &small, RepeatsInit: true, Recovers: true, RemembersMessages: true},
		{Rules: rules{}, Limits: &small, RepeatsInit: true, Recovers: true},
	}
}

func frame(format string, args ...any) protocol.Frame {
	f, err := protocol.ParseFrame(fmt.Appendf(nil, format, args...))
	if err != nil {
		panic(err)
	}
	return f
}

// world draws inputs: sense and nonsense, from few ids so that they collide. It
// knows what the machine asked for, so that some of the inputs fit.
type world struct {
	*rand.Rand
	ran   []machine.Run // not answered
	calls []string      // written, by id
	sent  int
	gen   int // of the process
	gone  bool
	lost  bool
	idle  bool // nobody needs the process, and nothing is to reach it
}

func (w *world) pick(all ...string) string { return all[w.IntN(len(all))] }

func (w *world) id() string { return fmt.Sprint("r", w.IntN(6)) }

func (w *world) uuid() string { return fmt.Sprint("u", w.IntN(5)) }

func (w *world) input() machine.Input {
	switch w.IntN(22) {
	case 0:
		return machine.UserSent{ID: w.uuid(), Line: []byte(`{"type":"user"}` + "\n"), Prompt: w.IntN(3) > 0}
	case 1:
		w.sent++
		return machine.Called{
			ID: fmt.Sprint("c", w.sent), Subtype: w.pick("set_model", "interrupt", "mcp_status"), Body: json.RawMessage(`{"subtype":"x"}`),
			Limit: time.Duration(w.IntN(4)) * time.Second, SetBy: "the caller", Own: w.IntN(5) == 0,
		}
	case 2:
		return machine.CallDropped{ID: fmt.Sprint("c", w.IntN(w.sent+1)), Why: session.ErrClosed}
	case 3, 4, 5:
		return w.answer()
	case 6:
		return machine.CallbacksLost{Seqs: []uint64{uint64(w.IntN(40)), uint64(w.IntN(40))}, Reason: "lost"}
	case 7:
		return machine.TimerFired{}
	case 8:
		return machine.ReaderAsks{Pressed: w.IntN(2) == 0}
	case 9:
		return machine.Reads{On: w.IntN(3) > 0}
	case 10:
		return machine.Taken{Bytes: int64(w.IntN(200))}
	case 11:
		return machine.Connected{Gen: w.gen}
	case 12:
		switch w.IntN(40) {
		case 0:
			return machine.Closing{Reason: []error{nil, io.ErrUnexpectedEOF}[w.IntN(2)]}
		case 1:
			return machine.Serve{On: w.IntN(2) == 0}
		case 2:
			return machine.OutputEnded{}
		case 3:
			w.gone = true
			return machine.Disconnected{}
		case 4:
			return machine.Ended{}
		case 5:
			return machine.Echoed{Head: []byte(machine.EchoOpen + `"` + machine.OwnID + `1"`)}
		case 6:
			return machine.Told{N: uint64(w.IntN(9)), In: machine.Flush{Limit: time.Duration(w.IntN(3)) * time.Second}}
		case 7:
			return machine.Unwritable{}
		case 8:
			return machine.Mute{}
		case 9, 10, 11, 12:
			if w.gone {
				w.gone, w.lost = false, true
				if w.idle {
					w.idle, w.lost = false, false
					w.gen++
					return machine.Lost{Gen: w.gen - 1, Reason: io.EOF, Passive: true}
				}
				return machine.Lost{Gen: w.gen, Reason: io.ErrUnexpectedEOF}
			}
		case 17, 18, 19:
			return machine.Told{N: uint64(w.IntN(9)), In: machine.Rest{Gen: w.gen, Idle: time.Duration(w.IntN(2)) * time.Millisecond}}
		case 13, 14, 15, 16:
			if w.lost {
				w.lost = false
				w.gen++
				policy := []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport}[w.IntN(3)]
				return machine.Verdict{Gen: w.gen - 1, Policy: policy, Reason: io.ErrUnexpectedEOF, History: w.history()}
			}
		}
	}
	frames := make([]protocol.Frame, 1+w.IntN(4))
	for i := range frames {
		frames[i] = w.frame()
	}
	return machine.FramesRead{Frames: frames}
}

// history is one that has some of what there may be.
func (w *world) history() machine.History {
	return machine.History{Known: w.IntN(3) > 0, Messages: []string{w.uuid()}, Results: []string{w.id()}}
}

func (w *world) answer() machine.Input {
	a := machine.Answered{Seq: uint64(w.IntN(40))}
	if n := len(w.ran); n > 0 && w.IntN(5) > 0 {
		i := w.IntN(n)
		a.Seq, a.Kind, a.ID = w.ran[i].Seq, w.ran[i].Kind, w.ran[i].Frame.ID.Text()
		if w.IntN(4) > 0 { // else it comes again
			w.ran = append(w.ran[:i:i], w.ran[i+1:]...)
		}
	}
	switch w.IntN(6) {
	case 0:
		a.ErrText = "failed"
	case 1:
		a.ErrText, a.Code = "failed", "no_token"
	case 2:
		a.Deny, a.Cause = "the callback failed", errors.New("boom")
	case 3:
		a.Drop = true
	case 4:
		a.Response = json.RawMessage(`{broken`)
	default:
		a.Response = json.RawMessage(`{"behavior":"allow"}`)
	}
	return a
}

func (w *world) frame() protocol.Frame {
	switch w.IntN(16) {
	case 0:
		return frame(`{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool","n":%d}}`, w.id(), w.IntN(2))
	case 1:
		return frame(`{"type":"control_request","request_id":%q,"request":{"subtype":"hook_callback","input":{"hook_event_name":%q}}}`,
			w.id(), w.pick("UserPromptSubmit", "PreToolUse"))
	case 2:
		return frame(`{"type":"control_request","request_id":%q,"request":{"subtype":%q}}`, w.id(), w.pick("mcp_message", "new", "elicitation"))
	case 3:
		return frame(`{"type":"control_cancel_request","request_id":%q}`, w.id())
	case 4, 5:
		id := "troupe-" + strconv.Itoa(1+w.IntN(2))
		if len(w.calls) > 0 && w.IntN(3) > 0 {
			id = w.calls[w.IntN(len(w.calls))]
		}
		return frame(`{"type":"control_response","response":{"subtype":%q,"request_id":%q,"error":"no","response":{"cancelled":[%q]}}}`,
			w.pick("success", "success", "success", "error"), id, w.uuid())
	case 6:
		return frame(`{"type":"result","subtype":"success","is_error":false,"result":"ok"}`)
	case 7:
		return frame(`{"type":"result","subtype":"error_during_execution","is_error":true,"user_message_uuids":[%q]}`, w.uuid())
	case 8:
		return frame(`{"type":"system","subtype":"init","session_id":"s","user_message_uuids":[%q]}`, w.uuid())
	case 9:
		return frame(`{"type":"system","subtype":"session_state_changed","state":%q}`, w.pick("idle", "running"))
	case 10:
		return frame(`{"type":"command_lifecycle","command_uuid":%q,"state":%q}`, w.uuid(), w.pick("started", "completed", "cancelled"))
	case 11:
		return frame(`{"type":"system","subtype":%q,"task_id":%q}`, w.pick("task_started", "task_notification"), w.pick("a", "b"))
	case 12:
		return protocol.OversizeFrame([]byte(w.pick(`{"type":"result","x":"`, `{"type":"assistant","x":"`, `{"x":"`)), 9000, 8000)
	case 13:
		return frame(`{"type":"stream_event","pad":%q}`, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
	}
	return frame(`{"type":"assistant","message":{"model":"m"},"n":%d}`, w.IntN(99))
}

// note follows the effects of a step.
func (w *world) note(out []machine.Effect) (back machine.Consumed) {
	for _, e := range out {
		switch e := e.(type) {
		case machine.Run:
			w.ran = append(w.ran, e)
		case machine.Write:
			f, err := protocol.ParseFrame(e.Line)
			if err == nil && f.Type == protocol.TypeControlRequest {
				w.calls = append(w.calls, f.ID.Text())
			}
		case machine.Deliver:
			for i := range e.Entries {
				n := int64(len(e.Entries[i].Frame.Raw))
				back.Messages++
				back.Bytes += n
				if e.Entries[i].Frame.Type == "stream_event" {
					back.Partials++
					back.PartialBytes += n
				}
			}
		}
	}
	return back
}

func seeds(t *testing.T, few uint64) uint64 {
	t.Helper()
	v := os.Getenv("TROUPE_SEEDS")
	if v == "" {
		return few
	}
	n, err := strconv.ParseUint(v, 10, 64)
	require.NoError(t, err, "TROUPE_SEEDS")
	return max(few, n/5)
}

// restore takes a machine through the JSON of a snapshot.
func restore(t *testing.T, m *machine.Routing, cfg machine.Config) *machine.Routing {
	t.Helper()
	data, err := json.Marshal(m.Snapshot())
	require.NoError(t, err)
	var s machine.State
	require.NoError(t, json.Unmarshal(data, &s))
	return machine.Restore(s, cfg)
}

// TestRestoredGoesOnAlike: a machine that is restored from the JSON of a snapshot, at
// any step, has the same effects from then on. Random inputs keep the invariants.
func TestRestoredGoesOnAlike(t *testing.T) {
	t.Parallel()
	restores, effects := 0, 0
	for seed := range seeds(t, 30) {
		cfg := configs()[seed%3]
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), gen: 1}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		a, b := machine.New(cfg), machine.New(cfg)
		held := machine.Consumed{}
		var in machine.Input = machine.Connected{Gen: 1}
		for step := range 150 {
			now = now.Add(time.Duration(w.IntN(4)) * 300 * time.Millisecond)
			if w.IntN(4) == 0 {
				b = restore(t, b, cfg)
				restores++
			}
			before := a.Snapshot()
			x, y := a.Step(now, in, nil), b.Step(now, in, nil)
			require.Equal(t, texts(x), texts(y), "seed %d step %d: %#v", seed, step, in)
			effects += len(x)
			check(t, cfg, in, before, a.Snapshot(), x)
			back := w.note(x)
			held.Messages += back.Messages
			held.Bytes += back.Bytes
			held.Partials += back.Partials
			held.PartialBytes += back.PartialBytes
			if in = w.input(); w.IntN(6) == 0 {
				in, held = held, machine.Consumed{}
			}
		}
	}
	t.Logf("%d restores, %d effects", restores, effects)
}

// texts makes effects comparable: of an error that comes from a snapshot the text is
// what was kept.
func texts(out []machine.Effect) []string {
	all := make([]string, len(out))
	for i, e := range out {
		switch e := e.(type) {
		case machine.Deliver:
			for _, entry := range e.Entries {
				all[i] += fmt.Sprintf("deliver %d %d %s %v", entry.Seq, entry.Task, entry.Frame.Raw, entry.Tasks)
				for _, o := range entry.Ends {
					all[i] += outcome(o)
				}
			}
		case machine.TurnOver:
			all[i] = outcome(e.Outcome)
		case machine.CallOver:
			all[i] = fmt.Sprintf("call %s %v %v", e.ID, e.Response != nil, e.Err)
		case machine.Write:
			all[i] = fmt.Sprintf("write %d %s", e.As, e.Line)
		case machine.Changed:
			all[i] = fmt.Sprintf("changed %+v", *e.Summary)
		case machine.Run:
			all[i] = fmt.Sprintf("run %d %v %s", e.Seq, e.Kind, e.Frame.Raw)
		default:
			all[i] = fmt.Sprintf("%T %+v", e, e)
		}
	}
	return all
}

func outcome(o machine.Outcome) string {
	return fmt.Sprintf("over %s %v %v %d %d", o.ID, o.Result != nil, o.Err, o.Starts, o.Ends)
}

// check holds a step to what must hold of every step.
func check(t *testing.T, cfg machine.Config, in machine.Input, before, after machine.State, out []machine.Effect) {
	t.Helper()
	open := make(map[uint64]bool)
	for _, r := range before.Requests {
		open[r.Seq] = r.Ran
	}
	delivered := before.Flow.Pushed
	for _, e := range out {
		switch e := e.(type) {
		case machine.Run:
			require.False(t, open[e.Seq], "%d runs twice", e.Seq)
			require.False(t, after.Closing && !after.Serving, "it is closing")
			open[e.Seq] = true
		case machine.Deliver:
			for i := range e.Entries {
				require.Equal(t, delivered, e.Entries[i].Seq, "in order, none twice, none missing")
				delivered++
			}
		case machine.Write:
			require.True(t, before.Up || after.Up)
			mine := e.As != machine.FromHost || bytes.Contains(e.Line, []byte(machine.OwnID)) || bytes.Contains(e.Line, []byte("control_cancel_request")) ||
				slices.ContainsFunc(after.Calls, func(c machine.Call) bool { return c.Own && bytes.Contains(e.Line, []byte(c.ID)) })
			require.True(t, mine || !before.Resting || !after.Resting, "a process that is about to go is given work: %s", e.Line)
		}
	}
	require.Equal(t, delivered, after.Flow.Pushed, "what was pushed was delivered in the same step")
	if after.Over {
		require.Zero(t, len(after.Turns)+len(after.Calls)+len(after.Requests), "open after the end: %#v", in)
	}
	for _, r := range after.Requests {
		require.True(t, open[r.Seq], "request %d waits and nobody runs it: %#v", r.Seq, in)
	}
	require.LessOrEqual(t, len(after.Requests), cfg.Limits.Requests)
	require.LessOrEqual(t, len(after.Past.Ran.First), cfg.Limits.Answers)
}

// TestASnapshotIsLeftAlone: what goes on from it does not change it.
func TestASnapshotIsLeftAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := configs()[0]
	m := machine.New(cfg)
	m.Step(now, machine.Connected{Gen: 1}, nil)
	for _, id := range []string{"a", "b"} {
		m.Step(now, machine.UserSent{ID: id}, nil)
		m.Step(now, machine.Called{ID: id, Subtype: "x", Body: json.RawMessage(`{}`)}, nil)
	}
	s := m.Snapshot()
	want, err := json.Marshal(s)
	require.NoError(t, err)
	for _, goesOn := range []*machine.Routing{m, machine.Restore(s, cfg)} {
		goesOn.Step(now, machine.CallDropped{ID: "a", Why: session.ErrClosed}, nil)
		goesOn.Step(now, machine.FramesRead{Frames: []protocol.Frame{frame(`{"type":"control_response","response":{"subtype":"success","request_id":"troupe-1"}}`)}}, nil)
		goesOn.Step(now, machine.FramesRead{Frames: []protocol.Frame{frame(`{"type":"result","subtype":"success"}`)}}, nil)
		got, err := json.Marshal(s)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	}
}

func TestFaultInASnapshot(t *testing.T) {
	t.Parallel()
	late := &session.TimeoutError{What: "initialize", Limit: time.Second, SetBy: "Limits.Initialize"}
	for name, err := range map[string]error{
		"none": nil, "plain": errors.New("boom"), "typed": late, "wrapped": fmt.Errorf("start: %w", late),
		"control": &session.ControlError{Request: "initialize", Message: "no"},
		"version": &session.ProtocolVersionError{Backend: "agent", Version: "1.0", Major: "2"},
		"echo":    &session.EchoError{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, jerr := json.Marshal(machine.Fault{Err: err})
			require.NoError(t, jerr)
			var back machine.Fault
			require.NoError(t, json.Unmarshal(data, &back))
			if err == nil {
				assert.NoError(t, back.Err)
				return
			}
			require.EqualError(t, back.Err, err.Error())
			if want, ok := errors.AsType[*session.TimeoutError](err); ok {
				got, ok := errors.AsType[*session.TimeoutError](back.Err)
				require.True(t, ok)
				assert.Equal(t, want, got)
			}
		})
	}
}

// TestTooLate: what comes after the end began says why it did.
func TestTooLate(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	for name, c := range map[string]struct {
		end  []machine.Input
		want error // beside ErrClosed
	}{
		"closed by the user":   {[]machine.Input{machine.Closing{}}, nil},
		"ended":                {[]machine.Input{machine.Ended{}}, nil},
		"closes for a reason":  {[]machine.Input{machine.Closing{Reason: io.ErrUnexpectedEOF}}, io.ErrUnexpectedEOF},
		"ended for a reason":   {[]machine.Input{machine.Ended{Reason: io.ErrUnexpectedEOF}}, io.ErrUnexpectedEOF},
		"closed, then it ends": {[]machine.Input{machine.Closing{}, machine.Ended{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine.New(machine.Config{})
			for _, in := range c.end {
				m.Step(now, in, nil)
			}
			out := m.Step(now, machine.UserSent{ID: "u"}, nil)
			out = m.Step(now, machine.Called{ID: "c"}, out)
			errs := 0
			for _, e := range out {
				var err error
				switch e := e.(type) {
				case machine.TurnOver:
					err = e.Err
				case machine.CallOver:
					err = e.Err
				default:
					continue
				}
				errs++
				require.ErrorIs(t, err, session.ErrClosed)
				if c.want == nil {
					require.EqualError(t, err, session.ErrClosed.Error())
				} else {
					require.ErrorIs(t, err, c.want)
				}
			}
			require.Equal(t, 2, errs)
		})
	}
}

// written is the control requests among the lines of out.
func written(out []machine.Effect) (all []protocol.Frame) {
	for _, e := range out {
		if w, ok := e.(machine.Write); ok {
			if f, err := protocol.ParseFrame(w.Line); err == nil && f.Type == protocol.TypeControlRequest {
				all = append(all, f)
			}
		}
	}
	return all
}

// TestWhatChangesTheOptions: the next process would not know of it.
func TestWhatChangesTheOptions(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	for subtype, changed := range map[string]bool{
		"set_permission_mode": true, "set_model": true, "claim_session": true, "of_next_week": true,
		"interrupt": false, "get_settings": false, "mcp_message": false, "list_models": false,
	} {
		m := machine.New(machine.Config{Rules: rules{}})
		out := m.Step(now, machine.Connected{Gen: 1}, nil)
		for range 2 {
			for _, line := range written(out) {
				out = m.Step(now, machine.FramesRead{Frames: []protocol.Frame{
					frame(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`, line.ID.Text()),
				}}, nil)
			}
		}
		require.False(t, m.Snapshot().Told.Changed, "calls of the dialect's own are made to each process")
		m.Step(now, machine.Called{ID: "c", Subtype: subtype, Body: json.RawMessage(`{}`)}, nil)
		require.Equal(t, changed, m.Snapshot().Told.Changed, subtype)
	}
}
