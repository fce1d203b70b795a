package user_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// runs is a permission request for a command, under an id that is any JSON.
func runs(id, command string) string {
	if id != "" {
		id = `"request_id":` + id + `,`
	}
	return fmt.Sprintf(`{"type":"control_request",%s"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":%q}}}`, id, command)
}

func toolsCall(id, amount string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":"mcp_message","server_name":"s",`+
		`"message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"amount":%s}}}}}`, id, amount)
}

// universal is a denial that tells kinds apart.
func universal(c *sideConfig) {
	c.Rules.(*stubRules).deny = func(k session.Kind, _ protocol.Frame, reason string) ([]byte, string) {
		return []byte(fmt.Sprintf(`{"denied as":%q,"why":%q}`, k, reason)), ""
	}
}

func TestAnIDThatIsUsedAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name       string
		kind       session.Kind
		safe, evil string
	}{
		{"permission", session.KindPermission, runs(`"x"`, "ls"), runs(`"x"`, "rm -rf /")},
		{"hook", session.KindHook,
			`{"type":"control_request","request_id":"x","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"tool_input":{"command":"ls"}}}}`,
			`{"type":"control_request","request_id":"x","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"tool_input":{"command":"rm"}}}}`},
		{"mcp", session.KindMCP, toolsCall("x", "1"), toolsCall("x", "1000000")},
		{"elicitation", session.KindInquiry,
			`{"type":"control_request","request_id":"x","request":{"subtype":"elicitation","message":"a"}}`,
			`{"type":"control_request","request_id":"x","request":{"subtype":"elicitation","message":"b"}}`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.read(kind.safe)
			first := r.Take(kind.kind)
			require.Len(t, first, 1)
			require.True(t, r.Answer(first[0], json.RawMessage(allow), ""))
			r.wrote()

			r.read(kind.evil)
			assert.Empty(t, r.wrote(), "the answer of another request is not its own")
			second := r.Take(kind.kind)
			require.Len(t, second, 1)
			require.True(t, r.Answer(second[0], json.RawMessage(`{"behavior":"deny"}`), ""))
			evil := r.wrote()
			require.Len(t, evil, 1)

			r.read(kind.safe, kind.evil)
			again := r.wrote()
			require.Len(t, again, 2, "each has its own answer")
			assert.Contains(t, again[0], "allow")
			assert.Equal(t, evil[0], again[1])
			assert.Empty(t, r.Take(kind.kind))
		})
	}
}

// Both are open, so the agent may take the answer of one for that of the other.
func TestTwoOpenRequestsOfOneID(t *testing.T) {
	t.Parallel()
	hook := `{"type":"control_request","request_id":"x","request":{"subtype":"hook_callback","callback_id":"hook_0"}}`
	for _, second := range []string{runs(`"x"`, "rm"), runs(`"\u0078"`, "rm"), hook, toolsCall("x", "1")} {
		r := newRig(t, universal)
		r.read(runs(`"x"`, "ls"))
		q := r.Take(session.KindPermission)[0]
		ctx, cancel := context.WithCancelCause(t.Context())
		require.True(t, r.Scope(q, cancel))

		r.read(second)
		require.ErrorContains(t, context.Cause(ctx), "same id")
		lines := r.wrote()
		require.Len(t, lines, 2, "one denial for each: no allow may follow")
		for _, line := range lines {
			assert.Contains(t, line, `"denied as":"hook"`, "what denies a hook denies everything")
		}
		assert.False(t, r.Answer(q, json.RawMessage(allow), ""), "the callback's allow comes too late")
		for kind := session.KindPermission; kind < session.KindOther; kind++ {
			assert.Empty(t, r.Take(kind))
		}
		assert.Empty(t, r.wrote())
		assert.Zero(t, r.Unanswered())
		assert.Zero(t, r.Gates())
		assert.Len(t, eventsOf[*session.RepeatedRequest](r), 1)

		r.read(runs(`"x"`, "third"))
		assert.Len(t, r.Take(session.KindPermission), 1, "the id can be used again")
	}
}

func TestARequestWithoutAnID(t *testing.T) {
	t.Parallel()
	r := newRig(t, universal)
	r.read(runs("", "ls"))
	r.read(runs("", "rm"), `{"type":"control_request","request":{"subtype":"mcp_message"}}`, runs(`"\q"`, "ls"))
	assert.Empty(t, r.Take(session.KindPermission), "nobody is asked")
	lines := r.wrote()
	require.Len(t, lines, 4)
	for _, line := range lines {
		assert.JSONEq(t, `{"type":"control_response","response":{"subtype":"success","response":{"denied as":"hook","why":"the request has no id"}}}`, line)
	}
	assert.Len(t, eventsOf[*session.RepeatedRequest](r), 4)
	assert.Zero(t, r.Unanswered())
}

func TestAnIDIsSentBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		`"a"`, `""`, `5`, `1e0`, `-0`, `1.50`, `12345678901234567890123`, `1e400`, `null`, `true`, `{"a" : [1, "\u0061"]}`, `[]`,
		`"\ud800"`, `"\uD800\udc00"`, `"\u0061\/\""`, `"<&> "`, "\"a\xffb\"",
	} {
		r := newRig(t)
		r.read(runs(id, "ls"), runs(id, "ls"))
		taken := r.Take(session.KindPermission)
		require.Len(t, taken, 1, id)
		require.True(t, r.Answer(taken[0], json.RawMessage(allow), ""))
		r.read(runs(id, "ls"))
		lines := r.wrote()
		require.Len(t, lines, 2, id)
		assert.Equal(t, lines[0], lines[1])
		assert.Contains(t, lines[0], `"request_id":`+id+`,`)
		require.True(t, json.Valid([]byte(lines[0])))

		r.read(runs(id, "rm"))
		taken = r.Take(session.KindPermission)
		require.Len(t, taken, 1, "%s: another body", id)
		r.Fail(taken[0], "no", errNoDecision)
		r.Refuse(taken[0], "no", "code")
		assert.Contains(t, r.wrote()[0], `"request_id":`+id+`,`)
	}
}

// IDs that differ are different requests, however alike they are.
func TestIDsAreComparedExactly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := []string{`"a"`, `"A"`, `"\ud800"`, `"\ud801"`, `"\ufffd"`, `"a\u0000"`, `" a"`, `"\u212a"`, `"k"`, `5`, `50`, `null`, `{}`}
	for _, id := range ids {
		r.read(runs(id, "ls"))
	}
	taken := r.Take(session.KindPermission)
	require.Len(t, taken, len(ids))
	r.read(`{"type":"control_cancel_request","request_id":"5"}`, `{"type":"control_cancel_request","request_id":"null"}`,
		`{"type":"control_cancel_request","request_id":"\ud802"}`, `{"type":"control_cancel_request"}`)
	assert.Equal(t, len(ids), r.Unanswered(), "none was cancelled")
	r.read(`{"type":"control_cancel_request","request_id":5.0}`, `{"type":"control_cancel_request","request_id":"\u0061"}`)
	assert.Equal(t, len(ids)-2, r.Unanswered(), "the same number, the same text")
}

func TestAnswersToCallsAreComparedExactly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.call("set_model")
	for _, id := range []string{strings.ToUpper(`"` + c.ID + `x"`), `null`, `5`, `[` + `"` + c.ID + `"]`, `{}`, `" ` + c.ID + `"`} {
		assert.Empty(t, r.read(`{"type":"control_response","response":{"subtype":"success","request_id":`+id+`}}`))
	}
	assert.False(t, isClosed(c.Done()))
	assert.Len(t, r.read(`{"type":"control_response","response":{"subtype":"success","request_id":"`+c.ID+`"}}`), 1)
}

func TestAnswersAreForgottenWithTheTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("u")
	q := r.ask("p")
	big := json.RawMessage(`"` + strings.Repeat("x", 40<<10) + `"`)
	r.Answer(q, big, "")
	r.read(toolsCall("m", "1"))
	r.Answer(r.Take(session.KindMCP)[0], json.RawMessage(`"paid"`), "")
	r.wrote()
	r.read(permission("p"), toolsCall("m", "1"))
	assert.Len(t, r.wrote(), 2, "the same answers while the turn goes on")
	assert.Empty(t, r.Take(session.KindPermission))

	r.read(resultOf("u"))
	r.read(permission("p"))
	assert.Len(t, r.Take(session.KindPermission), 1, "a gate is asked again")
	r.read(toolsCall("m", "1"))
	assert.Empty(t, r.Take(session.KindMCP), "a tool does not run twice")
	lines := r.wrote()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "it is not run again")
	r.read(toolsCall("m", "2"))
	assert.Len(t, r.Take(session.KindMCP), 1, "another call under the id is a new one")
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Answers: 3}))
	for i := range 5 {
		r.read(toolsCall(fmt.Sprint(i), "1"))
		r.Answer(r.Take(session.KindMCP)[0], json.RawMessage(`"`+strings.Repeat("x", 5<<10)+`"`), "")
	}
	r.wrote()
	for i := range 5 {
		r.read(toolsCall(fmt.Sprint(i), "1"))
		assert.Len(t, r.Take(session.KindMCP), map[bool]int{true: 1}[i < 2], "%d: the last three", i)
	}
}
