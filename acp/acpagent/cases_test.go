package acpagent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

// play is a configuration whose agent plays a script.
func play(t *testing.T, yaml string) acpagent.Config {
	t.Helper()
	script, err := scripted.Parse([]byte(yaml))
	require.NoError(t, err)
	return acpagent.Config{Options: sdk.Options{Backend: scripted.New(scripted.WithScript(script))}, CancelGrace: 5 * time.Second}
}

const bash = `
turns:
- steps:
  - tool_use: {id: t1, name: Bash, input: {command: make install, description: Install}, result: done, effect: effect.log, gate: ask}
  - text: It is done.
`

// withEffects counts the side effects of tools.
func withEffects(t *testing.T) (acpagent.Config, *atomic.Int32) {
	t.Helper()
	var n atomic.Int32
	c := play(t, bash)
	script, err := scripted.Parse([]byte(bash))
	require.NoError(t, err)
	c.Options.Backend = scripted.New(scripted.WithScript(script), scripted.WithEffect(func(string, string) error { n.Add(1); return nil }))
	return c, &n
}

// TestCases runs the 20 cases of testdata/cases.json; each has a function of its name.
func TestCases(t *testing.T) {
	t.Parallel()
	functions := map[string]func(*testing.T){
		"init-v1": initV1, "init-other-versions": initOtherVersions, "new-bad-cwd": newBadCwd, "text-turn": textTurn, "thinking-turn": thinkingTurn,
		"tool-allowed": toolAllowed, "tool-denied": toolDenied, "permission-cancelled-or-error": permissionCancelledOrError,
		"cancel-mid-stream": cancelMidStream, "cancel-while-permission-pending": cancelWhilePermissionPending, "cancel-idle-and-unknown": cancelIdleAndUnknown,
		"two-prompts-queued": twoPromptsQueued, "two-sessions": twoSessions, "mode-and-model": modeAndModel,
		"load-replays-then-answers": loadReplaysThenAnswers, "resume-list-close-delete": resumeListCloseDelete,
		"api-error-and-auth-error": apiErrorAndAuthError, "bad-lines": badLines, "eof-mid-turn": eofMidTurn, "agent-crash-mid-turn": agentCrashMidTurn,
	}
	withSubtests := map[string]bool{"init-v1": true, "permission-cancelled-or-error": true, "agent-crash-mid-turn": true}
	data, err := os.ReadFile("testdata/cases.json")
	require.NoError(t, err)
	var file struct{ Cases []struct{ ID string } }
	require.NoError(t, json.Unmarshal(data, &file))
	require.Len(t, file.Cases, len(functions))
	for _, c := range file.Cases {
		require.Contains(t, functions, c.ID)
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			if withSubtests[c.ID] {
				functions[c.ID](t)
				return
			}
			bubble(t, functions[c.ID])
		})
	}
}

func initV1(t *testing.T) {
	c := play(t, bash)
	for name, want := range map[string]struct {
		sessions func(string) *transcript.Sessions
		delete   bool
	}{
		"without sessions on disk": {nil, true},
		"with sessions on disk":    {func(string) *transcript.Sessions { return &transcript.Sessions{} }, false},
		"with deletion":            {func(string) *transcript.Sessions { return &transcript.Sessions{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.Sessions, c.AllowDelete = want.sessions, want.delete
			e := newEditor(t, c)
			var r acp.InitializeResponse
			require.NoError(t, json.Unmarshal(e.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{"terminal": true}}), &r))
			assert.EqualValues(t, 1, r.ProtocolVersion)
			can := r.AgentCapabilities
			assert.Equal(t, want.sessions != nil, can.LoadSession)
			assert.Equal(t, want.sessions != nil, can.SessionCapabilities.List != nil)
			assert.Equal(t, want.sessions != nil, can.SessionCapabilities.Resume != nil)
			assert.Equal(t, want.sessions != nil && want.delete, can.SessionCapabilities.Delete != nil)
			assert.NotNil(t, can.SessionCapabilities.Close)
			assert.True(t, can.PromptCapabilities.Image)
			assert.False(t, can.PromptCapabilities.Audio)
			assert.Len(t, e.got(), 1, "no other line")
		})
	}
}

