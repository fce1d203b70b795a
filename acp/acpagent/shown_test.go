package acpagent_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/sdk"
)

// TestShown: what the agent does, and what the editor is told.
func TestShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"a plan of todos": {
			`{turns: [{steps: [tool_use: {name: TodoWrite, gate: allow, input: {todos: [{content: Look, status: completed, activeForm: Looking}, {content: Fix, status: in_progress, activeForm: Fixing}]}}, text: ok]}]}`,
			[]string{"plan [completed: Look] [in_progress: Fix]", "agent_message_chunk ok", "end_turn"},
		},
		"text and thinking without a stream of events": {
			`{partials: false, turns: [{steps: [thinking: Hmm., text: a, text: b]}]}`,
			[]string{"agent_thought_chunk Hmm.", "agent_message_chunk a", "agent_message_chunk b", "end_turn"},
		},
		"a tool that needs no permission": {
			`{turns: [{steps: [tool_use: {name: Read, gate: allow, input: {file_path: /etc/hosts}, result: localhost}, text: ok]}]}`,
			[]string{"tool_call Read read pending", "tool_call_update Read /etc/hosts", "tool_call_update completed", "agent_message_chunk ok", "end_turn"},
		},
		"a tool that fails": {
			`{turns: [{steps: [tool_use: {name: Bash, gate: allow, input: {command: "false\nfalse"}, error: Exit code 1}, text: ok]}]}`,
			[]string{"tool_call Bash execute pending", "tool_call_update false …", "tool_call_update failed", "agent_message_chunk ok", "end_turn"},
		},
		"a call without a result": {
			`{turns: [{steps: [message: {fields: {type: assistant, message: {id: m1, role: assistant, content: [{type: tool_use, id: t1, name: Glob, input: {pattern: "*"}}]}}}, text: ok]}]}`,
			[]string{"tool_call Find `*` search pending", "agent_message_chunk ok", "tool_call_update failed", "end_turn"},
		},
		"a subagent": {
			`{turns: [{steps: [agent: {description: Look around, prompt: List the files, steps: [text: not shown, tool_use: {name: Read, gate: allow, input: {file_path: /a}}], report: two}, text: ok]}]}`,
			[]string{"tool_call Agent think pending", "tool_call_update Look around", "tool_call Read /a read pending", "tool_call_update completed", "tool_call_update completed", "agent_message_chunk ok", "end_turn"},
		},
		"a remark of the agent": {
			`{turns: [{steps: [system: {subtype: informational, fields: {content: Mind the gap, level: info}}, text: ok]}]}`,
			[]string{"agent_message_chunk **Notice:** Mind the gap", "agent_message_chunk ok", "end_turn"},
		},
		"a message from the future": {
			`{turns: [{steps: [message: {fields: {type: from_the_future}}, raw: "no JSON", text: ok]}]}`,
			[]string{"agent_message_chunk ok", "end_turn"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEditor(t, play(t, c.script))
			assert.Equal(t, "end_turn", e.ask(e.open(nil), "x"))
			var told []string
			for _, s := range e.told() {
				told = append(told, strings.TrimSpace(s))
			}
			assert.Equal(t, c.want, told)
		})
	}
}

// The calls of a subagent name the call that began it, and diffs have both texts.
func TestDetailsOfToolCalls(t *testing.T) {
	t.Parallel()
	e := newEditor(t, play(t, `
turns:
- steps:
  - agent: {description: d, prompt: p, steps: [tool_use: {id: inner, name: Read, gate: allow, input: {file_path: /a}}]}
  - tool_use: {id: edit, name: Edit, gate: allow, input: {file_path: /f, old_string: old, new_string: new}}
  - tool_use: {id: write, name: Write, gate: allow, input: {file_path: /w, content: now}, structured: {type: update, filePath: /w, content: now, originalFile: before}}
  - tool_use: {id: sh, name: Bash, gate: allow, input: {command: cat}, result: "a`+"```"+`b"}
`))
	e.ask(e.open(nil), "x")
	details := map[string]acp.ToolCallUpdate{}
	for _, l := range e.got() {
		var u acp.SessionUpdate
		if l.Method == acp.MethodSessionUpdate && json.Unmarshal(l.Params.Update, &u) == nil && u.ToolCallUpdate != nil {
			d := details[string(u.ToolCallUpdate.ToolCallID)]
			if u.ToolCallUpdate.Content != nil {
				d.Content = u.ToolCallUpdate.Content
			}
			d.Meta, d.Status = u.ToolCallUpdate.Meta, u.ToolCallUpdate.Status
			details[string(u.ToolCallUpdate.ToolCallID)] = d
		}
	}
	assert.Contains(t, details["inner"].Meta["claudeCode"], "parentToolUseId")
	assert.NotContains(t, details["edit"].Meta["claudeCode"], "parentToolUseId")
	require.Len(t, details["edit"].Content, 1)
	assert.Equal(t, &acp.Diff{Path: "/f", OldText: "old", NewText: "new"}, details["edit"].Content[0].Diff)
	require.Len(t, details["write"].Content, 1)
	assert.Equal(t, &acp.Diff{Path: "/w", OldText: "before", NewText: "now"}, details["write"].Content[0].Diff)
	assert.Equal(t, "````console\na```b\n````", details["sh"].Content[0].Content.Content.Text.Text)
}

