package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

var errNoDecision = errors.New("no decision")

const allow = `{"behavior":"allow"}`

// ask reads a permission request and takes it.
func (r *rig) ask(id string) *Request {
	r.t.Helper()
	r.read(permission(id))
	taken := r.Take(session.KindPermission)
	require.Len(r.t, taken, 1)
	return taken[0]
}

// answers lists the answers among the written lines: the id with "ok" or with
// what went wrong.
func (r *rig) answers() []string {
	r.t.Helper()
	var all []string
	for _, line := range r.wrote() {
		var m struct {
			Response struct {
				Subtype   string          `json:"subtype"`
				RequestID string          `json:"request_id"`
				Error     string          `json:"error"`
				Response  json.RawMessage `json:"response"`
			} `json:"response"`
		}
		require.NoError(r.t, json.Unmarshal([]byte(line), &m), line)
		what := m.Response.Error
		if m.Response.Subtype == "success" {
			what = string(m.Response.Response)
		}
		all = append(all, strings.TrimSpace(m.Response.RequestID+" "+what))
	}
	return all
}

func deny(reason string) string { return fmt.Sprintf(`{"behavior":"deny","message":%q}`, reason) }

func TestRequestsAreSortedByKind(t *testing.T) {
	t.Parallel()
	for subtype, kind := range map[string]session.Kind{
		"can_use_tool": session.KindPermission, "hook_callback": session.KindHook, "mcp_message": session.KindMCP,
		"get_model_policy": session.KindModelPolicy, "elicitation": session.KindInquiry, "of_next_week": session.KindOther, "": session.KindOther,
	} {
		r := newRig(t)
		r.read(request("x", subtype))
		if kind == session.KindOther {
			assert.Equal(t, []string{strings.TrimSpace("x Unsupported control request subtype: " + subtype)}, r.answers())
			continue
		}
		assert.True(t, r.TakeDue().Kinds[kind])
		taken := r.Take(kind)
		require.Len(t, taken, 1)
		assert.Equal(t, "x", taken[0].ID)
		assert.Empty(t, r.Take(kind), "each is taken once")
	}
}

func TestRequestsAreTakenOldestFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var want, got []string
	for i := range 300 {
		want = append(want, fmt.Sprint("p", i))
		r.read(permission(want[i]))
	}
	for _, q := range r.Take(session.KindPermission) {
		got = append(got, q.ID)
	}
	assert.Equal(t, want, got)
	assert.Equal(t, 300, r.Gates())
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.ask("p")
	assert.True(t, r.Answer(q, json.RawMessage(allow), ""))
	assert.False(t, r.Answer(q, json.RawMessage(allow), ""))
	assert.False(t, r.Answer(q, nil, "no"))
	assert.False(t, r.Fail(q, "no", errNoDecision))
	assert.Equal(t, []string{"p " + allow}, r.answers())
	assert.Equal(t, []*session.LateAnswer{{Kind: "permission", RequestID: "p"}, {Kind: "permission", RequestID: "p"}}, eventsOf[*session.LateAnswer](r))
	assert.Zero(t, r.Gates())
	assert.Zero(t, r.Unanswered())
}

func TestFormsOfAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.read(request("a", "hook_callback"), request("b", "hook_callback"), request("c", "hook_callback"), request("d", "hook_callback"))
	taken := r.Take(session.KindHook)
	assert.True(t, r.Answer(taken[0], nil, ""))
	assert.True(t, r.Answer(taken[1], json.RawMessage("null"), ""))
	assert.True(t, r.Answer(taken[2], nil, "went wrong"))
	assert.True(t, r.Answer(taken[3], json.RawMessage("{"), ""))
	lines := r.wrote()
	require.Len(t, lines, 4)
	assert.NotContains(t, lines[0], `"response":null`)
	assert.Contains(t, lines[1], `"response":null`)
	assert.Contains(t, lines[2], `"error":"went wrong"`)
	assert.Contains(t, lines[3], "the answer could not be encoded", "what is no JSON is no answer")
	assert.Len(t, eventsOf[*session.CallbackFailed](r), 1)
}

func TestARepeatedIDIsNotRunAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.ask("p")
	r.read(permission("p"))
	assert.Empty(t, r.Take(session.KindPermission), "while it is in flight")
	assert.Empty(t, r.wrote())
	r.Answer(q, json.RawMessage(allow), "")
	first := r.wrote()
	require.Len(t, first, 1)

	r.read(permission("p"), permission("p"))
	assert.Empty(t, r.Take(session.KindPermission), "nor later")
	assert.Equal(t, []string{first[0], first[0]}, r.wrote(), "the same bytes")
	assert.Len(t, eventsOf[*session.RepeatedRequest](r), 3)
	assert.Zero(t, r.Unanswered())
}

func TestARepeatedIDAfterADenyIsDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Fail(r.ask("p"), "no", errNoDecision)
	r.read(permission("p"))
	assert.Equal(t, []string{"p " + deny("no"), "p " + deny("no")}, r.answers())
}

func TestReportsAreShort(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("x", 1000)
	q := r.ask(long)
	r.read(request(long, long), success(long, "{}"))
	r.Fail(q, "no", errNoDecision)
	r.Answer(q, nil, "")
	r.Answer(q, json.RawMessage(allow), "")
	require.NotEmpty(t, r.events)
	for _, e := range r.events {
		assert.Less(t, len(fmt.Sprint(e)), 600, "%T", e)
		assert.Contains(t, fmt.Sprint(e), "xxx…")
	}
}

func TestTheAgentTakesARequestBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.ask("p")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.True(t, r.Scope(q, cancel))
	r.read(cancelRequest("p"))
	require.Error(t, ctx.Err(), "the callback's scope ends")
	assert.Zero(t, r.Gates())
	assert.False(t, r.Answer(q, json.RawMessage(allow), ""))
	assert.Empty(t, r.wrote(), "no answer")
	assert.Len(t, eventsOf[*session.LateAnswer](r), 1)
	again := r.ask("p")
	assert.True(t, r.Answer(again, json.RawMessage(allow), ""), "asked again it is a new request")
	assert.Equal(t, []string{"p " + allow}, r.answers())
}

func TestTheAgentTakesARequestBackBeforeAnybodyTookIt(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"control_cancel_request", "control_cancel"} {
		r := newRig(t)
		r.read(permission("p"), strings.Replace(cancelRequest("p"), "control_cancel_request", alias, 1))
		assert.Empty(t, r.Take(session.KindPermission))
		assert.Zero(t, r.Unanswered())
	}
}

func TestTheAgentTakesARequestBackBeforeItsCallbackRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.ask("p")
	r.read(cancelRequest("p"))
	assert.False(t, r.Scope(q, func(error) { t.Error("never bound") }))
}

func TestACancelAfterTheAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Answer(r.ask("p"), json.RawMessage(allow), "")
	r.read(cancelRequest("p"), cancelRequest("nobody"))
	assert.Len(t, r.wrote(), 1)
	r.read(permission("p"))
	assert.Len(t, r.wrote(), 1, "the answer stands")
}

func TestAnAnswerEndsTheScope(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.ask("p")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.True(t, r.Scope(q, cancel))
	r.Fail(q, "no", errNoDecision)
	require.ErrorIs(t, context.Cause(ctx), errNoDecision)
	assert.False(t, r.Scope(q, func(error) { t.Error("never bound") }))
}

func TestClosingDeniesEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	taken := r.ask("a")
	r.read(permission("b"), request("h", "hook_callback"), request("e", "elicitation"))
	r.BeginClosing(true)
	assert.Equal(t, []string{
		"a " + deny("the session is closing"), "b " + deny("the session is closing"),
		"h the session is closing", "e the session is closing",
	}, r.answers(), "in the order they came")
	assert.Empty(t, r.Take(session.KindPermission))
	assert.False(t, r.Answer(taken, json.RawMessage(allow), ""), "an allow that comes after the deny")

	r.read(permission("c"))
	assert.Equal(t, []string{"c " + deny("the session is closing")}, r.answers(), "at once")
	assert.Empty(t, r.Take(session.KindPermission))
}

func TestTheEndDeniesWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.ask("p")
	r.Terminate(errors.New("broken"))
	assert.Equal(t, []string{"p " + deny("the session has ended")}, r.answers())
	assert.False(t, r.Answer(q, json.RawMessage(allow), ""))
	assert.Empty(t, r.wrote())
}

func TestAnActorThatDiesFailsWhatItHadTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ask("a")
	r.read(request("h", "hook_callback"), permission("b"))
	r.FailTaken(session.KindPermission, "gone")
	assert.Equal(t, []string{"a " + deny("gone")}, r.answers())
	assert.Len(t, r.Take(session.KindPermission), 1, "what was not taken waits for the next")
	assert.Len(t, r.Take(session.KindHook), 1)
	r.FailAllTaken("all gone")
	assert.Equal(t, []string{"b " + deny("all gone"), "h all gone"}, slices.Sorted(slices.Values(r.answers())))
}

