package modeltest_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// faces are the server's two APIs.
func faces(s *modeltest.Server, c model.Config) map[string]model.Model {
	return map[string]model.Model{"anthropic": s.Anthropic(c), "openai": s.OpenAI(c)}
}

// ask makes a request and returns the blocks, the last event and the error.
func ask(ctx context.Context, m model.Model, messages ...model.Message) ([]model.Block, model.Event, error) {
	r := &model.Request{Model: "m", User: "me", Cache: true, Tools: m.Codec().Tools([]model.Tool{{Name: "Read"}})}
	for i := range messages {
		r.Messages = append(r.Messages, m.Codec().Message(&messages[i]))
	}
	var blocks []model.Block
	var last model.Event
	err := m.Stream(ctx, r, func(e *model.Event) bool {
		if e.Kind == model.Done {
			blocks = append(blocks, *e.Block)
		}
		last = *e
		return true
	})
	return blocks, last, err
}

func user(blocks ...model.Block) model.Message {
	return model.Message{Role: model.User, Blocks: blocks}
}

// The script's answer arrives, and the request is read, by both APIs.
func TestWhatIsSaidArrives(t *testing.T) {
	t.Parallel()
	bad := json.RawMessage(`{"a":`)
	s := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		a := modeltest.Say(modeltest.Thinking("hm, well"), modeltest.Text("I look: "+r.Prompt()), modeltest.Call("Read", map[string]any{"n": 1}), modeltest.Call("Read", bad))
		a.Usage = model.Usage{Input: 7, Output: 3, CacheRead: 2}
		return a
	}}
	for api, m := range faces(s, model.Config{Key: func(context.Context) (string, error) { return "secret", nil }}) {
		blocks, last, err := ask(t.Context(), m,
			user(modeltest.Text("go")),
			model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.ToolUse, ID: "c1", Name: "Read", Input: json.RawMessage(`{}`)}}},
			user(model.Block{Kind: model.ToolResult, ID: "c1", Text: "one"}, modeltest.Text("on")))
		require.NoError(t, err, api)
		require.Len(t, blocks, 4, api)
		assert.Equal(t, "hm, well", blocks[0].Text, api)
		assert.Equal(t, "I look: on", blocks[1].Text, api)
		assert.JSONEq(t, `{"n":1}`, string(blocks[2].Input), api)
		assert.NotEqual(t, blocks[2].ID, blocks[3].ID, api)
		assert.Equal(t, string(bad), blocks[3].BadInput, api)
		assert.Equal(t, "tool_use", last.StopReason, api)
		u := last.Usage
		assert.Equal(t, [3]int{7, 3, 2}, [3]int{u.Input, u.Output, u.CacheRead}, api)
		all := s.Requests()
		r := all[len(all)-1]
		assert.Equal(t, api, r.API)
		assert.Equal(t, "me", r.User)
		assert.Equal(t, []string{"Read"}, r.Tools)
		require.Len(t, r.Results(), 1, api)
		assert.Equal(t, "one", r.Results()[0].Text)
		_, known := r.Result("c1")
		assert.True(t, known)
		_, known = r.Result("c2")
		assert.False(t, known)
		assert.Zero(t, s.Open())
	}
}

