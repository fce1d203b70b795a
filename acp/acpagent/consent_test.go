package acpagent_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// permissionOf is the permission request about a call, and the directory of the session.
func permissionOf(t *testing.T, use *scripted.ToolUse) (acp.RequestPermissionRequest, string) {
	t.Helper()
	use.Gate = "ask"
	e := newEditor(t, acpagent.Config{Options: sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Default: scripted.Steps{use, scripted.Text("end")}}))}})
	e.mu.Lock()
	e.permit = func(line) string { return "reject" }
	e.mu.Unlock()
	dir := t.TempDir()
	e.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}})
	e.ask(e.newSession(dir), "go")
	asked := e.await("permission request", func(l line) bool { return l.Method == acp.MethodSessionRequestPermission })
	var m struct{ Params acp.RequestPermissionRequest }
	require.NoError(t, json.Unmarshal([]byte(asked.raw), &m))
	return m.Params, dir
}

// seen is what an editor shows of a call: title and content, not the raw input.
func seen(call acp.ToolCallUpdate) string {
	var b strings.Builder
	b.WriteString(call.Title + "\n")
	for _, c := range call.Content {
		switch {
		case c.Diff != nil:
			b.WriteString(c.Diff.Path + "\n" + c.Diff.OldText + "\n" + c.Diff.NewText + "\n")
		case c.Content != nil && c.Content.Content.Text != nil:
			b.WriteString(c.Content.Content.Text.Text + "\n")
		}
	}
	return b.String()
}

// A person who allows a call has seen all of its input, and where it runs.
func TestPermissionsShowTheWholeInput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a")
	for name, c := range map[string]struct {
		tool  string
		input map[string]any
		must  []string
		never []string
		here  bool // the directory is shown
	}{
		"a command":                    {"Bash", map[string]any{"command": "ls\nrm -r x && echo \"<b>\" > y", "description": "List files"}, []string{"```sh\nls\nrm -r x && echo \"<b>\" > y\n```", "The agent says: List files"}, nil, true},
		"options of a command":         {"Bash", map[string]any{"command": "ls", "dangerouslyDisableSandbox": true, "run_in_background": true, "timeout": 5}, []string{`"dangerouslyDisableSandbox": true`, `"run_in_background": true`, `"timeout": 5`}, nil, true},
		"a command that is no text":    {"Bash", map[string]any{"command": []any{"rm", "-r"}}, []string{`"rm"`}, nil, true},
		"another spelling of a key":    {"Bash", map[string]any{"command": "ls", "Command": "rm -r x"}, []string{"```sh\nls\n```", `"Command": "rm -r x"`}, nil, true},
		"marks that end the block":     {"Bash", map[string]any{"command": "ls\n```\nAll is well.\n```sh\nrm x"}, []string{"````sh\nls\n```\nAll is well."}, nil, true},
		"invisible characters":         {"Bash", map[string]any{"command": "ls \u202e\u200b\r\x1b[2Jx"}, []string{`\u202e`, `\u200b`, `\r`, `\x1b`}, []string{"\u202e", "\u200b", "\r", "\x1b"}, true},
		"a monitor":                    {"Monitor", map[string]any{"command": "ls\nrm x", "description": "Watch"}, []string{"ls\nrm x", "The agent says: Watch"}, nil, true},
		"a file":                       {"Write", map[string]any{"file_path": file, "content": "evil"}, []string{file, "evil"}, nil, false},
		"a file without a path":        {"Write", map[string]any{"file_path": "Makefile", "content": "evil"}, []string{"Makefile", "evil"}, nil, true},
		"every place of an edit":       {"Edit", map[string]any{"file_path": file, "old_string": "a", "new_string": "b", "replace_all": true}, []string{file, `"replace_all": true`}, nil, false},
		"several edits":                {"MultiEdit", map[string]any{"file_path": file, "edits": []any{map[string]any{"old_string": "a", "new_string": "evil"}}}, []string{"evil"}, nil, true},
		"a cell":                       {"NotebookEdit", map[string]any{"notebook_path": file, "new_source": "evil"}, []string{file, "evil"}, nil, true},
		"a page":                       {"WebFetch", map[string]any{"url": "https://x.example/" + strings.Repeat("a", 300) + "?evil", "prompt": "Summarize"}, []string{"?evil", "Summarize"}, nil, true},
		"a search":                     {"Grep", map[string]any{"pattern": "x", "path": "/etc", "glob": "*.pem"}, []string{`"glob": "*.pem"`}, nil, true},
		"a subagent":                   {"Agent", map[string]any{"description": "Look around", "prompt": "evil", "subagent_type": "x", "isolation": "none"}, []string{"Agent: Look around", "evil", `"isolation": "none"`}, nil, true},
		"a tool of a server":           {"mcp__db__query", map[string]any{"sql": "DROP TABLE x"}, []string{"mcp__db__query", "DROP TABLE x"}, nil, true},
		"a tool of a server, no input": {"mcp__db__reset", map[string]any{}, []string{"mcp__db__reset"}, nil, true},
		"a plan":                       {"ExitPlanMode", map[string]any{"plan": "Do it", "allowedPrompts": []any{map[string]any{"tool": "Bash", "prompt": "evil"}}}, []string{"Do it", "evil"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, dir := permissionOf(t, &scripted.ToolUse{Name: c.tool, Input: c.input})
			text := seen(asked.ToolCall)
			for _, must := range c.must {
				assert.Contains(t, text, must)
			}
			for _, never := range c.never {
				assert.NotContains(t, text, never)
			}
			assert.Equal(t, c.here, strings.Contains(text, "In `"+dir+"`"), text)
		})
	}
}

// A block that the agent does not take is named.
func TestBlocksThatAreNotTaken(t *testing.T) {
	t.Parallel()
	e := newEditor(t, play(t, `{default: [text: ok]}`))
	s := e.open(nil)
	for block, want := range map[string]string{
		`{"type":"audio","data":"eA==","mimeType":"audio/wav"}`:                                         "block 2 of the prompt, audio",
		`{"type":"hologram","x":1}`:                                                                     `of the type "hologram"`,
		`{"type":"image","mimeType":"image/png","data":"","uri":"file:///x"}`:                           "an image without data",
		`{"type":"resource","resource":{"uri":"file:///x","blob":"eA==","mimeType":"application/zip"}}`: "file:///x is neither",
	} {
		err := e.fails("session/prompt", object{"sessionId": s, "prompt": []any{object{"type": "text", "text": "x"}, json.RawMessage(block)}}, acp.CodeInvalidParams)
		assert.Contains(t, err.Message, want)
	}
	assert.Equal(t, "end_turn", e.ask(s, "x"))
}

// A directory that is not there ends the request before an agent is started.
func TestSessionsInAMissingDirectory(t *testing.T) {
	t.Parallel()
	c := play(t, `{default: [text: ok]}`)
	c.Options.Backend = sdk.Claude(sdk.ClaudeConfig{Path: "/does/not/exist"})
	e := newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}})
	missing := filepath.Join(t.TempDir(), "gone")
	for _, method := range []string{"session/new", "session/load", "session/resume"} {
		err := e.fails(method, object{"cwd": missing, "mcpServers": []any{}, "sessionId": "5e550000-0000-4000-8000-00000000000a"}, acp.CodeInvalidParams)
		assert.Contains(t, err.Message, missing)
	}
}
