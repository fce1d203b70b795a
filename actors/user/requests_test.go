package user_test

import (
	"encoding/json"
	"errors"
	"fmt"
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

func TestADenialThatCannotBeEncodedIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *sideConfig) {
		c.Rules.(*stubRules).deny = func(session.Kind, protocol.Frame, string) ([]byte, string) { return []byte("{"), "" }
	})
	r.Fail(r.ask("p"), "no", errNoDecision)
	assert.Equal(t, []string{"p no"}, r.answers())
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

// runs is a permission request for a command, under an id that is any JSON.
func runs(id, command string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%s,"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":%q}}}`, id, command)
}
