package sdk_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const hour = scripted.Delay(time.Hour)

func TestQueryOnePrompt(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/query")
	in(t, func(w *world) {
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", w.options(turn(scripted.Text("hello")))))
		require.NoError(w, err)
		assert.Equal(w, []string{"init", "assistant", "result/success"}, kinds(all))
	})
}

func TestQueryReadsToTheAgentsLastWord(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("hello"), &scripted.Shell{Command: "make", Takes: time.Second, Then: scripted.Steps{scripted.Text("made")}}))
		o.AllowedTools = []string{"Bash"}
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		require.NoError(w, err)
		var results []string
		for _, m := range all {
			if r, ok := m.(*sdk.ResultMessage); ok {
				results = append(results, r.Result)
			}
		}
		assert.Equal(w, "made", results[len(results)-1], "the turn that the task started was not waited for: %v", results)
	})
}

// Work after the first result still has its hooks and its gate.
func TestGatesOfBackgroundWork(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		var log []string
		first := make(chan struct{})
		script := scripted.Script{Turns: []scripted.Turn{turn(&scripted.SubAgent{
			Description: "later", Prompt: "later", Background: true, Report: "done", Steps: scripted.Steps{
				scripted.Delay(50 * time.Millisecond),
				&scripted.ToolUse{ID: "behind", Name: "Bash", Input: map[string]any{"command": "date"}, Gate: agent.GateAsk, Effect: "effect"},
			},
		}, scripted.Text("started"))}}
		o := &sdk.Options{Runtime: w.rt, Backend: scripted.New(scripted.WithScript(&script), scripted.WithEffect(func(string, string) error {
			log = append(log, "effect")
			return nil
		}))}
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			if in.ToolName == "Bash" {
				w.await(first)
				log = append(log, "hook")
			}
			return sdk.PreToolUseOutput{}, nil
		})}
		o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			if r.ToolName == "Bash" {
				log = append(log, "permission")
			}
			return sdk.Allow(), nil
		}
		for m, err := range sdk.Query(w.Context(), "hi", o) {
			require.NoError(w, err)
			if _, ok := m.(*sdk.ResultMessage); ok && !closed(first) {
				log = append(log, "result")
				close(first)
			}
		}
		assert.Equal(w, []string{"result", "hook", "permission", "effect"}, log)
	})
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestQueryIsForOneLoop(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		q := sdk.Query(w.Context(), "hi", w.options())
		_, err := sdk.Collect(q)
		require.NoError(w, err)
		_, err = sdk.Collect(q)
		require.ErrorIs(w, err, sdk.ErrBusy)
	})
}

func TestStreamOfNothing(t *testing.T) {
	t.Parallel()
	_, err := sdk.Collect(sdk.Stream(t.Context(), nil, nil))
	var config *sdk.ConfigError
	require.ErrorAs(t, err, &config)
	assert.Equal(t, "Prompt", config.Option)
}

func TestBreakingOutClosesTheSession(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/method/return")
	in(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		for m, err := range sdk.Query(ctx, "hi", w.options(turn(scripted.Text("one"), hour, scripted.Text("two")))) {
			require.NoError(w, err)
			if _, ok := m.(*sdk.AssistantMessage); ok {
				cancel() // the close must not depend on it
				break
			}
		}
		cancel()
		assert.Empty(w, open(w.rt))
	})
}

func TestPanicInTheLoopClosesTheSession(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		assert.PanicsWithValue(w, "mine", func() {
			for _, err := range sdk.Query(w.Context(), "hi", w.options(turn(hour))) {
				require.NoError(w, err)
				panic("mine")
			}
		})
		assert.Empty(w, open(w.rt))
	})
}

func TestCloseTimeoutBoundsAnAgentThatWillNotGo(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		if w.sim == nil {
			return // in virtual time only
		}
		o := w.script(scripted.Script{
			Turns:     []scripted.Turn{turn(scripted.Text("one"), hour)},
			Misbehave: scripted.Misbehaviour{TrapTerm: true, IgnoreEOF: true, Ignore: []string{"interrupt"}},
		})
		o.Graces = session.Graces{EOF: time.Hour, Terminate: time.Hour}
		o.InterruptGrace, o.CloseTimeout = time.Hour, 7*time.Second
		var asked time.Time
		for _, err := range sdk.Query(w.Context(), "hi", o) {
			require.NoError(w, err)
			asked = w.sim.Now()
			break
		}
		assert.LessOrEqual(w, w.sim.Now().Sub(asked), 7*time.Second)
		require.NoError(w, w.sim.Run(1_000_000)) // the agent was killed
		assert.Empty(w, open(w.rt))
	})
}

