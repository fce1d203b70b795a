package sdk_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestContentOfMessages(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options(bash()))
		defer w.close(c)
		turn, err := c.Send(w.Context(), sdk.UserBlocks(&sdk.TextBlock{Text: "look "}, &sdk.TextBlock{Text: "here"}))
		require.NoError(w, err)
		var called []string
		for m, err := range turn.Messages(w.Context()) {
			require.NoError(w, err)
			for _, u := range sdk.ToolUses(m) {
				called = append(called, u.Name)
			}
		}
		assert.Equal(w, []string{"Bash"}, called)
		m := sdk.UserBlocks(&sdk.TextBlock{Text: "look "}, &sdk.TextBlock{Text: "here"})
		assert.Equal(w, "look here", sdk.TextOf(&m))
	})
}

func TestCollectKeepsWhatCameBeforeAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	all, err := sdk.Collect(func(yield func(sdk.Message, error) bool) {
		_ = yield(&sdk.InitMessage{}, nil) && yield(nil, broken)
	})
	require.ErrorIs(t, err, broken)
	assert.Len(t, all, 1)
}

func TestResultWithAnOddField(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		r, err := sdk.Run(w.Context(), "hi", w.options(turn(&scripted.Result{Fields: map[string]any{"num_turns": "many", "result": "all the same"}})))
		require.NoError(w, err)
		assert.Equal(w, "all the same", r.Result)
	})
}

func TestEventsOfOneSession(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options())
		for range c.Events(canceled(w)) {
			w.Error("an event after the end of the context")
		}
		w.close(c)
		for range c.Events(w.Context()) {
			w.Error("an event after the end of the session")
		}
	})
	in(t, func(w *world) {
		c := w.connect(w.script(scripted.Script{Default: scripted.Steps{scripted.Delay(10 * time.Millisecond), scripted.Text("one")}}))
		seen := make(chan struct{})
		w.rt.Executor().Go(func() {
			for e := range c.Events(w.Context()) {
				if _, ok := e.Event.(*session.StateChanged); ok {
					close(seen)
					return
				}
			}
		})
		for until := w.rt.Clock().Now().Add(time.Minute); !isClosed(seen) && w.rt.Clock().Now().Before(until); {
			w.say(c, "hi")
			rest := make(chan struct{}) // for the session to become ready again
			w.rt.Clock().AfterFunc(10*time.Millisecond, func() { close(rest) })
			w.await(rest)
		}
		assert.True(w, isClosed(seen))
		w.close(c)
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// canceled is a context that has ended.
func canceled(w *world) context.Context {
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	return ctx
}

func TestNamesOfBackends(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "claude", sdk.Claude(sdk.ClaudeConfig{}).AgentName())
	assert.Equal(t, "qoder", sdk.Qoder(sdk.QoderConfig{}).AgentName())
	assert.Equal(t, "scripted", sdk.InMemory(scripted.New(), agent.Qoder).AgentName())
	assert.Empty(t, sdk.InMemory(nil, agent.Qoder).AgentName())
}

// Texts yields an error in place of a lost text, and continues.
func TestTextsOfASkippedMessage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20_000)
	raw := func(line string) scripted.Step { r := scripted.Raw(line); return &r }
	for name, c := range map[string]struct {
		steps []scripted.Step
		want  []string // an error as "skipped"
	}{
		"text":            {[]scripted.Step{scripted.Text("one"), scripted.Text(long), scripted.Text("two")}, []string{"one", "skipped", "two"}},
		"the last":        {[]scripted.Step{scripted.Text(long)}, []string{"skipped"}},
		"a tool's result": {[]scripted.Step{&scripted.ToolUse{Name: "Read", Input: map[string]any{}, Result: long}, scripted.Text("two")}, []string{"two"}},
		"a status":        {[]scripted.Step{raw(`{"type":"system","subtype":"status","padding":"` + long + `"}`), scripted.Text("two")}, []string{"two"}},
		"it does not say": {[]scripted.Step{raw(`{"padding":"` + long + `","type":"assistant"}`), scripted.Text("two")}, []string{"skipped", "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options(turn(append(c.steps, &scripted.Result{Text: new("end")})...))
				o.MaxLine = 8192
				var got []string
				for text, err := range sdk.Texts(sdk.Query(w.Context(), "go", o)) {
					if err != nil {
						var skipped *protocol.OversizeError
						require.ErrorAs(w, err, &skipped)
						assert.Equal(w, 8192, skipped.Ceiling)
						assert.Empty(w, text)
						text = "skipped"
					}
					got = append(got, text)
				}
				assert.Equal(w, c.want, got)
			})
		})
	}
}

// Text that came in pieces is not lost with the message that has all of it.
func TestTextsOfASkippedMessageThatWasStreamed(t *testing.T) {
	t.Parallel()
	skipped := func(kind, head string) *protocol.OversizeMessage {
		return &protocol.OversizeMessage{Type: kind, Head: []byte(head), Err: &protocol.OversizeError{Length: 9, Ceiling: 1}}
	}
	begins := &sdk.PartialAssistantMessage{Event: &protocol.MessageStart{Message: protocol.APIMessage{ID: "m1"}}}
	for name, c := range map[string]struct {
		message *protocol.OversizeMessage
		lost    bool
	}{
		"the whole of it": {skipped("assistant", `{"type":"assistant","message":{"id":"m1","type":`), false},
		"another one":     {skipped("assistant", `{"type":"assistant","message":{"id":"m2","type":`), true},
		"a piece":         {skipped("stream_event", `{"type":"stream_event"`), true},
		"the user's":      {skipped("user", `{"type":"user"`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := func(yield func(sdk.Message, error) bool) {
				_ = yield(begins, nil) && yield(c.message, nil) && yield(&sdk.AssistantMessage{Message: protocol.APIMessage{ID: "m3", Content: protocol.TextContent("end")}}, nil)
			}
			var errs, texts int
			for text, err := range sdk.Texts(messages) {
				if err != nil {
					errs++
				} else {
					texts++
					assert.Equal(t, "end", text)
				}
			}
			assert.Equal(t, c.lost, errs == 1)
			assert.Equal(t, 1, texts)
		})
	}
}