func initOtherVersions(t *testing.T) {
	for _, v := range []int{0, 2, 99} {
		e := newEditor(t, play(t, bash))
		assert.Contains(t, string(e.call("initialize", object{"protocolVersion": v})), `"protocolVersion":1`)
	}
	e := newEditor(t, play(t, bash))
	e.fails("initialize", object{"protocolVersion": "1"}, acp.CodeInvalidParams)
	e.fails("initialize", object{}, acp.CodeInvalidParams)
}

func newBadCwd(t *testing.T) {
	e := newEditor(t, play(t, bash))
	for _, params := range []object{
		{"cwd": "relative", "mcpServers": []any{}}, {"cwd": "/does/not/exist", "mcpServers": []any{}}, {"mcpServers": []any{}},
		{"cwd": t.TempDir(), "mcpServers": []any{object{"name": "x", "command": "", "args": []any{}, "env": []any{}}}},
		{"cwd": t.TempDir(), "mcpServers": []any{}, "additionalDirectories": []string{"relative"}},
	} {
		e.fails("session/new", params, acp.CodeInvalidParams)
	}
	e.newSession(t.TempDir())
}

func textTurn(t *testing.T) {
	e := newEditor(t, play(t, `{turns: [{steps: [partial: {text: Hello world, chunk: 6}, result: {stop_reason: end_turn}]}]}`))
	s := e.open(nil)
	assert.Equal(t, "end_turn", e.ask(s, "x"))
	assert.Equal(t, []string{"agent_message_chunk Hello", "agent_message_chunk world", "end_turn"}, e.told())
	var ids []string
	for _, l := range e.got() {
		if strings.Contains(l.raw, "agent_message_chunk") {
			var u acp.SessionUpdate
			require.NoError(t, json.Unmarshal(l.Params.Update, &u))
			ids = append(ids, string(u.AgentMessageChunk.MessageID))
		}
	}
	assert.NotEmpty(t, ids[0])
	assert.Equal(t, ids[0], ids[1], "one message")
}

func thinkingTurn(t *testing.T) {
	e := newEditor(t, play(t, `{turns: [{steps: [thinking: Hmm., text: Hello.]}]}`))
	assert.Equal(t, "end_turn", e.ask(e.open(nil), "x"))
	assert.Equal(t, []string{"agent_thought_chunk Hmm.", "agent_message_chunk Hello.", "end_turn"}, e.told())
}

func toolAllowed(t *testing.T) {
	c, effects := withEffects(t)
	e := newEditor(t, c)
	e.setPermit(func(l line) string {
		assert.Zero(t, effects.Load(), "the tool runs after the answer")
		assert.Equal(t, "t1", l.Params.ToolCall.ToolCallID)
		assert.Contains(t, string(l.Params.ToolCall.RawInput), "make install")
		return "allow-once"
	})
	assert.Equal(t, "end_turn", e.ask(e.open(nil), "x"))
	story := e.told()
	assert.Equal(t, []string{
		"tool_call Bash execute pending", "tool_call_update make install", "permission? " + strings.TrimPrefix(story[2], "permission? "),
		"tool_call_update in_progress", "tool_call_update completed", "agent_message_chunk It is done.", "end_turn",
	}, story)
	assert.EqualValues(t, 1, effects.Load())
}

func toolDenied(t *testing.T) {
	c, effects := withEffects(t)
	e := newEditor(t, c)
	e.setPermit(func(line) string { return "reject" })
	assert.Equal(t, "end_turn", e.ask(e.open(nil), "x"))
	assert.Contains(t, e.told(), "tool_call_update failed")
	assert.Zero(t, effects.Load())
}

func permissionCancelledOrError(t *testing.T) {
	for name, answer := range map[string]string{"cancelled": "", "error": "error", "unknown option": "allow-everything", "a plan's option": "exit-plan-default", "never": "never"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				c, effects := withEffects(t)
				if answer == "never" {
					c.Options.PermissionTimeout = 50 * time.Millisecond
				}
				e := newEditor(t, c)
				e.setPermit(func(line) string { return answer })
				assert.Equal(t, "end_turn", e.ask(e.open(nil), "x"))
				assert.Contains(t, e.told(), "tool_call_update failed")
				assert.NotContains(t, e.told(), "tool_call_update in_progress")
				assert.Zero(t, effects.Load())
				if answer == "never" {
					e.await("$/cancel_request", func(l line) bool { return l.Method == acp.MethodCancelRequest })
				}
			})
		})
	}
}

