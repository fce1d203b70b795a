package troupeotel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	troupeotel "github.com/agent-troupe/troupe/contrib/otel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// planted is a text that must not be sent, with where it is planted.
func planted(where string) string { return "planted secret: " + where + " " }

// talkative is a session with a planted text in every place that the host or the agent
// can put one.
func talkative(w *simtests.World, r *rig) {
	tool := sdk.NewTool("leak", "Leaks.", func(context.Context, struct {
		Arg string `json:"arg"`
	},
	) (*sdk.ToolResult, error) {
		return nil, errors.New(planted("tool's error"))
	})
	server, err := sdk.NewMCPServer("shop", "1", tool)
	if err != nil {
		w.Fatalf("%v", err)
	}
	o := &sdk.Options{
		Tracer: r.Session, SessionID: id + "9", MaxRestarts: 1, PermissionTimeout: time.Second,
		Env: map[string]string{"TOKEN": planted("env")}, SystemPrompt: session.SystemPrompt{Append: planted("system prompt"), Preset: true},
		Title: planted("title"), SDKMCPServers: []*sdk.MCPServer{server},
		CanUseTool: func(ctx context.Context, req *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			switch req.ToolUseID {
			case "fails":
				return protocol.PermissionResult{}, errors.New(planted("callback's error"))
			case "panics":
				panic(planted("panic"))
			case "denied":
				return protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: planted("denial")}, nil
			}
			return allow(ctx, req)
		},
		Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{}, errors.New(planted("hook's error"))
		}, func(h *sdk.Hook) { h.OnFailure = session.ContinueOnFailure })},
		OnEvent: func(e sdk.EventRecord) {
			if _, ok := e.Event.(*session.StateChanged); ok {
				panic(planted("OnEvent"))
			}
		},
	}
	call := func(id string) scripted.Step {
		return &scripted.ToolUse{ID: id, Name: "Bash", Input: map[string]any{"command": planted("input")}, Gate: agent.GateAsk, Result: planted("output")}
	}
	failed := true
	c := w.Open(o, &scripted.Script{
		Turns: []scripted.Turn{
			{Steps: scripted.Steps{
				scripted.Text(planted("text")), scripted.Thinking(planted("thinking")), scripted.Stderr(planted("stderr")), scripted.Raw(planted("noise")),
				call("fails"), call("panics"), call("denied"), call("runs"), call(planted("tool id")),
				&scripted.ToolUse{ID: "hallucinated", Name: planted("tool name"), Gate: agent.GateAllow},
				&scripted.ToolUse{ID: "broken", Name: "Read", Gate: agent.GateAllow, Error: planted("tool failure")},
				&scripted.MCPCall{Server: "shop", Tool: "leak", Arguments: map[string]any{"arg": planted("argument")}},
				&scripted.SubAgent{Description: planted("task"), Prompt: planted("task prompt"), Type: planted("type"), Report: planted("report")},
				scripted.Text(planted("last text")),
			}},
			{Steps: scripted.Steps{&scripted.Result{
				IsError: &failed, Errors: []string{planted("error")}, StopReason: planted("stop reason"), TerminalReason: planted("terminal reason"),
				Fields: map[string]any{"api_error_type": planted("api error type"), "model_usage_since_last_result": map[string]any{planted("model"): map[string]any{"inputTokens": 1, "costUSD": 1}}},
			}}},
			{Steps: scripted.Steps{&scripted.Result{Subtype: planted("subtype")}}},
			{Steps: scripted.Steps{scripted.Stderr(planted("last words")), &scripted.Exit{Code: 1}}},
		},
		Resumed: []scripted.Turn{{Steps: scripted.Steps{scripted.Stderr(planted("last words")), &scripted.Exit{Code: 1}}}},
	})
	for n := range 4 {
		_ = say(w, c, string(rune('1'+n)), planted("prompt"))
	}
	_ = c.Close(w.Context())
}

// sent is everything that was exported, as text.
func (r *rig) sent(t require.TestingT) string {
	var b strings.Builder
	for _, s := range r.spans.GetSpans() {
		fmt.Fprintf(&b, "%s %v %v %v %v\n", s.Name, s.Attributes, s.Events, s.Status, s.Links)
	}
	return b.String() + r.measured(t)
}

// TestNothingThatWasSaidIsSent: without Content no text of the conversation, of an error
// or of the options is sent.
func TestNothingThatWasSaidIsSent(t *testing.T) {
	t.Parallel()
	var sent string
	_, _ = simulate(t, func(w *simtests.World, r *rig) {
		talkative(w, r)
		sent = r.sent(w)
	})
	require.Contains(t, sent, "execute_tool Bash", "the session did something")
	require.Contains(t, sent, "execute_tool _OTHER", "a name that may be more than one")
	require.Contains(t, sent, "restart agent")
	for line := range strings.Lines(sent) {
		assert.NotContains(t, line, "planted")
		assert.NotContains(t, line, "secret")
	}
}

// TestContent: with Content what was said is sent, and still nothing of the options.
func TestContent(t *testing.T) {
	t.Parallel()
	var sent string
	simtests.Explore(t, simtests.Config{Seeds: 1, Twice: -1, DoNotKeep: true, Shrink: -1}, func(w *simtests.World) {
		r := newRig(w, func(c *troupeotel.Config) { c.Content = true })
		talkative(w, r)
		sent = r.sent(w)
	})
	for _, where := range []string{"prompt", "input", "output", "tool failure", "last text", "callback's error", "panic", "hook's error", "argument"} {
		assert.Contains(t, sent, planted(where))
	}
	for _, where := range []string{"env", "system prompt", "title", "tool id", "tool name", "model", "subtype", "stop reason"} {
		assert.NotContains(t, sent, planted(where))
	}
	assert.Contains(t, strings.ReplaceAll(sent, `\`, ``), `[{"role":"user","parts":[{"type":"text","content":"`+planted("prompt")+`"}]}]`)
}

// TestLongContentIsCut: what is sent of one text is bounded, and is UTF-8.
func TestLongContentIsCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *troupeotel.Config) { c.Content = true })
	long := strings.Repeat("ö", 20<<10)
	agent := scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
		&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": long}, Gate: agent.GateAllow, Result: long}, scripted.Text("done"),
	}}))
	_, err := sdk.Run(t.Context(), long, &sdk.Options{Tracer: r.Session, Backend: agent, CanUseTool: allow})
	require.NoError(t, err)
	require.Len(t, r.spans.GetSpans(), 3)
	for _, s := range r.spans.GetSpans() {
		for _, kv := range s.Attributes {
			assert.Less(t, len(kv.Value.String()), 17<<10, kv.Key)
			assert.Equal(t, strings.ToValidUTF8(kv.Value.String(), "?"), kv.Value.String(), kv.Key)
		}
	}
}
