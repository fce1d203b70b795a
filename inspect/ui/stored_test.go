package ui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// messagesPart is a part of a transcript.
type messagesPart struct {
	Messages []struct {
		Seq     int64
		Type    string
		Message json.RawMessage
		Gates   map[string]runtime.Gate
	}
	More  bool
	Place int64
}

// TestStoredMessages reads a session that was never watched, from its end to its beginning.
func TestStoredMessages(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	desk := ui.NewDesk(rt)
	cfg := open()
	cfg.Desk = desk
	p := serve(t, ui.Handler(rt, cfg)).enter("mira")
	script := &scripted.Script{Transcript: true, Turns: []scripted.Turn{
		{When: "call", Steps: scripted.Steps{
			&scripted.ToolUse{ID: "by-rule", Name: "Bash", Input: map[string]any{"command": "ls"}, Gate: agent.GateAsk, Result: "ok"},
			&scripted.ToolUse{ID: "by-person", Name: "Bash", Input: map[string]any{"command": "rm x"}, Gate: agent.GateAsk, Result: "ok"},
			&scripted.ToolUse{ID: "denied", Name: "Bash", Input: map[string]any{"command": "curl x"}, Gate: agent.GateAsk, Result: "ok"},
		}},
		{When: "go", Steps: scripted.Steps{scripted.Text("the answer")}},
	}}
	s, err := rt.Open(t.Context(), runtime.Spec{ID: "s", Dialect: claude.New(), Program: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{})), Options: sdk.Options{
		CanUseTool: desk.CanUseTool, Policy: &policy.Rules{Allow: []string{"Bash(ls:*)"}, Deny: []string{"Bash(curl:*)"}},
	}})
	require.NoError(t, err)
	go func() {
		for _, err := range s.Messages(t.Context()) {
			if err != nil {
				return
			}
		}
	}()
	for i := range 300 {
		_, err := send(t, s, fmt.Sprintf("go %d", i)).Result(t.Context())
		require.NoError(t, err)
	}
	turn := send(t, s, "call")
	p.follow("", func(f frame) bool {
		if f.kind == "approval" || f.kind == "tick" {
			var calls struct{ Approvals []ui.Approval }
			if p.read("api/approvals", &calls); len(calls.Approvals) == 0 {
				return false
			}
			status, text, _ := p.do("POST", "api/approvals/"+calls.Approvals[0].ID, `{"allow": true}`, nil)
			return assert.Equal(t, 200, status, text)
		}
		return false
	})
	_, err = turn.Result(t.Context())
	require.NoError(t, err)

	gates, prompts, at := map[string]runtime.Gate{}, 0, int64(0)
	for more := true; more; {
		var part messagesPart
		p.read(fmt.Sprintf("api/sessions/s/messages?limit=150&before=%d", at), &part)
		require.NotEmpty(t, part.Messages)
		for i, m := range part.Messages {
			if i > 0 {
				assert.Greater(t, m.Seq, part.Messages[i-1].Seq)
			}
			if m.Type == "user" && m.Gates == nil {
				prompts++
			}
			for id, g := range m.Gates {
				gates[id] = g
			}
		}
		at, more = part.Messages[0].Seq, part.More
	}
	assert.Equal(t, 301, prompts, "each once")
	assert.Equal(t, map[string]runtime.Gate{
		"by-rule":   {By: "rule", Allow: true, Why: gates["by-rule"].Why},
		"by-person": {By: "person", Allow: true, Why: gates["by-person"].Why},
		"denied":    {By: "rule", Why: gates["denied"].Why},
	}, gates)
	assert.Contains(t, gates["by-rule"].Why, "Bash(ls:*)")
	assert.Contains(t, gates["denied"].Why, "Bash(curl:*)")
	assert.Contains(t, gates["by-person"].Why, "mira")

	var found messagesPart
	p.read("api/sessions/s/messages?limit=10&find=GO+7&before="+fmt.Sprint(int64(1)<<40), &found)
	assert.Greater(t, len(found.Messages), 400, "all that is after it, too")
	assert.Contains(t, string(found.Messages[0].Message), "go 7")
	assert.True(t, found.More)
}

// TestASearchIsBounded: an answer to a search for a text that is not there reads a part of a long transcript, and says where
// the next one continues.
func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	p := serve(t, ui.Handler(rt, open())).enter("")
	script := &scripted.Script{Transcript: true, Turns: []scripted.Turn{{When: "go", Steps: scripted.Steps{scripted.Text("the answer")}}}}
	s := openSession(t, rt, "s", nil, func(spec *runtime.Spec) {
		spec.Program = scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))
	})
	go func() {
		for _, err := range s.Messages(t.Context()) {
			if err != nil {
				return
			}
		}
	}()
	const n = 70
	for i := range n {
		_, err := send(t, s, fmt.Sprintf("go %d %s", i, strings.Repeat("x", 256<<10))).Result(t.Context())
		require.NoError(t, err)
	}
	answers, prompts, at := 0, 0, int64(0)
	for more := true; more; answers++ {
		var part messagesPart
		p.read(fmt.Sprintf("api/sessions/s/messages?limit=1&find=not+there&before=%d", at), &part)
		for _, m := range part.Messages {
			if m.Type == "user" {
				prompts++
			}
		}
		assert.Equal(t, part.More, part.Place > 0)
		assert.Less(t, prompts, n+1)
		assert.Equal(t, part.More, prompts < n)
		at, more = part.Place, part.More
	}
	assert.Equal(t, []any{2, n}, []any{answers, prompts})
}