const slow = `
turns:
- when: slow
  steps: [partial: {text: one two three four five six seven eight nine ten, chunk: 4, pause: 40ms}, delay: 30s, text: never]
default: [text: short]
`

func cancelMidStream(t *testing.T) {
	e := newEditor(t, play(t, slow))
	s := e.open(nil)
	id := e.request("session/prompt", prompt(s, "slow"))
	e.awaitChunks(3)
	e.notify("session/cancel", object{"sessionId": s})
	assert.Contains(t, e.answer(id).raw, `"stopReason":"cancelled"`)
	before := e.told()
	assert.Equal(t, "cancelled", before[len(before)-1], "no chunk follows the answer")
	assert.Equal(t, "end_turn", e.ask(s, "again"))
	assert.Equal(t, append(before, "agent_message_chunk short", "end_turn"), e.told())
}

// awaitChunks waits until there are n chunks of all prompts together.
func (e *editor) awaitChunks(n int) {
	e.t.Helper()
	e.await("chunks", func(line) bool { return e.chunks() >= n })
}

// chunks is how many there are; mu is held.
func (e *editor) chunks() (n int) {
	for _, l := range e.lines {
		if strings.Contains(l.raw, "agent_message_chunk") {
			n++
		}
	}
	return n
}

func cancelWhilePermissionPending(t *testing.T) {
	c, effects := withEffects(t)
	e := newEditor(t, c)
	e.setPermit(func(line) string { return "never" })
	s := e.open(nil)
	id := e.request("session/prompt", prompt(s, "x"))
	asked := e.await("permission request", func(l line) bool { return l.Method == acp.MethodSessionRequestPermission })
	e.notify("session/cancel", object{"sessionId": s})
	e.await("$/cancel_request", func(l line) bool {
		return l.Method == acp.MethodCancelRequest && string(l.Params.Request) == string(asked.ID)
	})
	assert.Contains(t, e.answer(id).raw, `"stopReason":"cancelled"`)
	assert.Contains(t, e.told(), "tool_call_update failed")
	before := e.told()
	e.answerPermission(asked.ID, "allow-once") // late
	assert.Equal(t, "end_turn", e.ask(s, "again"))
	assert.Equal(t, before, e.told()[:len(before)])
	assert.NotContains(t, strings.Join(e.told(), "\n"), "error")
	assert.Zero(t, effects.Load())
}

func cancelIdleAndUnknown(t *testing.T) {
	e := newEditor(t, play(t, slow))
	s := e.open(nil)
	e.notify("session/cancel", object{"sessionId": s})
	e.notify("session/cancel", object{"sessionId": "nobody"})
	assert.Equal(t, "end_turn", e.ask(s, "x"))
	assert.Equal(t, []string{"agent_message_chunk short", "end_turn"}, e.told())
}

func twoPromptsQueued(t *testing.T) {
	e := newEditor(t, play(t, `{turns: [{when: A, steps: [partial: {text: aaaa, chunk: 1, pause: 30ms}]}], default: [text: short]}`))
	s := e.open(nil)
	a := e.request("session/prompt", prompt(s, "A"))
	b := e.request("session/prompt", prompt(s, "B"))
	assert.Contains(t, e.answer(b).raw, "end_turn")
	assert.Contains(t, e.answer(a).raw, "end_turn")
	assert.Equal(t, []string{
		"agent_message_chunk a", "agent_message_chunk a", "agent_message_chunk a", "agent_message_chunk a", "end_turn", "agent_message_chunk short", "end_turn",
	}, e.told())

	e = newEditor(t, play(t, slow))
	s = e.open(nil)
	a = e.request("session/prompt", prompt(s, "slow"))
	b = e.request("session/prompt", prompt(s, "B"))
	e.awaitChunks(1)
	e.notify("session/cancel", object{"sessionId": s})
	assert.Contains(t, e.answer(a).raw, `"cancelled"`)
	assert.Contains(t, e.answer(b).raw, `"cancelled"`)
	assert.NotContains(t, e.told(), "agent_message_chunk short")
	assert.Equal(t, "end_turn", e.ask(s, "C"))

	// A $/cancel_request cancels its prompt alone.
	e.mu.Lock()
	before := e.chunks()
	e.mu.Unlock()
	a = e.request("session/prompt", prompt(s, "slow"))
	b = e.request("session/prompt", prompt(s, "B"))
	e.awaitChunks(before + 3)
	e.notify("$/cancel_request", object{"requestId": a})
	assert.Contains(t, e.answer(a).raw, `"cancelled"`)
	assert.Contains(t, e.answer(b).raw, "end_turn")
}

