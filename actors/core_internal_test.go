package actors

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func newCore(t *testing.T, d dialect.Dialect) *Core {
	t.Helper()
	s := sim.New(1)
	t.Cleanup(s.Close)
	return NewCore(Config{Host: &Host{System: kernel.NewSystem(s.Config())}, ID: "s", Dialect: d})
}

// rulesOf are what a session of that dialect says to its routing.
func rulesOf(d dialect.Dialect, all ...session.Hook) *rules {
	return (*rules)(&Core{
		cfg: Config{Host: &Host{}, Dialect: d, Input: &dialect.Input{Options: session.Options{Hooks: all}}},
	})
}

// asked is a request of the agent, by its inner object.
func asked(t *testing.T, inner string) protocol.Frame {
	t.Helper()
	f, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":` + inner + `}`))
	require.NoError(t, err)
	return f
}

// denied is the answer of a request that no callback answers.
func denied(r *rules, f protocol.Frame, reason string) (response []byte, errText string) {
	kind, _ := r.KindOf(f.Subtype)
	return r.Denial(kind, f, reason)
}

// TestWhatIsAnsweredForACallback is fail-closed: what a gate gets when its
// callback cannot answer denies, and is never an error.
func TestWhatIsAnsweredForACallback(t *testing.T) {
	t.Parallel()
	registered := []session.Hook{{Event: protocol.HookPreToolUse}, {Event: protocol.HookPostToolUse}}
	for name, c := range map[string]struct {
		inner    string
		response string // part of it; "" when the answer is an error
	}{
		"permission":            {`{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"toolu_1"}`, `"toolUseID":"toolu_1"`},
		"unreadable permission": {`{"subtype":"can_use_tool","tool_name":7}`, `"behavior":"deny"`},
		"a hook that is a gate": {`{"subtype":"hook_callback","callback_id":"hook_0","input":{}}`, `"permissionDecision":"deny"`},
		"another hook":          {`{"subtype":"hook_callback","callback_id":"hook_1","input":{}}`, ""},
		"an unreadable hook":    {`{"subtype":"hook_callback","callback_id":[]}`, `"permissionDecision":"deny"`},
		"a tool":                {`{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}}}`, `"isError":true`},
		"an MCP handshake":      {`{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":3,"method":"initialize"}}`, ""},
		"a model policy":        {`{"subtype":"get_model_policy","purpose":"main"}`, ""},
		"anything else":         {`{"subtype":"of_next_week"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
				f := asked(t, c.inner)
				response, errText := denied(rulesOf(d, registered...), f, "the reason")
				if c.response == "" {
					assert.Empty(t, response, d.Name())
					assert.Equal(t, "the reason", errText, d.Name())
					continue
				}
				assert.Empty(t, errText, d.Name())
				assert.Contains(t, string(response), c.response, d.Name())
				assert.Contains(t, string(response), "the reason", d.Name())
			}
		})
	}
}

func TestWhoeverCouldNotBeAskedHasNotAgreed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect         dialect.Dialect
		inner, response string
		errText         string
	}{
		{claude.New(), `{"subtype":"elicitation","mcp_server_name":"s"}`, `{"action":"decline"}`, ""},
		{qoder.New(), `{"subtype":"elicitation","mcp_server_name":"s"}`, `{"action":"cancel"}`, ""},
		{qoder.New(), `{"type":"elicitation_response","prompt":"s"}`, `{"action":"cancel"}`, ""},
		{claude.New(), `{"subtype":"request_user_dialog","dialog_kind":"x"}`, `{"behavior":"cancelled"}`, ""},
		{qoder.New(), `{"type":"memory_should_generate"}`, `{"run":false,"reason":"why"}`, ""},
		{qoder.New(), `{"type":"skill_evolution_should_review"}`, `{"run":false,"reason":"why"}`, ""},
		{qoder.New(), `{"type":"fetch_job_token"}`, "", "why"},
		{qoder.New(), `{"type":"resolve_session_artifacts"}`, "", "why"},
	} {
		f := asked(t, c.inner)
		response, errText := denied(rulesOf(c.dialect), f, "why")
		assert.Equal(t, c.errText, errText, c.inner)
		if c.response == "" {
			assert.Empty(t, response)
		} else {
			assert.JSONEq(t, c.response, string(response), "%s %s", c.dialect.Name(), c.inner)
		}
	}
}

func TestProtocolVersions(t *testing.T) {
	t.Parallel()
	r := rulesOf(qoder.New())
	major := r.cfg.Dialect.Traits().ProtocolMajor
	require.NotEmpty(t, major)
	for version, fits := range map[string]bool{
		major + ".0.0": true, major + ".99": true, "": true, "nonsense": true, "x.1": true, major: true,
		"99.0.0": false, "0.1": false,
	} {
		err := r.CheckVersion(version)
		if fits {
			require.NoError(t, err, version)
			continue
		}
		var wrong *session.ProtocolVersionError
		require.ErrorAs(t, err, &wrong, version)
		require.ErrorContains(t, err, version)
		require.ErrorContains(t, err, major+".x")
	}
	require.NoError(t, rulesOf(claude.New()).CheckVersion("99.0"), "this agent has none")
}

// An agent that does not answer does not make the notifications of a tool pile up.
func TestNotificationsHaveABound(t *testing.T) {
	t.Parallel()
	k := newCore(t, claude.New())
	for range maxNotices {
		require.NoError(t, k.mcpNotify("s", "notifications/progress", nil))
	}
	require.ErrorIs(t, k.mcpNotify("s", "notifications/progress", nil), session.ErrNoRoom)
	assert.Equal(t, maxNotices, k.User.Calls())
}

// TestWhichSessionTheAgentIsIn: what is said of an agent that is in another session
// than the options asked for.
func TestWhichSessionTheAgentIsIn(t *testing.T) {
	t.Parallel()
	const one, other = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
	for name, c := range map[string]struct {
		options session.Options
		is      string
		want    string // part of the warning; "": none
	}{
		"any":                   {session.Options{}, one, ""},
		"the one that was made": {session.Options{SessionID: one}, one, ""},
		"another than was made": {session.Options{SessionID: one}, other, "option SessionID"},
		"continued":             {session.Options{SessionID: one, Continue: true}, other, ""},
		"resumed":               {session.Options{Resume: one}, strings.ToUpper(one), ""},
		"resumed by its title":  {session.Options{Resume: "my title"}, other, ""},
		"another than resumed":  {session.Options{Resume: one}, other, "option Resume"},
		"a copy":                {session.Options{Resume: one, ForkSession: true}, other, ""},
		"no copy":               {session.Options{Resume: one, ForkSession: true}, one, "option ForkSession"},
	} {
		in := &dialect.Input{Options: c.options}
		r := (*rules)(&Core{cfg: Config{Host: &Host{}, Dialect: claude.New(), Input: in}})
		got := r.CheckSession(c.is)
		assert.Equal(t, c.want == "", got == "", name)
		assert.Contains(t, got, c.want, name)
	}
}

// TestAnswersThatAreAlikeAreKeptOnce: sessions whose agents answer initialize alike
// share the answer, and no buffer that the agent's output was read into.
func TestAnswersThatAreAlikeAreKeptOnce(t *testing.T) {
	t.Parallel()
	h := &Host{}
	one := `{"capabilities":["a","b"]}`
	buffer := []byte(one)
	first, can := h.keep(buffer)
	copy(buffer, "xyz")
	assert.Equal(t, one, string(first))
	assert.Equal(t, []string{"a", "b"}, can)
	second, still := h.keep([]byte(one))
	assert.Same(t, &first[0], &second[0])
	assert.Same(t, &can[0], &still[0])
	for _, other := range []string{"two", one} {
		again, _ := h.keep([]byte(other))
		assert.Equal(t, other, string(again))
	}
}

// TestSessionsShareWhatIsEqual: lists, and the calls that interrupt, are there once while sessions
// have equal ones.
func TestSessionsShareWhatIsEqual(t *testing.T) {
	t.Parallel()
	h := &Host{}
	one := h.shared([]string{"a", "b"})
	assert.Same(t, &one[0], &h.shared([]string{"a", "b"})[0])
	assert.Equal(t, []string{"a"}, h.shared([]string{"a"}))
	assert.Empty(t, h.shared(nil))
	stops := func(d dialect.Dialect, limit time.Duration, queued bool) *machine.Called {
		return h.interrupt(d, limit, queued)
	}
	first, queued := stops(claude.New(), time.Second, false), stops(claude.New(), time.Second, true)
	assert.Same(t, first, stops(claude.New(), time.Second, false))
	assert.Same(t, queued, stops(claude.New(), time.Second, true))
	assert.NotEqual(t, first.Body, queued.Body)
	other := stops(claude.New(), time.Minute, false)
	assert.Equal(t, time.Minute, other.Limit)
	assert.Equal(t, time.Second, first.Limit)
}

// TestCallbacksOnDemand: a session has no room for callbacks before the first one.
func TestCallbacksOnDemand(t *testing.T) {
	t.Parallel()
	assert.Nil(t, newCore(t, claude.New()).callbacks.Made())
}
