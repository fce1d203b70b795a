package modelapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

func start(t *testing.T, c modelapi.Config) *modelapi.Server {
	t.Helper()
	s, err := modelapi.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

func blocks(texts ...string) (out []map[string]string) {
	for _, x := range texts {
		out = append(out, map[string]string{"type": "text", "text": x})
	}
	return out
}

func user(text string) message { return message{"user", text} }

type answer struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Stop    string `json:"stop_reason"`
	Content []struct {
		Type, Text, Thinking, Name, ID string
		Input                          json.RawMessage
	} `json:"content"`
}

func post(t *testing.T, s *modelapi.Server, path string, body any) *http.Response {
	t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(string(raw)))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func ask(t *testing.T, s *modelapi.Server, tools []string, messages ...message) answer {
	t.Helper()
	named := []map[string]string{}
	for _, name := range tools {
		named = append(named, map[string]string{"name": name})
	}
	resp := post(t, s, "/v1/messages", map[string]any{"model": "m-1", "tools": named, "messages": messages})
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var a answer
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&a))
	return a
}

type event struct {
	Name string
	Data struct {
		Type  string
		Index int
		Delta struct {
			Type, Text, Thinking string
			PartialJSON          string `json:"partial_json"`
			StopReason           string `json:"stop_reason"`
		}
	}
}

// events reads server-sent events until the stream ends, well or not.
func events(t *testing.T, r io.Reader) ([]event, error) {
	t.Helper()
	var all []event
	scan := bufio.NewScanner(r)
	for scan.Scan() {
		key, value, _ := strings.Cut(scan.Text(), ": ")
		switch key {
		case "event":
			all = append(all, event{Name: value})
		case "data":
			require.NotEmpty(t, all)
			require.NoError(t, json.Unmarshal([]byte(value), &all[len(all)-1].Data))
		default:
			require.Empty(t, scan.Text())
		}
	}
	return all, scan.Err()
}

func names(all []event) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.Name)
	}
	return out
}

func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})

	a := ask(t, s, nil, user("do it [[scn:bash]]"))
	assert.Equal(t, "m-1", a.Model)
	assert.Equal(t, "tool_use", a.Stop)
	require.Len(t, a.Content, 2)
	assert.Equal(t, "I will run a command.", a.Content[0].Text)
	assert.Equal(t, "Bash", a.Content[1].Name)
	assert.NotEmpty(t, a.Content[1].ID)
	assert.JSONEq(t, `{"command":"echo hi-from-bash","description":"say hi"}`, string(a.Content[1].Input))
}

func TestStepComesFromTheRequestAlone(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	said := message{"assistant", "ok"}
	for name, tc := range map[string]struct {
		messages []message
		want     string
	}{
		"no marker":                  {[]message{user("hello")}, "No marker; a plain scripted answer."},
		"first step":                 {[]message{user("[[scn:bgbash]] x")}, ""},
		"second step":                {[]message{user("[[scn:bgbash]]"), said, user("r")}, "Background started."},
		"assistants in a row":        {[]message{user("[[scn:bgbash]]"), said, said, user("r")}, "Background started."},
		"past the end":               {[]message{user("[[scn:text]]"), said, user("r")}, "Script over (text step 1)."},
		"last marker wins":           {[]message{user("[[scn:bash]]"), said, user("[[scn:text]]")}, "Hello from the scripted model."},
		"last in one message":        {[]message{{"user", blocks("[[scn:bash]]", "a [[scn:bash]] b [[scn:text]]")}}, "Hello from the scripted model."},
		"assistant's do not count":   {[]message{user("[[scn:bgbash]]"), {"assistant", "[[scn:text]]"}, user("r")}, "Background started."},
		"argument":                   {[]message{user("[[scn:echo two words]]")}, "two words"},
		"unknown scenario":           {[]message{user("[[scn:nosuch]]")}, "No scenario is named nosuch."},
		"tool results are not texts": {[]message{user("[[scn:bgbash]]"), said, {"user", []map[string]string{{"type": "tool_result", "text": "[[scn:text]]"}}}}, "Background started."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, s, nil, tc.messages...)
			assert.Equal(t, tc.want, a.Content[0].Text)
		})
	}
}

func TestStreamedAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	s.Script("mixed", modelapi.Say(
		modelapi.Thinking("hm"), modelapi.Text("añb"), modelapi.ToolUse("Read", modelapi.Args{"file_path": "x"})))

	resp := post(t, s, "/v1/messages?beta=true", map[string]any{"stream": true, "messages": []message{user("[[scn:mixed]]")}})
	assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	all, err := events(t, resp.Body)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"message_start",
		"content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop",
		"message_delta", "message_stop",
	}, names(all))
	for _, e := range all {
		assert.Equal(t, e.Name, e.Data.Type)
	}
	assert.Equal(t, "hm", all[2].Data.Delta.Thinking)
	assert.Equal(t, "añ", all[6].Data.Delta.Text, "a rune is never cut")
	assert.Equal(t, "b", all[7].Data.Delta.Text)
	assert.JSONEq(t, `{"file_path":"x"}`, all[10].Data.Delta.PartialJSON)
	assert.Equal(t, "tool_use", all[12].Data.Delta.StopReason)
}

func TestChunksArriveOneByOne(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	s.Script("drip", modelapi.Always(modelapi.Reply{
		Blocks: []modelapi.Block{modelapi.Text("abcdef")}, Chunks: 3, ChunkDelay: time.Millisecond,
	}))

	resp := post(t, s, "/v1/messages", map[string]any{"stream": true, "messages": []message{user("[[scn:drip]]")}})
	all, err := events(t, resp.Body)
	require.NoError(t, err)
	var deltas []string
	for _, e := range all {
		if e.Name == "content_block_delta" {
			deltas = append(deltas, e.Data.Delta.Text)
		}
	}
	assert.Equal(t, []string{"ab", "cd", "ef"}, deltas)
}

func TestPartialAnswerBreaksOff(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})

	resp := post(t, s, "/v1/messages", map[string]any{"stream": true, "messages": []message{user("[[scn:partial]]")}})
	all, err := events(t, resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, []string{"message_start", "content_block_start", "content_block_delta", "content_block_delta"}, names(all))

	again := post(t, s, "/v1/messages", map[string]any{"stream": true, "messages": []message{user("[[scn:partial]]")}})
	all, err = events(t, again.Body)
	require.NoError(t, err)
	assert.Equal(t, "message_stop", all[len(all)-1].Name, "the retry gets it all")
}

func TestFailuresComeBeforeCuts(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	s.Script("rough", modelapi.Always(modelapi.Reply{
		Blocks: []modelapi.Block{modelapi.Text("at last")},
		Fault:  &modelapi.Fault{Status: http.StatusServiceUnavailable, Type: "overloaded_error", Times: 1},
		Cut:    &modelapi.Cut{After: 0, Times: 1},
	}))
	var got []string
	for range 3 {
		resp := post(t, s, "/v1/messages", map[string]any{"stream": true, "messages": []message{user("[[scn:rough]]")}})
		if resp.StatusCode != http.StatusOK {
			got = append(got, resp.Status)
			continue
		}
		all, err := events(t, resp.Body)
		got = append(got, all[len(all)-1].Name+" "+strconv.FormatBool(err == nil))
	}
	assert.Equal(t, []string{"503 Service Unavailable", "content_block_start false", "message_stop true"}, got)
}

func TestFailuresAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	call := func(prompt string) *http.Response {
		return post(t, s, "/v1/messages", map[string]any{"messages": []message{user(prompt)}})
	}

	for range 2 {
		resp := call("[[scn:err429]]")
		assert.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
		assert.Equal(t, "1", resp.Header.Get("Retry-After"))
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.JSONEq(t, `{"type":"error","error":{"type":"rate_limit_error","message":"scripted 429"}}`, string(body))
	}
	assert.Equal(t, http.StatusOK, call("[[scn:err429]]").StatusCode)
	assert.Equal(t, http.StatusTooManyRequests, call("[[scn:err429 other]]").StatusCode, "an argument has a count of its own")

	s.Reset()
	assert.Equal(t, http.StatusTooManyRequests, call("[[scn:err429]]").StatusCode, "a reset starts over")
	assert.Len(t, s.Requests(), 1, "and the log is empty before it")
}

func TestHangEndsWithTheClientAndWithTheServer(t *testing.T) {
	t.Parallel()
	s, err := modelapi.Start(modelapi.Config{})
	require.NoError(t, err)
	hang := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() {
			body := strings.NewReader(`{"messages":[{"role":"user","content":"[[scn:hang]]"}]}`)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/messages", body)
			if err == nil {
				var resp *http.Response
				if resp, err = http.DefaultClient.Do(req); err == nil {
					resp.Body.Close()
				}
			}
			ended <- err
		}()
		return ended
	}
	leaving, leave := context.WithCancel(t.Context())
	left, stayed := hang(leaving), hang(t.Context())
	_, err = s.Wait(t.Context(), func(r modelapi.Request) bool { return r.Seq == 2 })
	require.NoError(t, err)

	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	require.NoError(t, s.Close())
	require.Error(t, <-stayed)
	require.NoError(t, s.Close(), "closing twice is fine")
}

func TestRequestLogIsTyped(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	resp := post(t, s, "/v1/messages?beta=true", map[string]any{
		"model": "m-2", "max_tokens": 7, "system": []map[string]string{{"type": "text", "text": "be brief"}},
		"tools": []map[string]string{{"name": "Bash"}, {"name": "Read"}},
		"messages": []any{
			map[string]any{"role": "user", "content": "[[scn:bash arg]]"},
			map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": "t1", "name": "Bash"}}},
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": "no such file"},
				map[string]any{"type": "tool_result", "tool_use_id": "t2", "content": blocks("a", "b")},
			}},
			map[string]any{"role": "system", "content": "a reminder"},
		},
	})
	assert.Equal(t, "req_1", resp.Header.Get("Request-Id"))

	log := s.Requests()
	require.Len(t, log, 1)
	r := log[0]
	assert.Equal(t, modelapi.Messages, r.Endpoint)
	assert.Equal(t, "/v1/messages?beta=true", r.Path)
	assert.Equal(t, "m-2", r.Model)
	assert.Equal(t, 7, r.MaxTokens)
	assert.False(t, r.Stream)
	assert.Equal(t, []string{"Bash", "Read"}, r.Tools)
	assert.Equal(t, []string{"be brief"}, r.System)
	assert.Equal(t, modelapi.Marker{Scenario: "bash", Arg: "arg", Step: 1}, r.Marker)
	assert.Equal(t, "t1", r.Messages[1].Content[0].ToolUseID)
	results := r.ToolResults()
	require.Len(t, results, 2)
	assert.Equal(t, "t1", results[0].ToolUseID)
	assert.Equal(t, "no such file", results[0].Text)
	assert.True(t, results[0].IsError)
	assert.Equal(t, "ab", results[1].Text)
	assert.False(t, results[1].IsError)
}

func TestOtherEndpoints(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	read := func(resp *http.Response) string {
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}

	counted := post(t, s, "/v1/messages/count_tokens", map[string]any{"model": "m", "messages": []message{user("x")}})
	assert.Equal(t, http.StatusOK, counted.StatusCode)
	assert.JSONEq(t, `{"input_tokens":10}`, read(counted))

	unknown := post(t, s, "/v1/nosuch", "not even an object")
	assert.Equal(t, http.StatusNotFound, unknown.StatusCode)
	assert.Contains(t, read(unknown), "not_found_error")

	broken := post(t, s, "/v1/messages", map[string]any{"messages": 5})
	assert.Equal(t, http.StatusBadRequest, broken.StatusCode)

	var got []modelapi.Endpoint
	for _, r := range s.Requests() {
		got = append(got, r.Endpoint)
	}
	assert.Equal(t, []modelapi.Endpoint{modelapi.CountTokens, modelapi.Unknown, modelapi.Messages}, got)
}