// A turn that the agent begins by itself is shown outside of a prompt, and answers none.
func TestTurnOutsideOfAPrompt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		e := newEditor(t, play(t, `{turns: [{steps: [shell: {command: make, takes: 50ms, gate: allow, then: [text: It is built.]}, text: Started.]}], default: [text: next]}`))
		s := e.open(nil)
		assert.Equal(t, "end_turn", e.ask(s, "x"))
		e.await("the notification's turn", func(l line) bool { return strings.Contains(l.raw, "It is built.") })
		assert.Equal(t, "end_turn", e.ask(s, "y"))
		answers := 0
		for _, l := range e.got() {
			if strings.Contains(l.raw, "stopReason") {
				answers++
			}
		}
		assert.Equal(t, 2, answers)
	})
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	const script = `{turns: [{steps: [tool_use: {name: AskUserQuestion, gate: ask, input: {questions: [{question: Which color?, header: Color, options: [{label: Red, description: r}, {label: Blue, description: b}]}]}, result: "${input}"}, text: ok]}]}`
	for name, c := range map[string]struct {
		answer object
		want   string
	}{
		"a choice":       {object{"action": "accept", "content": object{"question_0": "Blue"}}, `"Which color?":"Blue"`},
		"an own answer":  {object{"action": "accept", "content": object{"question_0": "Blue", "question_0_custom": "Green"}}, `"Which color?":"Green"`},
		"declined":       {object{"action": "decline"}, "The user did not answer"},
		"not an outcome": {object{}, "The user did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEditor(t, play(t, script))
			e.mu.Lock()
			e.form = func(l line) object {
				assert.Equal(t, "Which color?", l.Params.Message)
				return c.answer
			}
			e.mu.Unlock()
			assert.Equal(t, "end_turn", e.ask(e.open(object{"elicitation": object{"form": object{}}}), "x"))
			found := false
			for _, l := range e.got() {
				var u acp.SessionUpdate
				if l.Method == acp.MethodSessionUpdate && json.Unmarshal(l.Params.Update, &u) == nil && u.ToolCallUpdate != nil {
					found = found || strings.Contains(strings.ReplaceAll(string(u.ToolCallUpdate.RawOutput), `\"`, `"`), c.want)
				}
			}
			assert.True(t, found, "%s in %v", c.want, e.got()[len(e.got())-1].raw)
		})
	}
}

func TestPlanApproval(t *testing.T) {
	t.Parallel()
	const script = `{turns: [{steps: [tool_use: {name: ExitPlanMode, gate: ask, input: {plan: Do it}, result: ok}, text: done]}]}`
	for chosen, allowed := range map[string]bool{"exit-plan-default": true, "exit-plan-accept-edits": true, "reject": false, "allow-once": false} {
		t.Run(chosen, func(t *testing.T) {
			t.Parallel()
			c := play(t, script)
			c.Options.PermissionMode = sdk.ModePlan
			e := newEditor(t, c)
			e.setPermit(func(line) string { return chosen })
			e.ask(e.open(nil), "x")
			story := strings.Join(e.told(), "\n")
			assert.Contains(t, story, "permission? exit-plan-accept-edits exit-plan-default reject")
			assert.Equal(t, allowed, strings.Contains(story, "tool_call_update Exited Plan Mode completed"), story)
		})
	}
}

func TestPromptBlocks(t *testing.T) {
	t.Parallel()
	e := newEditor(t, play(t, `{default: [text: "${prompt}"]}`))
	s := e.open(nil)
	e.call("session/prompt", object{"sessionId": s, "prompt": []any{
		object{"type": "text", "text": "Look at "},
		object{"type": "resource_link", "name": "a.go", "uri": "file:///a.go"},
		object{"type": "resource", "resource": object{"uri": "file:///b.go", "text": "package b"}},
		object{"type": "image", "data": "AA==", "mimeType": "image/png"},
	}})
	said := ""
	for _, l := range e.got() {
		var u acp.SessionUpdate
		if l.Method == acp.MethodSessionUpdate && json.Unmarshal(l.Params.Update, &u) == nil && u.AgentMessageChunk != nil {
			said += u.AgentMessageChunk.Content.Text.Text
		}
	}
	for _, part := range []string{"Look at ", "[@a.go](file:///a.go)", "[@b.go](file:///b.go)", "<context ref=\"file:///b.go\">\npackage b\n</context>"} {
		assert.Contains(t, said, part)
	}
	for _, refused := range []object{
		{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}, {"type": "hologram"},
		{"type": "resource", "resource": object{"uri": "file:///x.pdf", "blob": "AA==", "mimeType": "application/pdf"}},
	} {
		e.fails("session/prompt", object{"sessionId": s, "prompt": []any{refused}}, acp.CodeInvalidParams)
	}
}

