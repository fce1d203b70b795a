package acpagent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// launches starts scripted agents in memory, and keeps how.
type launches struct {
	transport.InMemory
	mu  sync.Mutex
	all []session.Command
}

func (l *launches) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	l.mu.Lock()
	l.all = append(l.all, c)
	l.mu.Unlock()
	return l.InMemory.Spawn(ctx, c)
}

// flag is the value of a flag of the n-th process, the file's content if it is a file. "": the
// process has no such flag.
func (l *launches) flag(n int, name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.all) {
		return ""
	}
	c := l.all[n]
	value := ""
	for i, a := range c.Args {
		if v, joined := strings.CutPrefix(a, name+"="); joined {
			value = v
		} else if a == name && i+1 < len(c.Args) {
			value = c.Args[i+1]
		}
	}
	for _, f := range c.Files {
		if value == f.Placeholder() {
			return string(f.Content)
		}
	}
	return value
}

// launching is a configuration with a scripted agent whose launches are kept.
func launching(t *testing.T, c acpagent.Config, yaml string) (acpagent.Config, *launches) {
	t.Helper()
	script, err := scripted.Parse([]byte(yaml))
	require.NoError(t, err)
	l := &launches{InMemory: transport.InMemory{Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Program: &scripted.Agent{Script: script}}}
	c.Options.Backend, c.Options.Spawner = sdk.Claude(sdk.ClaudeConfig{}), l
	return c, l
}

// TestWhatTheAgentGets: servers and directories of the editor reach the agent, next to those of
// the options.
func TestWhatTheAgentGets(t *testing.T) {
	t.Parallel()
	var c acpagent.Config
	c.Options.MCPServers = map[string]sdk.MCPServerConfig{"host": {Command: "/bin/host"}}
	c, l := launching(t, c, `default: [text: ok]`)
	e := newEditor(t, c)
	more := t.TempDir()
	e.call("initialize", object{"protocolVersion": 1})
	e.call("session/new", object{"cwd": t.TempDir(), "additionalDirectories": []string{more}, "mcpServers": []any{
		object{"name": "near", "command": "/bin/near", "args": []string{"-v"}, "env": []any{object{"name": "KEY", "value": "one"}}},
		object{"type": "http", "name": "far", "url": "http://far.example/", "headers": []any{object{"name": "Authorization", "value": "two"}}},
		object{"type": "sse", "name": "stream", "url": "http://stream.example/", "headers": []any{}},
	}})
	assert.Equal(t, more, l.flag(0, "--add-dir"))
	var servers struct {
		MCPServers map[string]struct {
			Type, Command, URL string
			Args               []string
			Env, Headers       map[string]string
		} `json:"mcpServers"`
	}
	config := l.flag(0, "--mcp-config")
	require.NoError(t, json.Unmarshal([]byte(config), &servers), config)
	assert.Len(t, servers.MCPServers, 4)
	assert.Equal(t, "/bin/host", servers.MCPServers["host"].Command)
	near, far := servers.MCPServers["near"], servers.MCPServers["far"]
	assert.Equal(t, []string{"/bin/near", "-v", "one"}, []string{near.Command, strings.Join(near.Args, " "), near.Env["KEY"]})
	assert.Equal(t, []string{"http", "http://far.example/", "two"}, []string{far.Type, far.URL, far.Headers["Authorization"]})
	assert.Equal(t, "sse", servers.MCPServers["stream"].Type)
}

// TestAgentsOwnID: the agent's id of a session may change, as it does after /clear. The editor's
// stays, and the next agent resumes by the agent's.
func TestAgentsOwnID(t *testing.T) {
	t.Parallel()
	const other = "5e550000-0000-4000-8000-00000000000a"
	c := onDisk(t, `default: [text: ok]`)
	c.NoRecovery = true
	c, l := launching(t, c, `
transcript: true
turns:
- when: clear
  steps:
  - raw: '{"type":"assistant","session_id":"`+other+`","uuid":"5e550000-0000-4000-8000-00000000000b","parent_tool_use_id":null,"message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Clear."}]}}'
  - exit: {signal: KILL}
default: [text: ok]`)
	e := newEditor(t, c)
	s := e.open(nil)
	e.fails("session/prompt", prompt(s, "clear"), acp.CodeInternalError)
	e.answer(e.request("session/prompt", prompt(s, "next"))) // no such session on disk: whatever it is
	assert.Equal(t, s, l.flag(0, "--session-id"))
	assert.Equal(t, other, l.flag(1, "--resume"))
	for _, line := range e.got() {
		if line.Method == acp.MethodSessionUpdate {
			assert.Equal(t, s, line.Params.SessionID)
		}
	}
}

// TestLostEditor: a permission that is asked for when the editor goes away is denied.
func TestLostEditor(t *testing.T) {
	t.Parallel()
	c, effects := withEffects(t)
	e := newEditor(t, c)
	e.setPermit(func(line) string { return "never" })
	e.request("session/prompt", prompt(e.open(nil), "x"))
	e.await("permission request", func(l line) bool { return l.Method == acp.MethodSessionRequestPermission })
	e.end()
	assert.Zero(t, effects.Load())
}