func twoSessions(t *testing.T) {
	e := newEditor(t, play(t, `{turns: [{steps: [partial: {text: "${prompt}${prompt}${prompt}", chunk: 1, pause: 30ms}]}]}`))
	one := e.open(nil)
	two := e.newSession(t.TempDir())
	a, b := e.request("session/prompt", prompt(one, "a")), e.request("session/prompt", prompt(two, "b"))
	e.answer(a)
	e.answer(b)
	order := ""
	for _, l := range e.got() {
		switch {
		case strings.Contains(l.raw, "agent_message_chunk") && l.Params.SessionID == one:
			assert.Contains(t, l.raw, `"text":"a"`)
			order += "a"
		case strings.Contains(l.raw, "agent_message_chunk"):
			assert.Contains(t, l.raw, `"text":"b"`)
			order += "b"
		}
	}
	assert.Len(t, order, 6)
	assert.NotContains(t, []string{"aaabbb", "bbbaaa"}, order, "the turns overlap")
	e.call("session/close", object{"sessionId": one})
	e.fails("session/prompt", prompt(one, "x"), acp.CodeResourceNotFound)
	e.fails("session/prompt", object{"sessionId": two, "prompt": []any{}}, acp.CodeInvalidParams)
}

func modeAndModel(t *testing.T) {
	c := play(t, `
initialize: {models: [{value: default, displayName: Default}, {value: small, displayName: Small}]}
default: [text: ok]`)
	e := newEditor(t, c)
	s := e.open(nil)
	assert.JSONEq(t, `{}`, string(e.call("session/set_mode", object{"sessionId": s, "modeId": "plan"})))
	e.await("mode", func(l line) bool { return strings.Contains(l.raw, `"current_mode_update","currentModeId":"plan"`) })
	e.await("options", func(l line) bool { return strings.Contains(l.raw, `config_option_update`) })
	e.fails("session/set_mode", object{"sessionId": s, "modeId": "bogus"}, acp.CodeInvalidParams)
	e.fails("session/set_mode", object{"sessionId": s, "modeId": "bypassPermissions"}, acp.CodeInvalidParams)
	e.fails("session/set_mode", object{"sessionId": "nobody", "modeId": "plan"}, acp.CodeResourceNotFound)
	var r acp.SetSessionConfigOptionResponse
	require.NoError(t, json.Unmarshal(e.call("session/set_config_option", object{"sessionId": s, "configId": "model", "value": "small"}), &r))
	require.Len(t, r.ConfigOptions, 2)
	assert.Equal(t, `"plan"`, string(r.ConfigOptions[0].CurrentValue))
	assert.Equal(t, `"small"`, string(r.ConfigOptions[1].CurrentValue))
	require.NoError(t, json.Unmarshal(e.call("session/set_config_option", object{"sessionId": s, "configId": "mode", "value": "default"}), &r))
	assert.Equal(t, `"default"`, string(r.ConfigOptions[0].CurrentValue))
	e.fails("session/set_config_option", object{"sessionId": s, "configId": "model", "value": "bogus"}, acp.CodeInvalidParams)
	e.fails("session/set_config_option", object{"sessionId": s, "configId": "model", "value": true, "type": "boolean"}, acp.CodeInvalidParams)
	e.fails("session/set_config_option", object{"sessionId": s, "configId": "nope", "value": "x"}, acp.CodeInvalidParams)
	e.fails("session/set_model", object{"sessionId": s, "modelId": "small"}, acp.CodeMethodNotFound)
}