func TestOwnScenarios(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{WorkDir: "/w", Scenarios: map[string]modelapi.Scenario{
		"text": {func(c modelapi.Call) modelapi.Reply {
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text(c.WorkDir + " " + c.Request.Model)}}
		}},
	}})
	assert.Equal(t, "/w m-1", ask(t, s, nil, user("[[scn:text]]")).Content[0].Text, "the given one wins")
	assert.JSONEq(t, `{"file_path":"/w/w1.txt","content":"w\n"}`, string(ask(t, s, nil, user("[[scn:write]]")).Content[0].Input))

	s.Script("text", modelapi.Say(modelapi.Text("replaced")))
	assert.Equal(t, "replaced", ask(t, s, nil, user("[[scn:text]]")).Content[0].Text)
}

func TestToolsAreNamedAsOffered(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	tool := func(scenario string, offered ...string) string {
		return ask(t, s, offered, user("[[scn:"+scenario+"]]")).Content[0].Name
	}
	assert.Equal(t, "Task", tool("agent", "Bash", "Task"))
	assert.Equal(t, "Agent", tool("agent", "Bash"))
	assert.Equal(t, "mcp__mine__echo", tool("mcp", "mcp__mine__echo"))
	assert.Equal(t, "mcp__srv__echo", tool("mcp"))
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Wait(ctx, func(modelapi.Request) bool { return true })
	require.ErrorIs(t, err, context.Canceled)
}

// Every scenario must be playable to its end: a step that panics or a tool
// input that does not marshal would only show up in the middle of a real turn.
func TestEveryBuiltinStepAnswers(t *testing.T) {
	t.Parallel()
	all := modelapi.Builtin()
	assert.Greater(t, len(all), 45)
	s := start(t, modelapi.Config{WorkDir: t.TempDir()})
	for name, scenario := range all {
		switch name {
		case "hang", "reset", "html", "empty", "garbage":
			continue // no answers of the API: their tests are above and below
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range scenario {
				messages := []message{user("[[scn:" + name + " echo x]]")}
				for range i {
					messages = append(messages, message{"assistant", "ok"}, user("go on"))
				}
				resp := post(t, s, "/v1/messages", map[string]any{"messages": messages})
				raw, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				assert.True(t, json.Valid(raw), "step %d: %s", i, raw)
				if strings.HasPrefix(name, "err") {
					assert.NotEqual(t, http.StatusOK, resp.StatusCode)
					continue
				}
				assert.Equal(t, http.StatusOK, resp.StatusCode)
				assert.NotContains(t, string(raw), "Script over")
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	for name, kind := range map[string]string{"html": "text/html", "empty": "text/event-stream", "garbage": "text/event-stream"} {
		resp := post(t, s, "/v1/messages", map[string]any{"messages": []message{user("[[scn:" + name + "]]")}})
		raw, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Equal(t, kind, resp.Header.Get("Content-Type"))
		assert.False(t, json.Valid(raw), "%s", raw)
	}
	body := strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"[[scn:reset]]"}]}`)
	resp, err := http.Post(s.URL()+"/v1/messages", "application/json", body)
	if err == nil {
		resp.Body.Close()
	}
	require.Error(t, err, "the connection was dropped")
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	for range 1005 {
		post(t, s, "/v1/messages/count_tokens", map[string]any{}).Body.Close()
	}
	log := s.Requests()
	require.Len(t, log, 1000)
	assert.Equal(t, 6, log[0].Seq)
	assert.True(t, slices.IsSortedFunc(log, func(a, b modelapi.Request) int { return a.Seq - b.Seq }))
}