// TestToolRunsOnce: an agent that died after a tool ran goes on without running it again.
func TestToolRunsOnce(t *testing.T) {
	t.Parallel()
	var effects atomic.Int32
	c := onDisk(t, `default: [text: x]`)
	script, err := scripted.Parse([]byte(`
transcript: true
turns: [{steps: [tool_use: {id: t1, name: Bash, input: {command: make install}, gate: allow, effect: log, result: done}, exit: {signal: KILL}]}]
resumed: [{steps: [text: Goes on.]}]`))
	require.NoError(t, err)
	c.Options.Backend = scripted.New(scripted.WithScript(script), scripted.WithEffect(func(string, string) error { effects.Add(1); return nil }))
	e := newEditor(t, c)
	assert.Equal(t, "end_turn", e.ask(e.open(nil), "x"))
	assert.EqualValues(t, 1, effects.Load())
	story := e.told()
	assert.Equal(t, "end_turn", story[len(story)-1])
	assert.Contains(t, story, "agent_message_chunk Goes on.")
}

// TestOlderBranch: load shows the conversation that the agent's program resumes, and nothing of a
// branch that was left.
func TestOlderBranch(t *testing.T) {
	t.Parallel()
	c := onDisk(t, `default: [text: "re ${prompt}"]`)
	cwd := t.TempDir()
	e := newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	s := e.newSession(cwd)
	for _, text := range []string{"first", "left behind", "last"} {
		e.ask(s, text)
	}
	e.end()
	// "last" becomes an answer to the first turn, as after a rewind.
	names, err := filepath.Glob(filepath.Join(c.Options.Env["CLAUDE_CONFIG_DIR"], "projects", "*", s+".jsonl"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	data, err := os.ReadFile(names[0])
	require.NoError(t, err)
	var after, out string
	for text := range strings.Lines(string(data)) {
		var m struct{ UUID, ParentUUID, Type string }
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		switch {
		case strings.Contains(text, `"re first"`):
			after = m.UUID
		case strings.Contains(text, `"last"`) && m.Type == "user":
			require.NotEmpty(t, m.ParentUUID)
			text = strings.Replace(text, m.ParentUUID, after, 1)
		}
		out += text
	}
	require.NotEmpty(t, after)
	require.NotEqual(t, string(data), out)
	require.NoError(t, os.WriteFile(names[0], []byte(out), 0o600))

	e = newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	e.call("session/load", object{"sessionId": s, "cwd": cwd, "mcpServers": []any{}})
	assert.Equal(t, []string{
		"user_message_chunk first", "agent_message_chunk re first", "user_message_chunk last", "agent_message_chunk re last",
	}, e.told())
}

// TestChangedCommands: the editor gets the list of commands again when it changes.
func TestChangedCommands(t *testing.T) {
	t.Parallel()
	e := newEditor(t, play(t, `{default: [system: {subtype: commands_changed, fields: {commands: [{name: fresh, description: New, argumentHint: "<file>"}]}}, text: ok]}`))
	e.ask(e.open(nil), "x")
	all := e.updates(t, "available_commands_update")
	require.Len(t, all, 2)
	require.Len(t, all[1].AvailableCommandsUpdate.AvailableCommands, 1)
	got := all[1].AvailableCommandsUpdate.AvailableCommands[0]
	require.NotNil(t, got.Input)
	assert.Equal(t, []string{"fresh", "New", "<file>"}, []string{got.Name, got.Description, got.Input.Hint})
}

// TestElicitations: the questions of MCP servers reach an editor that can show them.
func TestElicitations(t *testing.T) {
	t.Parallel()
	form := object{"elicitation": object{"form": object{}}}
	for name, c := range map[string]struct {
		step, want string
		can, reply object
		asked      bool
	}{
		"accepted":                   {"{server: shop, message: Size?, schema: {type: object, properties: {size: {type: string}}}}", `"content":{"size":"M"}`, form, object{"action": "accept", "content": object{"size": "M"}}, true},
		"cancelled":                  {"{server: shop, message: Size?}", `"action":"cancel"`, form, object{"action": "cancel"}, true},
		"no outcome":                 {"{server: shop, message: Size?}", `"action":"decline"`, form, object{"action": "maybe"}, true},
		"an editor without forms":    {"{server: shop, message: Size?}", `"action":"decline"`, object{}, object{}, false},
		"a page, and only forms":     {"{server: shop, message: Pay, mode: url}", `"action":"decline"`, form, object{}, false},
		"a page, and an able editor": {"{server: shop, message: Pay, mode: url}", `"action":"accept"`, object{"elicitation": object{"url": object{}}}, object{"action": "accept"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEditor(t, play(t, `{turns: [{steps: [elicitation: `+c.step+`, text: "${answer}"]}]}`))
			var asked atomic.Int32
			e.mu.Lock()
			e.form = func(l line) object {
				asked.Add(1)
				assert.True(t, strings.HasPrefix(l.Params.Message, "shop: "), l.raw)
				return c.reply
			}
			e.mu.Unlock()
			assert.Equal(t, "end_turn", e.ask(e.open(c.can), "x"))
			assert.Contains(t, strings.Join(e.texts(t), ""), c.want)
			assert.Equal(t, c.asked, asked.Load() == 1)
		})
	}
}

// texts are the pieces of text that the agent wrote.
func (e *editor) texts(t *testing.T) (out []string) {
	t.Helper()
	for _, u := range e.updates(t, "agent_message_chunk") {
		out = append(out, u.AgentMessageChunk.Content.Text.Text)
	}
	return out
}
