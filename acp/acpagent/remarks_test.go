package acpagent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
)

// updates are the updates of a kind, in order.
func (e *editor) updates(t *testing.T, kind string) (out []acp.SessionUpdate) {
	t.Helper()
	for _, l := range e.got() {
		if l.Method == acp.MethodSessionUpdate && strings.Contains(string(l.Params.Update), `"sessionUpdate":"`+kind+`"`) {
			var u acp.SessionUpdate
			require.NoError(t, json.Unmarshal(l.Params.Update, &u))
			out = append(out, u)
		}
	}
	return out
}

// TestTitle: the editor gets the title that session/list has, once, before the answer.
func TestTitle(t *testing.T) {
	t.Parallel()
	c := onDisk(t, `default: [text: ok]`)
	cwd := t.TempDir()
	e := newEditor(t, c)
	e.call("initialize", object{"protocolVersion": 1})
	s := e.newSession(cwd)
	e.ask(s, "Mend the roof")
	assert.Equal(t, []string{"agent_message_chunk ok", "session_info_update", "end_turn"}, e.told())
	require.NoError(t, c.Sessions(cwd).Rename(t.Context(), s, "Roof"))
	e.ask(s, "And the door")
	e.ask(s, "And the wall") // the title stays
	var titles []string
	for _, u := range e.updates(t, "session_info_update") {
		titles = append(titles, u.SessionInfoUpdate.Title)
		assert.NotEmpty(t, u.SessionInfoUpdate.UpdatedAt)
	}
	assert.Equal(t, []string{"Mend the roof", "Roof"}, titles)
	var r acp.ListSessionsResponse
	require.NoError(t, json.Unmarshal(e.call("session/list", object{"cwd": cwd}), &r))
	require.Len(t, r.Sessions, 1)
	assert.Equal(t, "Roof", r.Sessions[0].Title)
}

// TestCompaction: an editor sees that the agent compacts, and how that ends.
func TestCompaction(t *testing.T) {
	t.Parallel()
	const begin = "system: {subtype: status, fields: {status: compacting}}"
	done := begin + ", system: {subtype: status, fields: {status: null, compact_result: success}}, " +
		"system: {subtype: compact_boundary, fields: {compact_metadata: {trigger: manual, pre_tokens: 900, post_tokens: 70, duration_ms: 5}}}"
	for name, c := range map[string]struct {
		steps      string
		able       bool
		want, last string
	}{
		"as a call":              {done, false, "in_progress completed ", `"rawOutput":{"durationMs":5,"postTokens":70,"preTokens":900,"trigger":"manual"}`},
		"as an update":           {done, true, "in_progress completed", `"status":"completed"`},
		"that fails, as a call":  {begin + ", system: {subtype: status, fields: {status: null, compact_result: failed, compact_error: too long}}", false, "in_progress failed", "too long"},
		"that fails":             {begin + ", system: {subtype: status, fields: {status: null, compact_result: failed, compact_error: too long}}", true, "in_progress failed", "too long"},
		"without an end":         {begin + ", text: ok", false, "in_progress failed", "The turn ended"},
		"of an agent that dies":  {begin + ", exit: {signal: KILL}", false, "in_progress failed", "The agent has ended"},
		"of one that dies, able": {begin + ", exit: {signal: KILL}", true, "in_progress failed", "The agent has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := "[" + strings.ReplaceAll(c.steps, ", system:", "}, {system:")
			steps = strings.ReplaceAll(strings.ReplaceAll(steps, ", text:", "}, {text:"), ", exit:", "}, {exit:")
			config := play(t, "{turns: [{steps: "+strings.Replace(steps, "[system", "[{system", 1)+"}]}]}")
			config.NoRecovery = true
			e := newEditor(t, config)
			can := object{}
			if c.able {
				can = object{"session": object{"compaction": object{}}}
			}
			s := e.open(can)
			e.answer(e.request("session/prompt", prompt(s, "/compact")))
			var got []string
			last := ""
			for _, l := range e.got() {
				update := string(l.Params.Update)
				if !strings.Contains(update, "compaction_update") && !strings.Contains(update, "tool_call") {
					continue
				}
				assert.Equal(t, c.able, strings.Contains(update, "compaction_update"))
				var u struct{ Status string }
				require.NoError(t, json.Unmarshal(l.Params.Update, &u))
				got = append(got, u.Status)
				last = update
			}
			assert.Equal(t, c.want, strings.Join(got, " "))
			assert.Contains(t, last, c.last)
			if strings.Contains(c.want, "completed") {
				for _, u := range e.updates(t, "usage_update") {
					assert.EqualValues(t, 70, u.UsageUpdate.Used)
				}
			}
		})
	}
}

// TestNamesOfRules: the option that lasts says all that it allows.
func TestNamesOfRules(t *testing.T) {
	t.Parallel()
	rule := func(tool, content string) string {
		return fmt.Sprintf(`{type: addRules, behavior: allow, destination: session, rules: [{toolName: %s, ruleContent: %q}]}`, tool, content)
	}
	for want, suggestions := range map[string]string{
		"Yes, and don't ask again for git push commands":                 rule("Bash", "git push:*"),
		"Yes, and don't ask again for npm test commands":                 rule("Bash", "npm test *"),
		"Yes, and don't ask again for WebFetch(domain:x.org)":            rule("WebFetch", "domain:x.org"),
		"Yes, and don't ask again for WebSearch":                         rule("WebSearch", ""),
		"Yes, and don't ask again for ls commands, WebSearch":            rule("Bash", "ls") + ", " + rule("WebSearch", ""),
		"Yes, allow all edits during this session":                       "{type: setMode, mode: acceptEdits, destination: session}",
		"Yes, and change the mode to auto":                               "{type: setMode, mode: auto, destination: session}",
		"Yes, allow access to /a, /b":                                    "{type: addDirectories, directories: [/a, /b], destination: session}",
		"Yes, allow access to /a …":                                      `{type: addDirectories, directories: ["/a\nNo"], destination: session}`,
		"Yes, and allow access to /a, and don't ask again for WebSearch": "{type: addDirectories, directories: [/a], destination: session}, " + rule("WebSearch", ""),
		"Yes, and don't ask again":                                       "{type: fromTheFuture, destination: session}",
		"":                                                               "",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			e := newEditor(t, play(t, `{turns: [{steps: [tool_use: {name: Bash, input: {command: x}, gate: ask, ask: {permission_suggestions: [`+suggestions+`]}}]}]}`))
			name := make(chan string, 1)
			e.setPermit(func(l line) string {
				n := ""
				for _, o := range l.Params.Options {
					if o.Kind == acp.PermissionOptionKindAllowAlways {
						n = o.Name
					}
				}
				name <- n
				return "reject"
			})
			e.ask(e.open(nil), "x")
			assert.Equal(t, want, <-name)
		})
	}
}

// TestManyModes: the editor is told each mode once and in its order, although the agent reports
// each mode, too, and later.
func TestManyModes(t *testing.T) {
	t.Parallel()
	e := newEditor(t, play(t, `{default: [text: ok]}`))
	s := e.open(nil)
	var want, got []string
	for i := range 40 {
		mode := []string{"plan", "acceptEdits", "default"}[i%3]
		e.call("session/set_mode", object{"sessionId": s, "modeId": mode})
		want = append(want, mode)
	}
	assert.Equal(t, "end_turn", e.ask(s, "x")) // the agent's reports come before its turn
	for _, u := range e.updates(t, "current_mode_update") {
		got = append(got, string(u.CurrentModeUpdate.CurrentModeID))
	}
	assert.Equal(t, want, got)
}