// stream is what next returns, one after another, until io.EOF.
func stream(ctx context.Context, next func(context.Context) (sdk.UserMessage, error)) iter.Seq2[sdk.UserMessage, error] {
	return func(yield func(sdk.UserMessage, error) bool) {
		for {
			m, err := next(ctx)
			if errors.Is(err, io.EOF) || !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		var asked int
		prompts := []string{"one", "two", "three"}
		var results []string
		for m, err := range sdk.Stream(w.Context(), stream(w.Context(), func(context.Context) (sdk.UserMessage, error) {
			if asked == len(prompts) {
				return sdk.UserMessage{}, io.EOF
			}
			asked++
			return sdk.UserText(prompts[asked-1]), nil
		}), w.options()) {
			require.NoError(w, err)
			if r, ok := m.(*sdk.ResultMessage); ok {
				results = append(results, r.Result)
			}
		}
		// The agent may take up what waits in one turn: all was heard, in order.
		said := strings.Join(results, " ")
		for _, p := range prompts {
			at := strings.Index(said, p)
			require.GreaterOrEqual(w, at, 0, "%s is missing in %v", p, results)
			said = said[at:]
		}
	})
}

func TestStreamsThatFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("the queue is gone")
	for name, next := range map[string]func(context.Context) (sdk.UserMessage, error){
		"error": func(context.Context) (sdk.UserMessage, error) { return sdk.UserMessage{}, broken },
		"panic": func(context.Context) (sdk.UserMessage, error) { panic(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				_, err := sdk.Collect(sdk.Stream(w.Context(), stream(w.Context(), next), w.options()))
				require.ErrorIs(w, err, broken)
				assert.Empty(w, open(w.rt))
			})
		})
	}
}

// A wait for the next message of a prompt ends with its context.
func TestStreamsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		ended := make(chan struct{})
		sent := false
		next := func(ctx context.Context) (sdk.UserMessage, error) {
			if !sent {
				sent = true
				return sdk.UserText("hi"), nil
			}
			err := w.rt.Executor().Await(ctx, nil)
			close(ended)
			return sdk.UserMessage{}, err
		}
		for m, err := range sdk.Stream(ctx, stream(ctx, next), w.options()) {
			require.NoError(w, err)
			if _, ok := m.(*sdk.ResultMessage); ok {
				break
			}
		}
		cancel()
		w.await(ended)
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/unstable_v2_prompt")
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("hello")))
		o.Discard = true // Run reads the results all the same
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		assert.Equal(w, "hello", r.Result)
		assert.True(w, o.Discard, "the caller's options were changed")
	})
}

func TestRunThatFails(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/error/returned-an-error-result")
	in(t, func(w *world) {
		yes := true
		failed := &scripted.Result{IsError: &yes, APIErrorStatus: 529, TerminalReason: "api_error"}
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", w.options(turn(scripted.Text("Overloaded"), failed))))
		require.NoError(w, err, "a failed turn is no error of Query")
		assert.Contains(w, kinds(all), "result/success")

		r, err := sdk.Run(w.Context(), "hi", w.options(turn(scripted.Text("Overloaded"), failed)))
		var result *sdk.ResultError
		require.ErrorAs(w, err, &result)
		assert.Same(w, r, result.Result)
		assert.True(w, sdk.Retryable(err))
		require.EqualError(w, err, "the run ended in an error (api_error): Overloaded")

		for _, refused := range []scripted.Turn{
			turn(&scripted.Result{IsError: &yes, APIErrorStatus: 401}),
			turn(&scripted.Message{Fields: map[string]any{
				"type": "assistant", "error": "authentication_failed", "parent_tool_use_id": nil,
				"message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "Not logged in"}}},
			}}, &scripted.Result{IsError: &yes}),
		} {
			_, err = sdk.Run(w.Context(), "hi", w.options(refused))
			var auth *sdk.AuthError
			require.ErrorAs(w, err, &auth)
			require.ErrorAs(w, err, &result)
			assert.False(w, sdk.Retryable(err))
		}
	})
}

func TestReasonsOfNextWeek(t *testing.T) {
	t.Parallel()
	yes := true
	for name, c := range map[string]struct {
		result scripted.Result
		says   string
	}{
		"reason":           {scripted.Result{IsError: &yes, TerminalReason: "out_of_cheese"}, "the run ended in an error (out_of_cheese): hello"},
		"kind":             {scripted.Result{IsError: &yes, Subtype: "error_of_next_week", TerminalReason: "out_of_cheese"}, "the run ended in an error (error_of_next_week)"},
		"reason, no error": {scripted.Result{TerminalReason: "well_done"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				r, err := sdk.Run(w.Context(), "hi", w.options(turn(scripted.Text("hello"), &c.result)))
				assert.Equal(w, c.result.TerminalReason, r.TerminalReason)
				if c.says == "" {
					require.NoError(w, err)
					return
				}
				require.ErrorContains(w, err, c.says)
				require.ErrorAs(w, err, new(*sdk.ResultError))
			})
		})
	}
}

