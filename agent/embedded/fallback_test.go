package embedded_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// failing is an endpoint's refusal.
func failing(class model.Class, status int) reply {
	return func(context.Context, func(*model.Event) bool) error {
		return &model.Error{Class: class, Status: status, RetryAfter: -1, Message: "no"}
	}
}

// A turn goes through the models of the option, and the next one begins with the session's own.
func TestFallbackModels(t *testing.T) {
	t.Parallel()
	quota, server, none := failing(model.Quota, 402), failing(model.Server, 500), failing(model.Invalid, 404)
	for name, c := range map[string]struct {
		answers []reply
		fails   bool
		asked   string
	}{
		"a quota, and the next fails, too":   {[]reply{quota, server, saying("x")}, false, "m b c"},
		"no such model":                      {[]reply{none, saying("x")}, false, "m b"},
		"too busy for requests":              {[]reply{failing(model.Overload, 503), saying("x")}, false, "m b"},
		"it stays for the turn":              {[]reply{server, calling("c1", "Bash", `{"command":"true"}`), saying("x")}, false, "m b b"},
		"no more models":                     {[]reply{quota, quota, quota}, true, "m b c"},
		"a key that is wrong is no failure":  {[]reply{failing(model.Auth, 403)}, true, "m"},
		"a request that is wrong is no such": {[]reply{failing(model.Invalid, 418)}, true, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := plays(t, messagesAPI(), append(c.answers, saying("next"))...)
			o.FallbackModel = " b,, c"
			client := open(t, o)
			assert.Equal(t, c.fails, ask(t, client, mine).IsError)
			assert.Equal(t, c.asked, strings.Join(p.models(), " "))
			r := ask(t, client, "again")
			assert.Equal(t, "next", r.Result)
			assert.Equal(t, c.asked+" m", strings.Join(p.models(), " "), "the next turn")
		})
	}
}

// A frame reports each change to the host, and why.
func TestAFallbackModelIsSaid(t *testing.T) {
	t.Parallel()
	busy := failing(model.Overload, 529)
	for name, c := range map[string]struct {
		answers []reply
		want    string
	}{
		"overload":      {[]reply{busy, busy, busy}, `overloaded: Switched to Haiku 5.5 due to high demand for Opus 5.5`},
		"a server":      {[]reply{failing(model.Server, 500)}, `server_error: Switched to Haiku 5.5 due to high demand for Opus 5.5`},
		"no such model": {[]reply{failing(model.Invalid, 404)}, `model_not_found: Switched to Haiku 5.5 because Opus 5.5 is not available`},
		"a quota":       {[]reply{failing(model.Quota, 402)}, `quota: Switched to Haiku 5.5 because the quota for Opus 5.5 is used up`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, o := plays(t, messagesAPI(), append(c.answers, failing(model.Server, 500), saying("x"))...)
			o.Model, o.FallbackModel = "claude-opus-5-5", "claude-haiku-5-5-20260101, local"
			o.Env = map[string]string{"CLAUDE_CODE_MAX_RETRIES": "5"}
			m := &team{}
			client := m.open(t, o)
			require.Equal(t, "x", m.ask(t, client, mine).Result)
			var said []string
			for _, line := range m.frames("model_fallback") {
				var f struct {
					Content, Trigger string
					From             string `json:"original_model"`
					To               string `json:"fallback_model"`
				}
				require.NoError(t, json.Unmarshal([]byte(line), &f))
				said = append(said, f.From+" "+f.To+" "+f.Trigger+": "+f.Content)
			}
			assert.Equal(t, []string{
				"claude-opus-5-5 claude-haiku-5-5-20260101 " + c.want,
				"claude-haiku-5-5-20260101 local server_error: Switched to local due to high demand for Haiku 5.5",
			}, said)
		})
	}
}

// The tokens of a fallback model are counted for it. A limit of the cost needs its price.
func TestWhatAFallbackModelCosts(t *testing.T) {
	t.Parallel()
	_, o := plays(t, messagesAPI(), failing(model.Server, 500), saying("x"))
	o.FallbackModel = "claude-haiku-4-5"
	r := ask(t, open(t, o), mine)
	require.Contains(t, r.ModelUsage, "claude-haiku-4-5")
	assert.EqualValues(t, 5, r.ModelUsage["claude-haiku-4-5"].OutputTokens)
	assert.NotContains(t, r.ModelUsage, "m")

	o.FallbackModel, o.MaxBudgetUSD, o.Model = "claude-haiku-4-5,x", sdk.Some(1.0), "claude-sonnet-4-5"
	for option, change := range map[string]func(){"MaxBudgetUSD": func() {}, "FallbackModel": func() { o.Model = "x" }} {
		change()
		_, err := connect(t, o)
		var e *sdk.ConfigError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, option, e.Option)
		o.Model = "claude-sonnet-4-5"
	}
}

// An answer that comes in one piece, since no stream had begun, says nothing of the time of its request.
func TestTimesOfAnAnswerInOnePiece(t *testing.T) {
	t.Parallel()
	none := failing(model.Invalid, 404)
	_, o := plays(t, messagesAPI(), none, none, saying("x"), saying("y"))
	o.FallbackModel = "b"
	c := open(t, o)
	first, second := ask(t, c, mine), ask(t, c, "again")
	require.Equal(t, "x", first.Result)
	for _, field := range []string{"first_content_frame_ms", "ttft_stream_ms", "time_to_request_ms", "request_sent_wall_ms", "first_request_input_tokens"} {
		assert.NotContains(t, string(first.Raw()), field)
		assert.Contains(t, string(second.Raw()), field)
	}
	assert.Contains(t, string(first.Raw()), `"ttft_ms"`)
}

// If its call is answered by a stream, that one says the times of the turn.
func TestTimesOfAStreamBehindAnAnswerInOnePiece(t *testing.T) {
	t.Parallel()
	_, o := plays(t, messagesAPI(), failing(model.Invalid, 404), calling("c", "Read", `{"file_path":"a"}`), saying("x"))
	r := ask(t, open(t, o), mine)
	require.Equal(t, "x", r.Result)
	for _, field := range []string{"first_content_frame_ms", "ttft_stream_ms", "time_to_request_ms", "request_sent_wall_ms", "first_request_input_tokens"} {
		assert.Contains(t, string(r.Raw()), field)
	}
}

// A stream that the endpoint ends as a wrong request has used nothing; one that fails has.
func TestUsageOfAStreamThatIsRefused(t *testing.T) {
	t.Parallel()
	for class, used := range map[model.Class]int64{model.Invalid: 0, model.Server: 10} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			_, o := plays(t, messagesAPI(), func(_ context.Context, emit func(*model.Event) bool) error {
				emit(&model.Event{Kind: model.Start, ID: "a", Usage: model.Usage{Input: 10, Output: 1}})
				emit(&model.Event{Kind: model.Cut, Block: &model.Block{Kind: model.Text, Text: "Half"}})
				return &model.Error{Class: class, Type: "x", RetryAfter: -1, Message: "bad", Started: true, Final: true}
			})
			r := ask(t, open(t, o), mine)
			assert.True(t, r.IsError)
			assert.Equal(t, used, r.Usage.InputTokens)
		})
	}
}
