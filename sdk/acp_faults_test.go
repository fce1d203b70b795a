package sdk_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// dies plays a turn that ends the first process in a call.
func dies(p *acpPlay, text string) string {
	p.say("before ")
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Run it","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}`)
	if p.run == 1 {
		return "exit"
	}
	p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`)
	p.say("after " + text)
	return `{"stopReason":"end_turn"}`
}

// TestACPAgentThatDies: an agent that dies in a turn ends the session with its exit.
func TestACPAgentThatDies(t *testing.T) {
	t.Parallel()
	overACP(t, &acpAgent{prompt: dies}, &sdk.Options{}, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		_, err := w.ask(t, "x")
		var exit *session.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, []string{"init acp-1", `assistant text "before "`, `assistant call t1 execute {"command":"make"}`}, w.messages)
	})
}

// TestACPRestart: another process opens the session and continues the turn that ran, which has
// one result. The agent reads which calls have been made; the history that it repeats is not shown.
func TestACPRestart(t *testing.T) {
	t.Parallel()
	for name, capabilities := range map[string]string{
		"session/load":   `{"loadSession":true}`,
		"session/resume": `{"loadSession":true,"sessionCapabilities":{"resume":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &acpAgent{capabilities: capabilities, prompt: dies, opens: func(p *acpPlay) {
				if p.run > 1 && name == "session/load" {
					p.say("old words")
				}
			}}
			overACP(t, a, &sdk.Options{MaxRestarts: 2}, func(t *testing.T, w *acpWorld) {
				require.NoError(t, w.client.Connect(t.Context()))
				r, err := w.ask(t, "x")
				require.NoError(t, err)
				assert.True(t, r.Recovered)
				assert.Contains(t, r.Result, "- execute {\"command\":\"make\"} (no result was seen)")
				assert.Equal(t, 1, strings.Count(strings.Join(w.messages, "\n"), "result success"))
				r, err = w.ask(t, "y")
				require.NoError(t, err)
				assert.Equal(t, "after y", r.Result)
				assert.NotContains(t, strings.Join(w.messages, "\n"), "old words")
				assert.Contains(t, a.methods(), name)
			})
		})
	}
}

// TestACPRestartOfAnAgentThatCannotResume ends the session: a new conversation would be another.
func TestACPRestartOfAnAgentThatCannotResume(t *testing.T) {
	t.Parallel()
	a := &acpAgent{prompt: dies}
	overACP(t, a, &sdk.Options{MaxRestarts: 2}, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		_, err := w.ask(t, "x")
		var lacks *session.UnsupportedCapabilityError
		require.ErrorAs(t, err, &lacks)
		assert.NotContains(t, a.methods()[2:], "session/new")
	})
}

// TestACPLongLines: 10 MiB (2 with -short) in a prompt, in a piece of text and in a result do not end the
// connection; a line above MaxLine fails what waits for it, and nothing else.
func TestACPLongLines(t *testing.T) {
	t.Parallel()
	size, most := 10<<20, 15<<20
	if testing.Short() || sim.Raced() {
		size, most = 2<<20, 5<<20 // the result of a small call is in its message twice
	}
	long := strings.Repeat("0123456789abcdef", size/16)
	longer := strings.Repeat(long, 1+most/size)
	a := &acpAgent{prompt: func(p *acpPlay, text string) string {
		switch text {
		case long:
			p.say(text)
			p.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Cat","status":"completed","rawInput":{"a":1},"rawOutput":"` + text + `"}`)
		case "too long":
			p.say(longer)
			p.say("the rest")
		case "too long an answer":
			return `{"stopReason":"end_turn","x":"` + longer + `"}`
		case "too long a question":
			outcome, _ := p.ask(strings.Replace(permissionUpdate("allow_once", "reject_once"), `"ls"`, `"`+longer+`"`, 1))
			p.say(outcome)
		}
		return `{"stopReason":"end_turn"}`
	}}
	asked := 0
	o := &sdk.Options{MaxLine: most, CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked++
		return sdk.Allow(), nil
	}}
	overACP(t, a, o, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		r, err := w.ask(t, long)
		require.NoError(t, err)
		assert.Equal(t, long, r.Result)
		assert.Equal(t, `user result of t1 "`+long+`" false`, w.messages[len(w.messages)-2], "the result of the call")

		r, err = w.ask(t, "too long")
		require.NoError(t, err)
		assert.Equal(t, "the rest", r.Result)

		r, err = w.ask(t, "too long an answer")
		require.NoError(t, err)
		assert.Equal(t, protocol.ResultErrorDuringExecution, r.Subtype)
		assert.Contains(t, strings.Join(r.Errors, " "), "MaxLine")

		r, err = w.ask(t, "too long a question")
		require.NoError(t, err)
		assert.Contains(t, r.Result, "-32600")
		assert.Zero(t, asked, "nobody was asked, and nothing was allowed")

		_, err = w.ask(t, "the end")
		require.NoError(t, err)
		synctest.Wait() // events are reported later
		w.mu.Lock()
		defer w.mu.Unlock()
		oversize := 0
		for _, e := range w.events {
			if _, ok := e.(*session.OversizeLine); ok {
				oversize++
			}
		}
		assert.Equal(t, 3, oversize)
	})
}

// TestACPClose in a turn cancels it, denies the open question, and ends the process.
func TestACPClose(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	a := &acpAgent{prompt: func(p *acpPlay, _ string) string {
		outcome, _ := p.ask(permissionUpdate("allow_once", "reject_once"))
		p.untilCancelled()
		p.say(outcome)
		return `{"stopReason":"cancelled"}`
	}}
	o := &sdk.Options{CanUseTool: func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		close(asked)
		<-ctx.Done()
		return sdk.Allow(), nil // too late
	}}
	overACP(t, a, o, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		_, err := w.client.Send(t.Context(), sdk.UserText("x"))
		require.NoError(t, err)
		<-asked
		require.NoError(t, w.client.Close(t.Context()))
		assert.Contains(t, a.methods(), "session/cancel")
		assert.Contains(t, a.requests(), `answer {"outcome":{"outcome":"selected","optionId":"id-reject_once"}}`)
	})
}

// TestACPAgentThatIgnoresCancel: the session is still closed, in bounded time.
func TestACPAgentThatIgnoresCancel(t *testing.T) {
	t.Parallel()
	a := &acpAgent{prompt: func(p *acpPlay, _ string) string {
		for p.exit == nil {
			p.next()
		}
		return "silence"
	}}
	overACP(t, a, &sdk.Options{}, func(t *testing.T, w *acpWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		_, err := w.client.Send(t.Context(), sdk.UserText("x"))
		require.NoError(t, err)
		synctest.Wait()
		begun := time.Now()
		_ = w.client.Close(t.Context())
		assert.Less(t, time.Since(begun), 25*time.Second)
		select {
		case <-w.client.Done():
		default:
			t.Error("the session goes on")
		}
	})
}