// An agent that does not stop when it is interrupted is ended; the next prompt has another
// one.
func TestCancelOfAnAgentThatDoesNotStop(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := onDisk(t, `
misbehave: {ignore: [interrupt]}
turns: [{when: slow, steps: [text: begun, delay: 60s]}]
default: [text: short]`)
		c.CancelGrace, c.Options.InterruptGrace = 200*time.Millisecond, 50*time.Millisecond
		e := newEditor(t, c)
		s := e.open(nil)
		id := e.request("session/prompt", prompt(s, "slow"))
		e.awaitChunks(1)
		e.notify("session/cancel", object{"sessionId": s})
		assert.Contains(t, e.answer(id).raw, `"cancelled"`)
		assert.Equal(t, "end_turn", e.ask(s, "again"))
	})
}

// The interrupts of a cancelled prompt end with its turn.
func TestCancelLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c := onDisk(t, `
turns: [{when: slow, steps: [text: begun, delay: 60s]}]
default: [delay: 600ms, text: done]`)
	c.CancelGrace = time.Second // it asks each quarter of this
	e := newEditor(t, c)
	s := e.open(nil)
	id := e.request("session/prompt", prompt(s, "slow"))
	e.awaitChunks(1)
	e.notify("session/cancel", object{"sessionId": s})
	assert.Contains(t, e.answer(id).raw, `"cancelled"`)
	assert.Equal(t, "end_turn", e.ask(s, "longer than the pause"))
	assert.Eventually(t, func() bool {
		stacks := make([]byte, 16<<20)
		return !bytes.Contains(stacks[:goruntime.Stack(stacks, true)], []byte("acpagent.(*session).interrupt"))
	}, patience, 100*time.Millisecond)
}

func TestNoAgent(t *testing.T) {
	t.Parallel()
	c := play(t, `{default: [text: x]}`)
	c.Options.Backend = sdk.Claude(sdk.ClaudeConfig{Path: "/does/not/exist"})
	c.Options.Env = map[string]string{"ANTHROPIC_API_KEY": "sk-secret"}
	e := newEditor(t, c)
	problem := e.fails("session/new", object{"cwd": t.TempDir(), "mcpServers": []any{}}, acp.CodeInternalError)
	assert.Contains(t, string(problem.Data), "agent_not_started")
	assert.Contains(t, problem.Message, "/does/not/exist")
	assert.NotContains(t, e.got()[0].raw, "sk-secret")
	e.fails("authenticate", object{"methodId": "any"}, acp.CodeInvalidParams)
}

// TestSecretsStayInside: keys of the environment and of MCP servers are in no line to the editor
// and in no line of the log, also when the agent dies or an API call fails.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	c := play(t, `
turns:
- when: bad
  steps: [result: {is_error: true, text: "API Error: 400", api_error_status: 400}]
- when: die
  steps: [text: soon, exit: {code: 3}]
default: [text: hello]`)
	c.NoRecovery = true
	c.Options.Env = map[string]string{"ANTHROPIC_API_KEY": "sk-secret-1"}
	var logged strings.Builder
	var mu sync.Mutex
	c.Logger = slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logged.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	e := newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	var opened acp.NewSessionResponse
	require.NoError(t, json.Unmarshal(e.call("session/new", object{"cwd": t.TempDir(), "mcpServers": []any{
		object{"name": "far", "type": "http", "url": "http://127.0.0.1:1/", "headers": []any{object{"name": "Authorization", "value": "sk-secret-2"}}},
		object{"name": "near", "command": "/none", "args": []any{}, "env": []any{object{"name": "TOKEN", "value": "sk-secret-3"}}},
	}}), &opened))
	s := string(opened.SessionID)
	e.fails("session/prompt", prompt(s, "bad"), acp.CodeInternalError)
	e.fails("session/prompt", prompt(s, "die"), acp.CodeInternalError)
	assert.Equal(t, "end_turn", e.ask(s, "again"))
	e.end()
	for _, l := range e.got() {
		assert.NotContains(t, l.raw, "sk-secret")
	}
	mu.Lock()
	defer mu.Unlock()
	assert.NotEmpty(t, logged.String())
	assert.NotContains(t, logged.String(), "sk-secret")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