// onDisk is an agent that keeps its sessions in a directory.
func onDisk(t *testing.T, yaml string) acpagent.Config {
	t.Helper()
	root := t.TempDir()
	c := play(t, "transcript: true\n"+yaml)
	c.Options.Env = map[string]string{"CLAUDE_CONFIG_DIR": root}
	c.Sessions = func(dir string) *transcript.Sessions {
		return &transcript.Sessions{Vendor: transcript.Claude, Root: root, Dir: dir}
	}
	c.AllowDelete = true
	return c
}

const kept = `
turns:
- when: first
  steps: [tool_use: {id: t1, name: Bash, input: {command: ls}, result: files}, text: One.]
default: [text: "${history}"]
`

func loadReplaysThenAnswers(t *testing.T) {
	c := onDisk(t, kept)
	cwd := t.TempDir()
	e := newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	s := e.newSession(cwd)
	e.ask(s, "first")
	e.ask(s, "second")
	e.end()

	e = newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	id := e.request("session/load", object{"sessionId": s, "cwd": cwd, "mcpServers": []any{}})
	require.Nil(t, e.answer(id).Error, e.answer(id).raw)
	var story []string
	for _, l := range e.got() {
		if string(l.ID) == "2" {
			break // the answer
		}
		if one := l.story(); one != "" {
			story = append(story, one)
		}
	}
	assert.Equal(t, []string{
		"user_message_chunk first", "tool_call ls execute pending", "tool_call_update completed", "agent_message_chunk One.",
		"user_message_chunk second", "agent_message_chunk first | second",
	}, story)
	assert.Equal(t, "end_turn", e.ask(s, "third"))
	assert.Contains(t, e.told(), "agent_message_chunk  third", "the history goes on")
	for _, unknown := range []string{"11111111-2222-4333-8444-555555555555", "no uuid"} {
		e.fails("session/load", object{"sessionId": unknown, "cwd": cwd, "mcpServers": []any{}}, acp.CodeResourceNotFound)
	}
}

// end ends the connection, and waits until all is read.
func (e *editor) end() {
	e.t.Helper()
	require.NoError(e.t, e.in.Close())
	err := <-e.served
	require.NoError(e.t, err)
	e.served <- err // for the cleanup
	<-e.read
}

func resumeListCloseDelete(t *testing.T) {
	c := onDisk(t, kept)
	cwd, other := t.TempDir(), t.TempDir()
	e := newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	s, elsewhere := e.newSession(cwd), e.newSession(other)
	e.ask(s, "one")
	e.ask(elsewhere, "two")
	e.end()

	e = newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	e.call("session/resume", object{"sessionId": s, "cwd": cwd, "mcpServers": []any{}})
	assert.Empty(t, e.told(), "no history")
	list := func(params object) (ids []string) {
		var r acp.ListSessionsResponse
		require.NoError(t, json.Unmarshal(e.call("session/list", params), &r))
		for _, one := range r.Sessions {
			ids = append(ids, string(one.SessionID))
			assert.NotEmpty(t, one.UpdatedAt)
			assert.True(t, filepath.IsAbs(one.Cwd))
		}
		return ids
	}
	assert.Equal(t, []string{s}, list(object{"cwd": cwd}))
	assert.ElementsMatch(t, []string{s, elsewhere}, list(object{}))
	e.fails("session/list", object{"cursor": "x"}, acp.CodeInvalidParams)
	for range 2 {
		assert.JSONEq(t, `{}`, string(e.call("session/close", object{"sessionId": s})))
	}
	e.fails("session/prompt", prompt(s, "x"), acp.CodeResourceNotFound)
	e.call("session/delete", object{"sessionId": s})
	assert.Empty(t, list(object{"cwd": cwd}))
	e.call("session/delete", object{"sessionId": s})

	c.AllowDelete = false
	e = newEditor(t, c)
	e.fails("session/delete", object{"sessionId": elsewhere}, acp.CodeMethodNotFound)
	assert.Len(t, list(object{}), 1)
}