func TestRunSaysWhenALimitEnds(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		yes := true
		resets := w.rt.Clock().Now().Add(90 * time.Minute)
		_, err := sdk.Run(w.Context(), "hi", w.options(turn(
			&scripted.Message{Fields: map[string]any{"type": "rate_limit_event", "rate_limit_info": map[string]any{
				"status": "rejected", "resetsAt": resets.Unix(),
			}}},
			&scripted.Result{IsError: &yes, APIErrorStatus: 429},
		)))
		require.Error(w, err)
		after, ok := sdk.RetryAfter(err)
		assert.True(w, ok)
		assert.InDelta(w, (90 * time.Minute).Seconds(), after.Seconds(), 60)
		assert.True(w, sdk.Retryable(err))
	})
}

func TestRunReturnsTheLastResult(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("started"), &scripted.Shell{Command: "make", Takes: time.Second, Then: scripted.Steps{scripted.Text("made")}}))
		o.AllowedTools = []string{"Bash"}
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		assert.Equal(w, "made", r.Result)
	})
}

type weather struct {
	City    string `json:"city"`
	Celsius int    `json:"celsius"`
}

func TestRunAs(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Structured-Output")
	in(t, func(w *world) {
		v, r, err := sdk.RunAs[weather](w.Context(), "hi", w.options(turn(
			&scripted.Result{Structured: map[string]any{"city": "Bonn", "celsius": 21}})))
		require.NoError(w, err)
		assert.Equal(w, weather{"Bonn", 21}, v)
		assert.NotNil(w, r.StructuredOutput)
	})
}

func TestRunAsAsksAgain(t *testing.T) {
	t.Parallel()
	cold := turn(&scripted.Result{Structured: map[string]any{"city": "Bonn", "celsius": "warm"}})
	right := turn(&scripted.Result{Structured: map[string]any{"city": "Bonn", "celsius": 21}})
	silent := turn(scripted.Text("no idea"))
	quoted := turn(&scripted.Result{Structured: `{"city":"Bonn","celsius":21}`})
	wrapped := turn(&scripted.Result{Structured: map[string]any{"output": map[string]any{"city": "Bonn", "celsius": 21}}})
	for name, c := range map[string]struct {
		turns   []scripted.Turn
		repairs int
		fits    bool
		prompts int
	}{
		"does not fit, then fits":       {[]scripted.Turn{cold, right}, 0, true, 2},
		"none, then fits":               {[]scripted.Turn{silent, right}, 0, true, 2},
		"a text of it, then fits":       {[]scripted.Turn{quoted, right}, 0, true, 2},
		"wrapped, then fits":            {[]scripted.Turn{wrapped, right}, 0, true, 2},
		"one repair is not enough":      {[]scripted.Turn{cold, silent, right}, 0, false, 2},
		"two are":                       {[]scripted.Turn{cold, silent, right}, 2, true, 3},
		"never":                         {[]scripted.Turn{cold, right}, -1, false, 1},
		"a turn that fails is no shape": {[]scripted.Turn{turn(&scripted.Result{Subtype: "error_max_turns"}), right}, 0, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options(c.turns...)
				o.OutputRepairs = c.repairs
				var prompts []string
				o.Hooks = []sdk.Hook{sdk.OnUserPromptSubmit(func(_ context.Context, in *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
					prompts = append(prompts, in.Prompt)
					return sdk.UserPromptSubmitOutput{}, nil
				})}
				v, r, err := sdk.RunAs[weather](w.Context(), "hi", o)
				require.Len(w, prompts, c.prompts)
				if c.fits {
					require.NoError(w, err)
					assert.Equal(w, weather{"Bonn", 21}, v)
					assert.Contains(w, prompts[1], "cannot be used")
					return
				}
				require.Error(w, err)
				require.NotNil(w, r)
				assert.Zero(w, v)
			})
		})
	}
}

func TestRunAsWithoutAnAnswerThatFits(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]scripted.Result{
		"none":       {},
		"wrong type": {Structured: map[string]any{"city": "Bonn", "celsius": "warm"}},
		"missing":    {Structured: map[string]any{"city": "Bonn"}},
		"gave up":    {Subtype: "error_max_structured_output_retries"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				v, r, err := sdk.RunAs[weather](w.Context(), "hi", w.options(turn(&result), turn(&result)))
				var shape *session.StructuredOutputError
				require.ErrorAs(w, err, &shape)
				assert.Same(w, r, shape.Result)
				assert.Zero(w, v)
				assert.True(w, sdk.Retryable(err))
			})
		})
	}
}