// Each fault is what its comment says, for a client of either API.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault modeltest.Fault
		class model.Class // "": the answer is whole
		chat  model.Class // of chat completions, if it differs; "-": the answer is whole
	}{
		"refused":   {modeltest.Fault{NoConnection: true}, model.Network, ""},
		"429":       {modeltest.Fault{Status: 429, RetryAfter: "7"}, model.Rate, ""},
		"529":       {modeltest.Fault{Status: 529}, model.Overload, ""},
		"500":       {modeltest.Fault{Status: 500}, model.Server, ""},
		"401":       {modeltest.Fault{Status: 401}, model.Auth, ""},
		"400":       {modeltest.Fault{Status: 400, Message: "prompt is too long"}, model.TooLong, ""},
		"a page":    {modeltest.Fault{Page: "<html>"}, model.Broken, ""},
		"broken":    {modeltest.Fault{BreakAt: 300}, model.Network, ""},
		"ended":     {modeltest.Fault{EndAt: 300}, model.Network, ""},
		"silent":    {modeltest.Fault{SilentAt: 300}, model.Network, ""},
		"slow":      {modeltest.Fault{Delay: time.Minute, Pause: time.Minute, Piece: 7}, "", ""},
		"garbage":   {modeltest.Fault{Garbage: true}, model.Broken, ""},
		"error":     {modeltest.Fault{Error: true}, model.Overload, ""},
		"swapped":   {modeltest.Fault{Swapped: true}, "", ""}, // the ping comes first; each delta before its block is an error
		"twice":     {modeltest.Fault{Twice: true}, model.Broken, "-"},
		"empty":     {modeltest.Fault{Empty: true}, "", ""},
		"cut short": {modeltest.Fault{Stop: "max_tokens"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &modeltest.Server{
					Script: func(*modeltest.Request) *modeltest.Answer {
						return modeltest.Say(modeltest.Text("some text that is long enough"), modeltest.Call("Read", map[string]any{"file_path": "a.txt"}))
					},
					Fault: func(*modeltest.Request) *modeltest.Fault { return &c.fault },
				}
				for api, m := range faces(s, model.Config{}) {
					blocks, last, err := ask(t.Context(), m, user(modeltest.Text("go")))
					want := c.class
					if api == "openai" && c.chat != "" {
						want = c.chat
					}
					assert.Zero(t, s.Open(), api)
					if name == "swapped" {
						if err != nil {
							require.ErrorContains(t, err, "broken", api)
						}
						continue
					}
					if want == "" || want == "-" {
						require.NoError(t, err, api)
						assert.Len(t, blocks, map[bool]int{true: 0, false: 2}[c.fault.Empty], api)
						if c.fault.Stop != "" {
							assert.Equal(t, c.fault.Stop, last.StopReason, api)
						}
						continue
					}
					var e *model.Error
					require.ErrorAs(t, err, &e, api)
					assert.Equal(t, want, e.Class, "%s: %v", api, err)
					if c.fault.RetryAfter != "" {
						assert.Equal(t, 7*time.Second, e.RetryAfter, api)
					}
				}
			})
		})
	}
}

// Calls may share an id, in an answer and with one before.
func TestDoubledIDs(t *testing.T) {
	t.Parallel()
	var f modeltest.Fault
	s := &modeltest.Server{
		Script: func(*modeltest.Request) *modeltest.Answer {
			return modeltest.Say(modeltest.Call("Read", map[string]any{}), modeltest.Call("Read", map[string]any{}))
		},
		Fault: func(*modeltest.Request) *modeltest.Fault { return &f },
	}
	m := s.Anthropic(model.Config{})
	f = modeltest.Fault{SameID: true}
	blocks, _, err := ask(t.Context(), m, user(modeltest.Text("go")))
	require.NoError(t, err)
	assert.Equal(t, blocks[0].ID, blocks[1].ID)
	f = modeltest.Fault{OldID: true}
	blocks, _, err = ask(t.Context(), m, user(modeltest.Text("go")), model.Message{Role: model.Assistant, Blocks: blocks[:1]}, user(model.Block{Kind: model.ToolResult, ID: blocks[0].ID}))
	require.NoError(t, err)
	assert.Equal(t, s.Requests()[1].Messages[1].Blocks[0].ID, blocks[0].ID)
}

// A request ends with its context, and its answer is closed.
func TestARequestThatIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &modeltest.Server{Fault: func(*modeltest.Request) *modeltest.Fault { return &modeltest.Fault{SilentAt: 10} }}
		for api, m := range faces(s, model.Config{}) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _, err := ask(ctx, m, user(modeltest.Text("go")))
			require.ErrorIs(t, err, context.DeadlineExceeded, api)
			cancel()
			assert.Zero(t, s.Open(), api)
		}
	})
}