// TestFork: the copy goes on from the history of the original, which stays as it is.
func TestFork(t *testing.T) {
	t.Parallel()
	c := onDisk(t, kept)
	cwd := t.TempDir()
	e := newEditor(t, c)
	var hello struct {
		AgentCapabilities struct{ SessionCapabilities struct{ Fork *struct{} } }
	}
	require.NoError(t, json.Unmarshal(e.call("initialize", object{"protocolVersion": 1}), &hello))
	assert.NotNil(t, hello.AgentCapabilities.SessionCapabilities.Fork)
	s := e.newSession(cwd)
	e.ask(s, "one")
	count := func() int {
		var r acp.ListSessionsResponse
		require.NoError(t, json.Unmarshal(e.call("session/list", object{"cwd": cwd}), &r))
		return len(r.Sessions)
	}
	e.fails("session/fork", object{"sessionId": s, "cwd": "relative"}, acp.CodeInvalidParams)
	e.fails("session/fork", object{"sessionId": "none", "cwd": cwd}, acp.CodeResourceNotFound)
	e.fails("session/fork", object{"sessionId": "0c7e5f1c-9a2b-4c3d-8e4f-5a6b7c8d9e0f", "cwd": cwd}, acp.CodeResourceNotFound)
	e.fails("session/fork", object{"sessionId": s, "cwd": cwd, "mcpServers": []any{object{"name": "x"}}}, acp.CodeInvalidParams)
	require.Equal(t, 1, count(), "a request that fails leaves no copy")

	before := len(e.told())
	var forked acp.NewSessionResponse
	require.NoError(t, json.Unmarshal(e.call("session/fork", object{"sessionId": s, "cwd": cwd}), &forked))
	assert.NotEqual(t, s, string(forked.SessionID))
	assert.NotContains(t, strings.Join(e.told()[before:], "\n"), "chunk", "no history")
	assert.Equal(t, 2, count())
	assert.Equal(t, "end_turn", e.ask(string(forked.SessionID), "two"))
	assert.Equal(t, "end_turn", e.ask(s, "three"))
	texts := func(id string) string {
		e.call("session/close", object{"sessionId": id})
		before := len(e.told())
		e.call("session/load", object{"sessionId": id, "cwd": cwd, "mcpServers": []any{}})
		return strings.Join(e.told()[before:], "\n")
	}
	copied, original := texts(string(forked.SessionID)), texts(s)
	for text, want := range map[string][2]bool{"one": {true, true}, "two": {true, false}, "three": {false, true}} {
		got := [2]bool{strings.Contains(copied, text), strings.Contains(original, text)}
		assert.Equal(t, want, got, text)
	}

	e = newEditor(t, play(t, "default: [text: x]"))
	e.call("initialize", object{"protocolVersion": 1})
	e.fails("session/fork", object{"sessionId": s, "cwd": cwd}, acp.CodeMethodNotFound)
}

func apiErrorAndAuthError(t *testing.T) {
	e := newEditor(t, play(t, `
turns:
- when: bad
  steps: [result: {is_error: true, text: "API Error: 400", api_error_status: 400}]
- when: login
  steps: [result: {is_error: true, text: "Invalid API key", api_error_status: 401}]
- when: logged out
  steps: [result: {is_error: true, text: "Please log in", terminal_reason: auth_required}]
- when: turns
  steps: [result: {subtype: error_max_turns, is_error: true}]
- when: budget
  steps: [result: {subtype: error_max_budget_usd, is_error: true}]
- when: refuse
  steps: [text: no, result: {stop_reason: refusal}]
- when: long
  steps: [text: cut, result: {stop_reason: max_tokens}]
- when: retry
  steps: [api_retry: {attempt: 1}, api_retry: {attempt: 2}, text: at last]
`))
	s := e.open(nil)
	bad := e.fails("session/prompt", prompt(s, "bad"), acp.CodeInternalError)
	assert.Contains(t, bad.Message, "API Error: 400")
	assert.Contains(t, string(bad.Data), `"apiErrorStatus":400`)
	e.fails("session/prompt", prompt(s, "login"), acp.CodeAuthenticationRequired)
	e.fails("session/prompt", prompt(s, "logged out"), acp.CodeAuthenticationRequired)
	assert.Contains(t, string(e.fails("session/prompt", prompt(s, "budget"), acp.CodeInternalError).Data), "error_max_budget_usd")
	for text, want := range map[string]string{"turns": "max_turn_requests", "refuse": "refusal", "long": "max_tokens", "retry": "end_turn"} {
		assert.Equal(t, want, e.ask(s, text))
	}
}