func TestRunAsFailsBeforeItStarts(t *testing.T) {
	t.Parallel()
	var config *sdk.ConfigError
	_, _, err := sdk.RunAs[[]string](t.Context(), "hi", &sdk.Options{Backend: scripted.New()})
	require.ErrorAs(t, err, &config)
	_, _, err = sdk.RunAs[weather](t.Context(), "hi", &sdk.Options{Backend: scripted.New(), OutputFormat: sdk.JSONSchema([]byte("{}"))})
	require.ErrorAs(t, err, &config)
	assert.Equal(t, "OutputFormat", config.Option)
}

func TestAgentThatDies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script scripted.Script
		during string
	}{
		"exits 0 in a turn": {scripted.Script{Turns: []scripted.Turn{turn(scripted.Text("one"), &scripted.Exit{})}}, "a turn"},
		"is killed":         {scripted.Script{Turns: []scripted.Turn{turn(&scripted.Exit{Signal: "KILL"})}}, "a turn"},
		"exits at once":     {scripted.Script{Misbehave: scripted.Misbehaviour{Die: &scripted.Die{At: agent.BeforeInitResponse, Code: 3}}}, "initialize"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				all, err := sdk.Collect(sdk.Query(w.Context(), "hi", w.script(tc.script)))
				var exit *sdk.ExitError
				require.ErrorAs(w, err, &exit)
				assert.Equal(w, tc.during, exit.During)
				assert.Equal(w, tc.during != "initialize", sdk.Retryable(err))
				if name == "exits 0 in a turn" {
					assert.Equal(w, []string{"init", "assistant"}, kinds(all), "what came before the end is lost")
				}
			})
		})
	}
}

func TestExpiredLoginOfQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/error/exit-code-41", "qoder/function/accessToken")
	in(t, func(w *world) {
		o := w.script(scripted.Script{Dialect: agent.Qoder, Turns: []scripted.Turn{turn(&scripted.Exit{Code: 41})}})
		o.Backend = sdk.InMemory(o.Backend.(*scripted.Agent), agent.Qoder)
		o.Auth = sdk.AccessToken("secret")
		_, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		var auth *sdk.AuthError
		require.ErrorAs(w, err, &auth)
		assert.Equal(w, "qoder", auth.Backend)
		assert.NotContains(w, err.Error(), "secret")
	})
}

func TestTexts(t *testing.T) {
	t.Parallel()
	pieces := []string{"on", "e tw", "o"}
	for name, partial := range map[string]bool{"pieces": true, "whole messages": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options(turn(&scripted.Partial{Chunks: pieces}, scripted.Text(" three")))
				o.IncludePartialMessages = partial
				var got []string
				for text, err := range sdk.Texts(sdk.Query(w.Context(), "hi", o)) {
					require.NoError(w, err)
					got = append(got, text)
				}
				assert.Equal(w, "one two three", strings.Join(got, ""))
				if partial {
					assert.Equal(w, pieces, got[:3])
				}
			})
		})
	}
}

func TestTextsPassErrorsOnAndBreakOff(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		var last error
		for _, err := range sdk.Texts(sdk.Query(w.Context(), "hi", w.options(turn(scripted.Text("one"), &scripted.Exit{})))) {
			last = err
		}
		var exit *sdk.ExitError
		require.ErrorAs(w, last, &exit)
		for _, err := range sdk.Texts(sdk.Query(w.Context(), "hi", w.options(turn(scripted.Text("one"), hour)))) {
			require.NoError(w, err)
			break
		}
		assert.Empty(w, open(w.rt))
	})
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("hello")))
		o.Discard = true
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		require.NoError(w, err)
		assert.Empty(w, all)
	})
}

func TestShutdownEndsAQuery(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"in a turn": false, "between prompts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				var last error
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				messages := func(yield func(sdk.UserMessage, error) bool) {
					if yield(sdk.UserText("hi"), nil) && waits {
						yield(sdk.UserMessage{}, w.rt.Executor().Await(ctx, nil))
					}
				}
				for m, err := range sdk.Stream(w.Context(), messages, w.options(turn(scripted.Text("one"), hour))) {
					last = err
					if _, ok := m.(*sdk.AssistantMessage); ok {
						w.rt.Executor().Go(func() { assert.NoError(w, w.rt.Shutdown(context.Background())) })
					}
				}
				require.ErrorIs(w, last, sdk.ErrClosed)
				_, err := sdk.Run(w.Context(), "hi", w.options())
				require.ErrorIs(w, err, session.ErrShutdown)
			})
		})
	}
}
