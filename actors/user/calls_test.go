package user_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func (r *rig) call(subtype string, limit ...time.Duration) *user.Call {
	r.t.Helper()
	c, err := r.Call(subtype, json.RawMessage(fmt.Sprintf(`{"subtype":%q}`, subtype)), cmp.Or(limit...))
	require.NoError(r.t, err)
	r.calls = append(r.calls, c)
	return c
}

// subtypes lists the control requests among lines; others as they are.
func subtypes(t *testing.T, lines []string) []string {
	t.Helper()
	var all []string
	for _, line := range lines {
		f := frame(t, line)
		if f.Type == protocol.TypeControlRequest {
			all = append(all, f.Subtype)
		} else {
			all = append(all, line)
		}
	}
	return all
}

func TestCallsAreWrittenOnceInTheOrderTheyWereMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprint("call_", i))
		r.call(want[i])
	}
	assert.Equal(t, want, subtypes(t, r.wrote()))
}

func TestCallsWaitForTheAgentToBeInitialized(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	early := r.call("set_model")
	r.Interrupt("own")
	assert.Equal(t, []string{"initialize", "interrupt"}, subtypes(t, r.wrote()))
	r.read(success("own", `{}`))
	r.read(success("troupe-1", `{}`))
	assert.Equal(t, []string{"set_model"}, subtypes(t, r.wrote()))
	assert.False(t, isClosed(early.Done()))
}

func TestAnswersFindTheirCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b, c := r.call("a"), r.call("b"), r.call("c")
	settled := r.read(success(c.ID, `{"n":3}`), refused(a.ID, "no"), success("nobody", `{}`), success(c.ID, `{"n":4}`))
	assert.Equal(t, []*user.Call{a, c}, settled)

	resp, err := c.Answer()
	require.NoError(t, err)
	assert.JSONEq(t, `{"n":3}`, string(resp.Response), "the first answer counts")
	_, err = a.Answer()
	var refusal *session.ControlError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, session.ControlError{Request: "a", Message: "no"}, *refusal)
	assert.False(t, isClosed(b.Done()))
	assert.Len(t, eventsOf[*session.UnexpectedFrame](r), 2, "one that nobody waits for, and one again")
}

func TestARefusalTellsWhatTheAgentTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.call("set_model")
	r.read(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"error","request_id":%q,"error":"busy","error_code":"E1","retryable":true,"details":{"x":1}}}`, c.ID))
	_, err := c.Answer()
	var refusal *session.ControlError
	require.ErrorAs(t, err, &refusal)
	assert.True(t, refusal.Retryable)
	assert.JSONEq(t, `{"x":1}`, string(refusal.Details))
	require.EqualError(t, err, "the agent refused control request set_model (E1): busy")
}

func TestACallRunsOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Control: 10 * time.Second}))
	short := r.call("short", time.Second)
	usual := r.call("usual")
	patient := r.call("patient", -1)
	r.wrote()

	pass(t, r.sched, time.Second-1)
	require.Empty(t, r.wrote())
	pass(t, r.sched, 1)
	assert.Equal(t, []string{cancelRequest(short.ID)}, r.wrote())
	_, err := short.Answer()
	var timeout *session.TimeoutError
	require.ErrorAs(t, err, &timeout)
	assert.Equal(t, session.TimeoutError{What: "control request short", Limit: time.Second, SetBy: "the caller"}, *timeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	assert.Empty(t, r.read(success(short.ID, `{}`)), "a late answer")
	assert.Len(t, eventsOf[*session.UnexpectedFrame](r), 1)

	pass(t, r.sched, 9*time.Second)
	_, err = usual.Answer()
	require.ErrorAs(t, err, &timeout)
	assert.Equal(t, "Limits.Control", timeout.SetBy)
	pass(t, r.sched, 24*time.Hour)
	assert.False(t, isClosed(patient.Done()))
	assert.NoError(t, r.InitFailure())
}

func TestACallThatWasNeverWrittenNeedsNoCancel(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	r.wrote()
	c := r.call("set_model", time.Second)
	pass(t, r.sched, time.Second)
	require.True(t, isClosed(c.Done()))
	assert.Empty(t, r.wrote())
}

func TestInitializeThatRunsOutFailsTheSession(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	pass(t, r.sched, 2*time.Minute)
	require.ErrorIs(t, r.InitFailure(), context.DeadlineExceeded)
	assert.EqualError(t, r.InitFailure(), "initialize: no answer within 2m0s (set by Limits.Initialize)")
}

func TestAwaitCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.call("a")
	r.sched.AfterFunc(time.Second, func() { r.read(success(c.ID, `{"n":1}`)) })
	resp, err := r.AwaitCall(t.Context(), c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"n":1}`, string(resp.Response))
}

func TestAbandonedCallsAreTakenBackOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.call("a")
	r.wrote()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	r.sched.AfterFunc(time.Second, func() { cancel(enough) })
	_, err := r.AwaitCall(ctx, c)
	require.ErrorIs(t, err, enough)
	assert.Equal(t, []string{cancelRequest(c.ID)}, r.wrote())
	r.Abandon(c, errors.New("again"))
	assert.Empty(t, r.wrote())
	_, err = c.Answer()
	require.ErrorIs(t, err, enough)
	assert.Empty(t, r.read(success(c.ID, `{}`)))
}

func TestAnAnswerThatCameBeatsAContextThatEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.call("a")
	r.wrote()
	r.read(refused(c.ID, "no"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.AwaitCall(ctx, c)
	require.ErrorContains(t, err, "no")
	assert.Empty(t, r.wrote())
}

func TestCallsOfASessionThatCloses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.call("before")
	r.BeginClosing(true)
	_, err := r.Call("after", json.RawMessage(`{}`), 0)
	require.ErrorIs(t, err, session.ErrClosed)
	r.Interrupt("own")
	assert.False(t, isClosed(before.Done()), "it may still be answered")

	broken := errors.New("broken")
	r.Terminate(broken)
	_, err = before.Answer()
	require.ErrorIs(t, err, broken)
	_, err = r.Call("late", json.RawMessage(`{}`), 0)
	require.ErrorIs(t, err, session.ErrClosed)
	require.ErrorIs(t, err, broken)
	r.Abandon(before, errors.New("late"))
}

func TestCallsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	open := func(subtype string, size int) *user.Call {
		c, err := r.Call(subtype, json.RawMessage(fmt.Sprintf(`{"subtype":%q,"pad":"%s"}`, subtype, strings.Repeat("x", size))), 0)
		require.NoError(t, err)
		return c
	}
	r.fill()
	bad, err := r.Call("bad", json.RawMessage(`{`), 0)
	require.NoError(t, err)
	large, full, last := open("large", 32<<20), open("full", 100<<10), open("last", 0)
	_, err = bad.Answer()
	require.Error(t, err)
	_, err = large.Answer()
	require.ErrorIs(t, err, session.ErrTooLarge)
	require.ErrorContains(t, err, "large")
	assert.Empty(t, r.wrote(), "nothing overtakes what finds no room")
	r.Taken(filled)
	assert.Equal(t, []string{"full", "last"}, subtypes(t, r.wrote()))
	assert.False(t, isClosed(full.Done()))
	assert.False(t, isClosed(last.Done()))
}

func TestAnswersListRequestsThatWait(t *testing.T) {
	t.Parallel()
	const pending = `"pending_permission_requests":[%s],"pending_user_dialog_requests":[%s]`
	more := fmt.Sprintf(pending, permission("p"), request("d", "request_user_dialog"))
	for name, answer := range map[string]string{
		"success": `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{},` + more + `}}`,
		"error":   `{"type":"control_response","response":{"subtype":"error","request_id":%q,"error":"no",` + more + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRaw(t)
			r.read(fmt.Sprintf(answer, "troupe-1"), permission("p"))
			require.Len(t, r.Take(session.KindPermission), 1, "once, although it came twice")
			require.Len(t, r.Take(session.KindInquiry), 1)
			assert.Equal(t, 2, r.Gates())
			assert.Equal(t, 2, r.Unanswered())
		})
	}
}

func TestSnapshotNamesWhatIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.call("a")
	pass(t, r.sched, time.Second)
	b := r.call("b", -1)
	r.read(request("h", "hook_callback"), permission("p"))
	pass(t, r.sched, time.Second)
	r.turn("t")
	r.read(`{"type":"system","subtype":"task_started","task_id":"k2","description":"npm run dev"}`)
	pass(t, r.sched, time.Second)
	r.read(`{"type":"system","subtype":"task_started","task_id":"k1"}`)
	want := []session.Wait{
		{What: "hook request", ID: "h", Age: 2 * time.Second},
		{What: "permission request", ID: "p", Age: 2 * time.Second},
		{What: "control request a", ID: a.ID, Age: 3 * time.Second, Limit: time.Minute},
		{What: "control request b", ID: b.ID, Age: 2 * time.Second},
		{What: "background task npm run dev", ID: "k2", Age: time.Second},
		{What: "background task", ID: "k1"},
		{What: "turn written", ID: "t", Age: time.Second},
	}
	for i := range want {
		want[i].Since = r.sched.Now().Add(-want[i].Age)
	}
	assert.Equal(t, want, r.Snapshot().Waits)
}