func TestAnAnswerThatDoesNotFitBecomesADeny(t *testing.T) {
	t.Parallel()
	for size, full := range map[int]bool{32 << 20: false, 100 << 10: true} {
		r := newRig(t)
		if full {
			r.fill()
		}
		q := r.ask("p")
		assert.True(t, r.Answer(q, json.RawMessage(`{"pad":"`+strings.Repeat("x", size)+`"}`), ""))
		want := []string{"p " + deny("the answer could not be written")}
		assert.Equal(t, want, r.answers())
		r.read(permission("p"))
		assert.Equal(t, want, r.answers(), "what was written counts")
	}
}

func TestClassesOfLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("u")
	r.call("interrupt")
	r.Answer(r.ask("a"), json.RawMessage(allow), "")
	r.read(permission("a"))
	r.Fail(r.ask("b"), "no", errNoDecision)
	r.ask("c")
	r.ask("d")
	r.FailTaken(session.KindPermission, "gone")
	r.fill()
	r.Answer(r.ask("e"), json.RawMessage(`{"behavior":"allow","pad":"`+strings.Repeat("x", 100<<10)+`"}`), "")
	r.BeginClosing(true)
	r.read(permission("f"))
	assert.Equal(t, []machine.Class{
		machine.FromHost, machine.FromHost, machine.Answer, machine.Again,
		machine.Denial, machine.Denial, machine.Denial, machine.FromHost, machine.FromHost, machine.Denial, machine.Denial,
	}, r.out.as)
}

func TestNobodyIsLeftToBeAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.ask("p")
	r.SetOutlet(nil)
	assert.True(t, r.Answer(q, json.RawMessage(allow), ""))
	assert.Zero(t, r.Unanswered())
}

func TestADenialThatCannotBeEncodedIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *sideConfig) {
		c.Rules.(*stubRules).deny = func(session.Kind, protocol.Frame, string) ([]byte, string) { return []byte("{"), "" }
	})
	r.Fail(r.ask("p"), "no", errNoDecision)
	assert.Equal(t, []string{"p no"}, r.answers())
}

func TestOpenRequestsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Requests: 2}))
	first := r.ask("a")
	r.read(permission("b"), request("h", "hook_callback"))
	assert.Equal(t, []string{"h too many requests are open"}, r.answers())
	assert.Empty(t, r.Take(session.KindHook))
	r.Answer(first, json.RawMessage(allow), "")
	r.wrote()
	r.read(request("i", "hook_callback"))
	assert.Empty(t, r.wrote())
	assert.Len(t, r.Take(session.KindHook), 1)
}

// sized is a permission request of about that many bytes.
func sized(id string, size int) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"v":"%s"}}}`, id, strings.Repeat("x", size))
}

func TestOpenRequestsAreBoundedByTheirBytes(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 1000, "up to a large line": 1 << 19} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, limits(session.Limits{Requests: 1 << 20}))
			var open []*Request
			n := 0
			for ; len(open) == n; n++ {
				r.read(sized(fmt.Sprint(n), size))
				open = append(open, r.Take(session.KindPermission)...)
			}
			assert.InDelta(t, (10<<20)/(size+600), len(open), float64(len(open))/50+1)
			assert.Equal(t, []string{fmt.Sprint(n-1, " ", deny("too many requests are open"))}, r.answers())
			assert.Equal(t, n-1, r.Gates())

			r.Answer(open[0], json.RawMessage(allow), "")
			r.read(cancelRequest(open[1].ID), sized("more", size), sized("most", size), sized("too many", size))
			assert.Len(t, r.Take(session.KindPermission), 2, "what is over makes room")
			r.BeginClosing(true)
			assert.Zero(t, r.Unanswered())
		})
	}
}

func TestALargeRequestAlone(t *testing.T) {
	t.Parallel()
	r, b := large(t)
	r.putLarge(sized("a", 65<<20)) // above any bound
	require.Len(t, r.Take(session.KindPermission), 1)
	used := b.Used()
	assert.Greater(t, used, int64(65<<20), "it draws on the budget as long as it is open")
	r.putLarge(sized("b", 2<<20))
	r.read(sized("c", 100))
	assert.Equal(t, []string{"b " + deny("too many requests are open")}, r.answers())
	assert.Equal(t, used, b.Used())
	assert.Len(t, r.Take(session.KindPermission), 1, "small ones are counted apart")
	r.Terminate(nil)
	assert.Zero(t, b.Used())
}
