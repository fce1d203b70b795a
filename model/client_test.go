package model_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
)

func all(*model.Event) bool { return true }

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		header     http.Header
		body, text string
		class      model.Class
		after      time.Duration
		temporary  bool
	}{
		"529":                 {529, http.Header{"Retry-After": {"3"}}, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, "529 busy", model.Overload, 3 * time.Second, true},
		"429":                 {429, http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"1"}}, `{"error":{"type":"rate_limit_error","message":"slow"}}`, "429 slow", model.Rate, 250 * time.Millisecond, true},
		"429, a date":         {429, http.Header{"Retry-After": {"Thu, 26 Nov 2026 10:00:30 GMT"}, "Date": {"Thu, 26 Nov 2026 10:00:00 GMT"}}, ``, "429 Too Many Requests", model.Rate, 30 * time.Second, true},
		"429, the money":      {429, nil, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, "quota", model.Quota, -1, false},
		"402":                 {402, nil, `{"error":{"message":"pay","code":402}}`, "402 pay", model.Quota, -1, false},
		"400, the money":      {400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, "credit", model.Quota, -1, false},
		"401":                 {401, nil, `{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}`, "401 no", model.Auth, -1, false},
		"403, HTML":           {403, nil, `<html>no</html>`, "<html>no</html>", model.Auth, -1, false},
		"404":                 {404, nil, `{"error":{"message":"no such model","code":"model_not_found","type":"invalid_request_error"}}`, "no such model", model.Invalid, -1, false},
		"400, too long":       {400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 5 maximum"}}`, "too long", model.TooLong, -1, false},
		"400, too long, chat": {400, nil, `{"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"x"}}`, "x", model.TooLong, -1, false},
		"400, Ollama":         {400, nil, `{"error":{"message":"m does not support tools","type":"api_error","param":null,"code":null}}`, "400 m does not support tools", model.Invalid, -1, false},
		"400, llama.cpp":      {400, nil, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, "context", model.TooLong, -1, false},
		"413":                 {413, nil, ``, "413", model.TooLong, -1, false},
		"408":                 {408, nil, ``, "408", model.Invalid, -1, true},
		"500":                 {500, nil, `{"type":"error","error":{"type":"api_error","message":"oops"}}`, "500 oops", model.Server, -1, true},
		"a list":              {400, nil, `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, "400 bad", model.Invalid, -1, false},
		"Google's 429":        {429, nil, `[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`, "slow", model.Rate, -1, true},
		"a detail":            {422, nil, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, "field required", model.Invalid, -1, false},
		"a redirect":          {308, http.Header{"Location": {"https://elsewhere.example/v1"}}, ``, "redirects to https://elsewhere.example/v1", model.Invalid, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.header == nil {
				c.header = http.Header{}
			}
			c.header.Set("Request-Id", "req_9")
			for _, api := range []string{"anthropic", "openai"} {
				err := open(api, answering(c.status, c.header, []byte(c.body), 100), model.Quirks{}).Stream(t.Context(), &model.Request{}, all)
				var e *model.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, c.class, e.Class, e.Error())
				assert.Equal(t, c.status, e.Status)
				assert.Contains(t, e.Error(), c.text)
				assert.Equal(t, c.after, e.RetryAfter)
				assert.Equal(t, c.temporary, e.Temporary())
				assert.Equal(t, "req_9", e.RequestID)
				assert.False(t, e.Started)
			}
		})
	}
}

func TestAnAnswerThatIsNoStream(t *testing.T) {
	t.Parallel()
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	err := open("openai", answering(200, html, []byte("<html>"), 10), model.Quirks{}).Stream(t.Context(), &model.Request{}, all)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, model.Broken, e.Class)
	assert.Contains(t, err.Error(), "text/html")
	assert.Contains(t, err.Error(), "http://host.example/v1/chat/completions")

	for api, body := range map[string]string{"openai": `{"choices":[]}`, "anthropic": `{"type":"other"}`} {
		err := open(api, answering(200, isJSON(), []byte(body), 10), model.Quirks{}).Stream(t.Context(), &model.Request{}, all)
		require.ErrorAs(t, err, &e, api)
		assert.Equal(t, model.Broken, e.Class, api)
	}
}

// A key is in the header of its request and nowhere else: not in an error that repeats it,
// and not at another host.
func TestTheKey(t *testing.T) {
	t.Parallel()
	const key = "sk-very-secret"
	var stolen sync.Map
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen.Store("came", r.Header) }))
	t.Cleanup(thief.Close)
	for name, want := range map[string]string{"X-Api-Key": key, "Authorization": "Bearer " + key, "Api-Key": key} {
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get(name)
			if r.URL.Path == "/redirect/messages" || r.URL.Path == "/redirect/chat/completions" {
				http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
				return
			}
			http.Error(w, `{"error":{"message":"bad key `+got+`","type":"x `+key+`"}}`, http.StatusUnauthorized)
		}))
		t.Cleanup(server.Close)
		for _, path := range []string{"", "/redirect"} {
			c := model.Config{URL: server.URL + path, Key: func(context.Context) (string, error) { return key, nil }}
			var m model.Model = model.NewOpenAI(model.OpenAIConfig{Config: c, Quirks: model.Quirks{APIKeyHeader: map[string]string{"Api-Key": "api-key"}[name]}})
			if name == "X-Api-Key" {
				m = model.NewAnthropic(model.AnthropicConfig{Config: c})
			}
			err := m.Stream(t.Context(), &model.Request{Model: "m"}, all)
			require.Error(t, err)
			assert.Equal(t, want, got)
			assert.NotContains(t, err.Error(), key)
			var e *model.Error
			require.ErrorAs(t, err, &e)
			assert.NotContains(t, e.Type+e.Message, key)
		}
	}
	_, came := stolen.Load("came")
	assert.False(t, came)

	wrong := errors.New("the vault is closed")
	m := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{Key: func(context.Context) (string, error) { return "", wrong }}})
	err := m.Stream(t.Context(), &model.Request{}, all)
	require.ErrorIs(t, err, wrong)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, model.Auth, e.Class)

	down := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://host.example", Client: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("dial with " + key)
	})}, Key: func(context.Context) (string, error) { return key, nil }}})
	err = down.Stream(t.Context(), &model.Request{}, all)
	require.ErrorAs(t, err, &e)
	assert.Equal(t, model.Network, e.Class)
	assert.NotContains(t, err.Error(), key)
}

// hands is a clock whose timers the test fires.
type hands struct {
	mu     sync.Mutex
	timers []func()
}

func (h *hands) afterFunc(_ time.Duration, fn func()) func() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timers = append(h.timers, fn)
	return func() bool { return true }
}

// tick fires the timer that was made last.
func (h *hands) tick() {
	h.mu.Lock()
	fn := h.timers[len(h.timers)-1]
	h.mu.Unlock()
	fn()
}

// waits is a body that has one event, then nothing until it is closed.
type waits struct {
	first  io.Reader
	read   chan struct{} // a value for each read that waits
	closed chan struct{}
}

func (w *waits) Read(p []byte) (int, error) {
	if n, err := w.first.Read(p); err == nil {
		return n, nil
	}
	w.read <- struct{}{}
	<-w.closed
	return 0, io.ErrClosedPipe
}

func (w *waits) Close() error { return nil }

// silent is a client of an endpoint that says one thing, and then nothing.
func silent(h *hands, first string) (*model.Client, *waits) {
	body := &waits{first: strings.NewReader(first), read: make(chan struct{}), closed: make(chan struct{})}
	return model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: "http://host.example", AfterFunc: h.afterFunc, Client: &http.Client{
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			context.AfterFunc(r.Context(), func() { close(body.closed) })
			return &http.Response{StatusCode: http.StatusOK, Header: isStream(), Body: body}, nil
		}),
	}}}), body
}

func TestASilentEndpoint(t *testing.T) {
	t.Parallel()
	var h hands
	m, body := silent(&h, string(sse(begin)))
	done := make(chan error, 1)
	var inEmit sync.WaitGroup
	inEmit.Add(1)
	go func() {
		done <- m.Stream(t.Context(), &model.Request{}, func(*model.Event) bool {
			for range 20 { // the receiver is slow: that is no silence
				h.tick()
			}
			return true
		})
	}()
	<-body.read
	for range 3 {
		h.tick()
	}
	select {
	case err := <-done:
		require.Fail(t, "it has ended too early", "%v", err)
	default:
	}
	h.tick()
	h.tick() // the first may only have seen that the receiver works no more
	err := <-done
	require.ErrorIs(t, err, model.ErrSilent)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, model.Network, e.Class)
	assert.True(t, e.Started)
	assert.True(t, e.Temporary())
}

func TestTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	var h hands
	m, body := silent(&h, string(sse(begin)))
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-body.read
		cancel(enough)
	}()
	err := m.Stream(ctx, &model.Request{}, all)
	assert.Equal(t, enough, err)

	ctx, cancel = context.WithCancelCause(t.Context())
	m = model.NewOpenAI(model.OpenAIConfig{Config: model.Config{Key: func(ctx context.Context) (string, error) {
		cancel(enough)
		return "", ctx.Err()
	}}})
	assert.Equal(t, enough, m.Stream(ctx, &model.Request{}, all), "while the key is fetched")
}

// spaces is a body that sends white space while the time passes, and then an answer.
type spaces struct {
	*hands
	ctx    context.Context
	left   int
	answer io.Reader
}

func (s *spaces) Read(p []byte) (int, error) {
	for range 3 {
		s.tick()
	}
	if s.left--; s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	if s.left >= 0 {
		return copy(p, "\n"), nil
	}
	return s.answer.Read(p)
}

// White space in front of an answer in one piece keeps the connection alive: the endpoint is not silent.
func TestAnAnswerThatIsPrecededBySpaces(t *testing.T) {
	t.Parallel()
	var h hands
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body := &spaces{&h, r.Context(), 10, strings.NewReader(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)}
		return &http.Response{StatusCode: http.StatusOK, Header: isJSON(), Body: io.NopCloser(body)}, nil
	})}
	m := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://host.example", AfterFunc: h.afterFunc, Client: client}})
	require.NoError(t, m.Stream(t.Context(), &model.Request{}, all))
}

func TestAReceiverThatStops(t *testing.T) {
	t.Parallel()
	var h hands
	m, _ := silent(&h, string(sse(begin)))
	assert.Equal(t, model.ErrStopped, m.Stream(t.Context(), &model.Request{}, func(*model.Event) bool { return false }))
}

// The scripted endpoint that the command-line agents are tested against, over HTTP.
func TestScriptedEndpoint(t *testing.T) {
	t.Parallel()
	server, err := modelapi.Start(modelapi.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1"}})
	ask := func(name string) ([]*model.Event, error) {
		var events []*model.Event
		err := m.Stream(t.Context(), &model.Request{Model: "m", Messages: [][]byte{
			m.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: "[[scn:" + name + "]]"}}}),
		}}, func(e *model.Event) bool {
			events = append(events, e)
			return true
		})
		return events, err
	}
	server.Script("mine", func(modelapi.Call) modelapi.Reply {
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Thinking("hm"), modelapi.Text("hi\nthere"), modelapi.ToolUse("Read", map[string]any{"file_path": "/a"})}}
	})
	events, err := ask("mine")
	require.NoError(t, err)
	got := blocks(t, events)
	require.Len(t, got, 3)
	assert.Equal(t, "hm", got[0].Text)
	assert.NotEmpty(t, got[0].Signature)
	assert.Equal(t, "hi\nthere", got[1].Text)
	assert.JSONEq(t, `{"file_path":"/a"}`, string(got[2].Input))
	stop := events[len(events)-1]
	assert.Equal(t, "tool_use", stop.StopReason)
	assert.Equal(t, 10, stop.Usage.Input)
	assert.Equal(t, 5, stop.Usage.Output)
	request := server.Requests()[0]
	assert.Equal(t, "m", request.Model)
	assert.True(t, request.Stream)
}

func TestAnAnswerInOnePiece(t *testing.T) {
	t.Parallel()
	for api, answer := range map[string]string{
		"anthropic": `{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi."},{"type":"tool_use","id":"c1","name":"Read","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}`,
		"openai":    `{"id":"m1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"Hi.","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"a\":1}"}}]}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`,
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(req.Body)
				assert.NoError(t, err)
				assert.NotContains(t, string(body), `"stream`, "neither a stream nor options of one")
				assert.Equal(t, "application/json", req.Header.Get("Accept"))
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
			})}
			m := open(api, client, model.Quirks{})
			var kinds []model.Kind
			var blocks []*model.Block
			require.NoError(t, m.Stream(t.Context(), &model.Request{Model: "m", Whole: true, Raw: true, Messages: [][]byte{m.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: "go"}}})}}, func(e *model.Event) bool {
				if e.Kind == model.Delta {
					return true // those that chat completions are said with
				}
				if kinds = append(kinds, e.Kind); e.Kind == model.Done {
					blocks = append(blocks, e.Block)
				}
				if e.Kind == model.Stop {
					assert.Equal(t, "tool_use", e.StopReason)
					assert.Equal(t, 3, e.Usage.Input)
				}
				return true
			}))
			assert.Equal(t, []model.Kind{model.Start, model.Done, model.Done, model.Stop}, kinds)
			require.Len(t, blocks, 2)
			assert.Equal(t, "Hi.", blocks[0].Text)
			assert.JSONEq(t, `{"a":1}`, string(blocks[1].Input))
		})
	}
}
