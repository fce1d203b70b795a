package user_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The orders of messages are those of Claude Code 2.1.329 and, where no init
// names its messages, 2.1.197 (observed). The uuid a is that of a prompt, c that
// of a command.
func TestGateProof(t *testing.T) {
	t.Parallel()
	const (
		hook     = `{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":"hook_0"}}`
		ask      = `{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"Bash"}}`
		startedA = `{"type":"command_lifecycle","command_uuid":"a","state":"started"}`
		startedC = `{"type":"command_lifecycle","command_uuid":"c","state":"started"}`
		initA    = `{"type":"system","subtype":"init","session_id":"s","user_message_uuids":["a"]}`
		initAB   = `{"type":"system","subtype":"init","session_id":"s","user_message_uuids":["a","b"]}`
		initC    = `{"type":"system","subtype":"init","session_id":"s","user_message_uuids":["c"]}`
		initX    = `{"type":"system","subtype":"init","session_id":"s","user_message_uuids":["x"]}`
		init     = `{"type":"system","subtype":"init","session_id":"s"}`
		says     = `{"type":"assistant","parent_tool_use_id":null,"message":{"role":"assistant","model":"claude-x","content":[]}}`
		subSays  = `{"type":"assistant","parent_tool_use_id":"toolu_1","message":{"role":"assistant","model":"claude-x","content":[]}}`
		writes   = `{"type":"assistant","parent_tool_use_id":null,"message":{"role":"assistant","model":"<synthetic>","content":[]}}`
		compact  = `{"type":"system","subtype":"compact_boundary"}`
		resultA  = `{"type":"result","subtype":"success","user_message_uuids":["a"]}`
		resultC  = `{"type":"result","subtype":"success","user_message_uuids":["c"]}`
		result   = `{"type":"result","subtype":"success","origin":{"kind":"task-notification"}}`
		initB    = `{"type":"system","subtype":"init","session_id":"s","user_message_uuids":["b"]}`

		// These are of the host: it sends an interrupt, and gets the answer.
		interrupt, answered = "interrupt", "answered"
	)
	no := false
	prompts := func(uuids ...string) []*protocol.UserMessage {
		var all []*protocol.UserMessage
		for _, id := range uuids {
			m := &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("hi " + id)}}
			if id == "c" {
				m.Message.Content = protocol.TextContent(" /context")
			}
			if id == "q" {
				m.ShouldQuery = &no
			}
			m.UUID = id
			all = append(all, m)
		}
		return all
	}
	for name, tc := range map[string]struct {
		sent  []*protocol.UserMessage
		lines []string
		seen  string // "": the gates are on
	}{
		"a prompt":                              {prompts("a"), []string{startedA, hook, initA, says, resultA}, ""},
		"a prompt of the older release":         {prompts("a"), []string{hook, init, says, resultA}, ""},
		"two prompts joined":                    {prompts("a", "b"), []string{startedA, hook, hook, initAB, says, resultA}, ""},
		"a command":                             {prompts("c"), []string{startedC, initC, writes, resultC}, ""},
		"a command of the older release":        {prompts("c"), []string{init, writes, resultC}, ""},
		"a compaction repeats messages":         {prompts("c"), []string{startedC, initC, compact, says, resultC}, ""},
		"a line for the history":                {prompts("q"), []string{init, resultA}, ""},
		"a command before a prompt":             {prompts("c", "a"), []string{init, writes, resultC, hook, init, says}, ""},
		"a prompt that was joined, a command":   {prompts("a", "c"), []string{init, writes}, ""},
		"a turn of a task":                      {nil, []string{hook, init, says, result}, ""},
		"a subagent of a command":               {prompts("c"), []string{startedC, initC, subSays}, ""},
		"a hook of any event":                   {prompts("a"), []string{ask, hook, initA, says}, ""},
		"a message that is not known":           {prompts("a"), []string{initX}, ""},
		"nothing was sent":                      {nil, []string{init}, ""},
		"a prompt without a hook":               {prompts("a"), []string{startedA, initA, says, resultA}, "system/init"},
		"a prompt without a hook, older":        {prompts("a"), []string{init, says, resultA}, "system/init"},
		"keys in another case":                  {prompts("a"), []string{`{"type":"assistant","message":{"model":"claude-x"},"Message":{"model":"<synthetic>"}}`}, "assistant"},
		"no init":                               {prompts("a"), []string{says}, "assistant"},
		"a question is no hook":                 {prompts("a"), []string{ask, initA}, "system/init"},
		"one of two is a prompt, the other too": {prompts("a", "b"), []string{initAB}, "system/init"},
		"a command that asks a model":           {prompts("c"), []string{startedC, initC, says}, "assistant"},
		"a turn of a task without a hook":       {nil, []string{init, says}, "assistant"},
		"interrupted before its hook":           {prompts("a"), []string{interrupt, startedA, initA, resultA}, ""},
		"interrupted, and a model speaks":       {prompts("a"), []string{interrupt, initA, says}, "assistant"},
		"an interrupt that hits the next turn":  {prompts("a", "b"), []string{hook, initA, interrupt, says, resultA, initB}, ""},
		"an interrupt of the turn before":       {prompts("a", "b"), []string{hook, initA, interrupt, answered, resultA, initB}, "system/init"},
		"the second turn":                       {prompts("a"), []string{hook, initA, says, resultA, init, says}, "assistant"},
		"a repetition ends with its turn":       {prompts("c"), []string{initC, compact, says, resultC, init, says}, "assistant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, wanted := range []bool{true, false} {
				r := newRig(t, func(c *sideConfig) { c.ProveGates, c.Discard = wanted, true })
				for _, m := range tc.sent {
					_, err := r.Send(context.Background(), m)
					require.NoError(t, err)
				}
				r.TakeDue()
				var call *user.Call
				for _, line := range tc.lines {
					switch line {
					case interrupt:
						call = r.call("interrupt")
						continue
					case answered:
						line = success(call.ID, `{}`)
					}
					r.read(line)
					if r.GatesOff() != nil {
						assert.True(t, r.TakeDue().Changed, "the session hears of it")
						break
					}
				}
				if tc.seen == "" || !wanted {
					require.NoError(t, r.GatesOff())
					continue
				}
				var off *session.GatesOffError
				require.ErrorAs(t, r.GatesOff(), &off)
				assert.Equal(t, tc.seen, off.Seen)
				assert.Contains(t, off.Error(), "CLAUDE_CODE_SIMPLE")
				r.Take(session.KindPermission)
				r.wrote()
				r.read(permission("late"))
				assert.Empty(t, r.Take(session.KindPermission), "no gate is asked any more")
				assert.Equal(t, []string{"late " + deny("the agent calls no hooks")}, r.answers())
			}
		})
	}
}

// TestAPromptThatTheCloseBlocks is a prompt whose hook is denied because the
// session closes. The agent then reports a success with the reason as its text.
func TestAPromptThatTheCloseBlocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event   string
		blocked bool
	}{
		"a hook of the prompt":                {"UserPromptSubmit", true},
		"a hook of a tool call":               {"PreToolUse", false},
		"a tool call that names the prompt's": {`PreToolUse","tool_input":{"text":"UserPromptSubmit"},"x":"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			turn := r.turn("a")
			r.read(`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"` + c.event + `"}}}`)
			r.BeginClosing(true)
			r.read(`{"type":"result","subtype":"success","result":"blocked by hook: the session is closing","user_message_uuids":["a"]}`)
			result, err := turn.Result()
			if c.blocked {
				require.ErrorIs(t, err, session.ErrClosed)
				return
			}
			require.NoError(t, err)
			assert.NotNil(t, result)
		})
	}
}