func badLines(t *testing.T) {
	c := play(t, slow)
	c.MaxLine = 10 << 20
	e := newEditor(t, c)
	s := e.open(nil)
	send := func(text string) { _, _ = e.in.Write([]byte(text + "\n")) }
	null := func(code string) func(line) bool {
		return func(l line) bool { return strings.Contains(l.raw, `"id":null,"error":{"code":`+code) }
	}
	send(`{"jsonrpc":"2.0","id":5,"method":`)
	e.await("-32700", null("-32700"))
	send(`[{"jsonrpc":"2.0","id":6,"method":"initialize"}]`)
	e.await("-32600", null("-32600"))
	e.fails("no/such/method", object{}, acp.CodeMethodNotFound)
	e.notify("no/such/notification", object{})
	e.fails("session/prompt", object{"sessionId": s, "prompt": []any{object{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}}}, acp.CodeInvalidParams)
	send(`{"jsonrpc":"2.0","id":"long","method":"session/prompt","params":{"x":"` + strings.Repeat("x", 40<<20) + `"}}`)
	e.await("an answer to the long line", func(l line) bool { return strings.Contains(l.raw, `"id":"long","error":{"code":-32600`) })
	assert.Equal(t, "end_turn", e.ask(s, "x"))
}

func eofMidTurn(t *testing.T) {
	e := newEditor(t, play(t, slow))
	s := e.open(nil)
	e.request("session/prompt", prompt(s, "slow"))
	e.awaitChunks(1)
	began := time.Now()
	e.end()
	assert.Less(t, time.Since(began), 10*time.Second)
}

// An editor that neither reads nor writes any more ends, too.
func TestEOFWhileNobodyReads(t *testing.T) {
	t.Parallel()
	c := play(t, `{default: [partial: {text: many words, chunk: 1}, delay: 30s]}`)
	r, in := io.Pipe()
	_, w := io.Pipe() // nobody reads
	served := make(chan error, 1)
	go func() { served <- acpagent.Serve(t.Context(), r, w, c) }()
	_, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`+"\n", t.TempDir())
	require.NoError(t, err)
	require.NoError(t, in.Close())
	select {
	case err := <-served:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("Serve does not end")
	}
	_ = w.Close()
}

func agentCrashMidTurn(t *testing.T) {
	const crash = `
turns:
- when: x
  steps:
  - message: {fields: {type: assistant, message: {id: m1, role: assistant, content: [{type: tool_use, id: t1, name: Bash, input: {command: make install}}]}}}
  - exit: {signal: KILL}
resumed:
- steps: [text: Goes on.]
default: [text: "fresh ${prompt}"]
`
	t.Run("continue", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T) {
			c := onDisk(t, crash)
			e := newEditor(t, c)
			s := e.open(object{"session": object{"notices": object{}}})
			assert.Equal(t, "end_turn", e.ask(s, "x"))
			story := e.told()
			assert.Contains(t, story, "tool_call_update failed")
			assert.Contains(t, story, "notice")
			assert.Equal(t, "end_turn", story[len(story)-1])
			assert.NotContains(t, strings.Join(story, "\n"), "error")
		})
	})
	t.Run("fail", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T) {
			c := onDisk(t, crash)
			c.NoRecovery = true
			e := newEditor(t, c)
			s := e.open(nil)
			problem := e.fails("session/prompt", prompt(s, "x"), acp.CodeInternalError)
			assert.Contains(t, string(problem.Data), "agent_exited")
			story := e.told()
			assert.Equal(t, []string{"tool_call_update failed", "error -32603"}, story[len(story)-2:], "the call is closed before the answer")
			assert.Equal(t, "end_turn", e.ask(s, "next"), "a fresh agent resumes the conversation")
		})
	})
}
