package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// begin is the start of a stream of the Messages API.
const begin = `{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":1,"output_tokens":1}}}`

// chunk is a chunk of chat completions with this delta and reason.
func chunk(delta, reason string) string {
	if reason != "" {
		reason = `,"finish_reason":"` + reason + `"`
	}
	return `{"id":"x","model":"m","choices":[{"index":0,"delta":` + delta + reason + `}]}`
}

func TestBlocksThatOnlyTheirAPIUnderstands(t *testing.T) {
	t.Parallel()
	events, err := decode(t, "anthropic", isStream(), sse(begin,
		`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"c2Vj"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"so"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{"url":"u"}}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`), 1<<20, false)
	require.NoError(t, err)
	got := blocks(t, events)

	ours := open("anthropic", nil, model.Quirks{}).Codec()
	assert.JSONEq(t, `{"role":"assistant","content":[
		{"type":"redacted_thinking","data":"c2Vj"},
		{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}},
		{"type":"thinking","thinking":"hm","signature":"c2ln"},
		{"type":"text","text":"so","citations":[{"url":"u"}]}]}`, string(ours.Message(&model.Message{Role: model.Assistant, Blocks: got})))
	other := open("openai", nil, model.Quirks{}).Codec()
	assert.JSONEq(t, `{"role":"assistant","content":"so"}`, string(other.Message(&model.Message{Role: model.Assistant, Blocks: got})))
}

func TestThinkingGoesBackToItsEndpointAlone(t *testing.T) {
	t.Parallel()
	events, err := decode(t, "openai", isStream(), sse(
		chunk(`{"reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","index":0,"format":"f"}]}`, ""),
		chunk(`{"reasoning":"see","reasoning_details":[{"type":"reasoning.text","text":"see","index":0,"signature":null}]}`, ""),
		chunk(`{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"c2ln"}]}`, ""),
		chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"Read","arguments":"{\"a\":1}"},"extra_content":{"g":{"s":"x"}}}]}`, "tool_calls"),
		"[DONE]"), 1<<20, false)
	require.NoError(t, err)
	said := &model.Message{Role: model.Assistant, Blocks: blocks(t, events)}

	own := open("openai", nil, model.Quirks{Reasoning: "reasoning"}).Codec()
	assert.JSONEq(t, `{"role":"assistant","content":null,"reasoning":"I see",
		"reasoning_details":[{"type":"reasoning.text","text":"I see","index":0,"format":"f","signature":"c2ln"}],
		"tool_calls":[{"type":"function","id":"c","function":{"name":"Read","arguments":"{\"a\":1}"},"extra_content":{"g":{"s":"x"}}}]}`, string(own.Message(said)))

	other := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://other.example/v1"}, Quirks: model.Quirks{Reasoning: "reasoning"}}).Codec()
	assert.JSONEq(t, `{"role":"assistant","content":null,
		"tool_calls":[{"type":"function","id":"c","function":{"name":"Read","arguments":"{\"a\":1}"}}]}`, string(other.Message(said)))

	messages := open("anthropic", nil, model.Quirks{}).Codec()
	assert.JSONEq(t, `{"role":"assistant","content":[{"type":"text","text":"<thinking>I see</thinking>"},
		{"type":"tool_use","id":"c","name":"Read","input":{"a":1}}]}`, string(messages.Message(said)))
}

// Servers number and name the calls of a message in many ways.
func TestCallsOfServers(t *testing.T) {
	t.Parallel()
	call := func(s string) string { return chunk(`{"tool_calls":[`+s+`]}`, "") }
	for name, c := range map[string]struct {
		chunks []string
		want   []string
	}{
		"index 0 for all": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":"{}"}}`),
			call(`{"index":0,"id":"b","function":{"name":"B","arguments":"{}"}}`)}, []string{"a A {}", "b B {}"}},
		"index 0 for all, in pieces": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\""}}`),
			call(`{"index":0,"function":{"arguments":":1}"}}`),
			call(`{"index":0,"id":"b","function":{"name":"B","arguments":"{"}}`),
			call(`{"index":0,"function":{"arguments":"}"}}`)}, []string{`a A {"x":1}`, "b B {}"}},
		"no index": {[]string{
			call(`{"id":"a","function":{"name":"A","arguments":"{"}},{"id":"b","function":{"name":"B","arguments":"{"}}`),
			call(`{"id":"a","function":{"arguments":"}"}}`),
			call(`{"id":"b","function":{"arguments":"}"}}`)}, []string{"a A {}", "b B {}"}},
		"no index, no id": {[]string{
			call(`{"function":{"name":"A","arguments":"{}"}},{"function":{"name":"A","arguments":"{}"}}`)}, []string{"call_x_0 A {}", "call_x_1 A {}"}},
		"no index, no id, in pieces": {[]string{
			call(`{"function":{"name":"A","arguments":"{"}}`),
			call(`{"function":{"arguments":"}"}}`)}, []string{"call_x_0 A {}"}},
		"the id and the name are repeated": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":"{"}}`),
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":"}"}}`)}, []string{"a A {}"}},
		"arguments are an object": {[]string{call(`{"index":0,"id":"a","function":{"name":"A","arguments":{"x":1}}}`)}, []string{`a A {"x":1}`}},
		"null in a string":        {[]string{call(`{"index":0,"id":"a","function":{"name":"A","arguments":"null"}}`)}, []string{"a A {}"}},
		"no arguments":            {[]string{call(`{"index":0,"id":"a","function":{"name":"A","arguments":""}}`)}, []string{"a A {}"}},
		"arguments are null":      {[]string{call(`{"index":0,"id":"a","function":{"name":"A","arguments":null}}`)}, []string{"a A {}"}},
		"the index begins at 1":   {[]string{call(`{"index":1,"id":"a","function":{"name":"A","arguments":"{}"}}`)}, []string{"a A {}"}},
		"an empty id later": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":"{"}}`),
			call(`{"index":0,"id":"","function":{"name":"","arguments":"}"}}`)}, []string{"a A {}"}},
		"another id with each delta": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":""}}`),
			call(`{"index":0,"id":"b","function":{"arguments":"{\"x\""}}`),
			call(`{"index":0,"id":"c","function":{"arguments":":1}"}}`)}, []string{`a A {"x":1}`}},
		"another id with each delta, no index": {[]string{
			call(`{"id":"a","function":{"name":"A","arguments":""}}`),
			call(`{"id":"b","function":{"arguments":"{\"x\""}}`),
			call(`{"id":"c","function":{"arguments":":1}"}}`)}, []string{`a A {"x":1}`}},
		"another id with the name": {[]string{
			call(`{"index":0,"id":"a","function":{"arguments":""}}`),
			call(`{"index":0,"id":"b","function":{"name":"A","arguments":"{}"}}`)}, []string{"a A {}"}},
		"the name again at the end": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":"{}"}}`),
			call(`{"index":0,"function":{"name":"A","arguments":""}}`)}, []string{"a A {}"}},
		"no id, and the next one in pieces": {[]string{
			call(`{"index":0,"function":{"name":"A","arguments":"{}"}}`),
			call(`{"index":0,"function":{"name":"B","arguments":""}}`),
			call(`{"index":0,"function":{"arguments":"{}"}}`)}, []string{"call_x_0 A {}", "call_x_1 B {}"}},
		"arguments are null, then follow": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"A","arguments":null}}`),
			call(`{"index":0,"function":{"arguments":"{\"x\":1}"}}`)}, []string{`a A {"x":1}`}},
		"a large number": {[]string{call(`{"index":0,"id":"a","function":{"name":"A","arguments":"{\"n\": 12345678901234567890}"}}`)}, []string{`a A {"n":12345678901234567890}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, end := range [][]string{{chunk(`{}`, "tool_calls"), "[DONE]"}, {chunk(`{}`, "stop"), "[DONE]"}, {chunk(`{}`, "stop")}, {"[DONE]"}} {
				events, err := decode(t, "openai", isStream(), sse(append(c.chunks, end...)...), 1<<20, false)
				require.NoError(t, err)
				var got []string
				for _, b := range blocks(t, events) {
					got = append(got, b.ID+" "+b.Name+" "+string(b.Input))
				}
				assert.Equal(t, c.want, got)
				assert.Equal(t, "tool_use", events[len(events)-1].StopReason)
			}
		})
	}
}

// The first choice of a chunk is the answer, whatever its index is.
func TestTheIndexOfAChoice(t *testing.T) {
	t.Parallel()
	one := func(index, delta, more string) string {
		return `{"id":"x","choices":[{` + index + `"delta":` + delta + more + `}]}`
	}
	for name, index := range map[string][3]string{
		"0": {`"index":0,`, `"index":0,`, `"index":0,`}, "it grows": {`"index":0,`, `"index":1,`, `"index":2,`}, "another base": {`"index":197,`, `"index":198,`, `"index":199,`},
		"null": {`"index":null,`, `"index":null,`, `"index":null,`}, "no index": {}, "another form": {`"index":0.0,`, `"index":"0",`, `"index": 0,`},
	} {
		events, err := decode(t, "openai", isStream(), sse(one(index[0], `{"content":"The "}`, ""), one(index[1], `{"content":"rest"}`, ""), one(index[2], `{}`, `,"finish_reason":"length"`), "[DONE]"), 1<<20, false)
		require.NoError(t, err, name)
		got := blocks(t, events)
		require.Len(t, got, 1, name)
		assert.Equal(t, "The rest", got[0].Text, name)
		assert.Equal(t, "max_tokens", events[len(events)-1].StopReason, name)
	}
	for answer, want := range map[string]string{
		`{"id":"x","choices":[{"index":1,"message":{"content":"a"},"finish_reason":"stop"}]}`:                     "a",
		`{"id":"x","choices":[{"index":0,"message":{"content":"a"}},{"index":1,"message":{"content":"b"}}]}`:      "a",
		`{"id":"x","choices":[{"index":0,"message":{"content":"a"}},{"index":0,"message":{"content":" and b"}}]}`: "a and b",
	} {
		events, err := decode(t, "openai", isJSON(), []byte(answer), 1<<20, false)
		require.NoError(t, err, answer)
		assert.Equal(t, want, blocks(t, events)[0].Text)
	}
}

func TestInputThatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`{"a":`, `[1]`, `"x"`, `{"a":1}}`, `7`} {
		text, _ := json.Marshal(bad)
		for api, stream := range map[string][]byte{
			"anthropic": sse(begin, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"T","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+string(text)+`}}`,
				`{"type":"content_block_stop","index":0}`, `{"type":"message_stop"}`),
			"openai": sse(chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"T","arguments":`+string(text)+`}}]}`, "tool_calls"), "[DONE]"),
		} {
			events, err := decode(t, api, isStream(), stream, 1<<20, false)
			require.NoError(t, err)
			b := blocks(t, events)[0]
			assert.Equal(t, "{}", string(b.Input), "%s %s", api, bad)
			assert.Equal(t, bad, b.BadInput, api)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	text := chunk(`{"content":"x"}`, "")
	for reason, want := range map[string]string{"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_calls": "end_turn", "odd": "odd"} {
		events, err := decode(t, "openai", isStream(), sse(text, chunk(`{}`, reason), "[DONE]"), 1<<20, false)
		require.NoError(t, err)
		assert.Equal(t, want, events[len(events)-1].StopReason, reason)
	}
	events, err := decode(t, "openai", isStream(), sse(chunk(`{"refusal":"no"}`, "stop"), "[DONE]"), 1<<20, false)
	require.NoError(t, err)
	assert.Equal(t, "refusal", events[len(events)-1].StopReason)
	assert.Equal(t, "no", blocks(t, events)[0].Text)
}

func TestContentInParts(t *testing.T) {
	t.Parallel()
	events, err := decode(t, "openai", isStream(), sse(
		chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, ""),
		chunk(`{"content":[{"type":"text","text":"a"},{"type":"odd","x":1}]}`, ""),
		chunk(`{"content":"b"}`, "stop"), "[DONE]"), 1<<20, false)
	require.NoError(t, err)
	got := blocks(t, events)
	require.Len(t, got, 2)
	assert.Equal(t, "hm", got[0].Text)
	assert.Equal(t, "ab", got[1].Text)
	assert.JSONEq(t, `{"content":[{"type":"odd","x":1}]}`, string(events[len(events)-1].Extra))
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	open0 := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	for name, c := range map[string]struct {
		api    string
		stream []byte
		class  model.Class
		text   string
	}{
		"no JSON":                  {"anthropic", sse(begin, `{`), model.Broken, "no JSON"},
		"no event":                 {"anthropic", nil, model.Broken, "before the first event"},
		"only comments":            {"anthropic", []byte(": hi\n\n"), model.Broken, "before the first event"},
		"a block before its start": {"anthropic", sse(open0), model.Broken, "content_block_start came before message_start"},
		"a delta of no block":      {"anthropic", sse(begin, `{"type":"content_block_delta","index":3,"delta":{}}`), model.Broken, "block 3"},
		"the end of no block":      {"anthropic", sse(begin, `{"type":"content_block_stop","index":3}`), model.Broken, "block 3"},
		"a block twice":            {"anthropic", sse(begin, open0, open0), model.Broken, "began twice"},
		"start twice":              {"anthropic", sse(begin, begin), model.Broken, "twice"},
		"an open block":            {"anthropic", sse(begin, open0, `{"type":"message_stop"}`), model.Broken, "before the end of block 0"},
		"cut":                      {"anthropic", sse(begin, open0), model.Network, "unexpected EOF"},
		"overloaded":               {"anthropic", sse(begin, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`), model.Overload, "busy"},
		"failed":                   {"anthropic", sse(`{"type":"error","error":{"type":"api_error","message":"oops"}}`), model.Server, "oops"},
		"chat: no JSON":            {"openai", sse(`{"choices":[`), model.Broken, "no JSON"},
		"chat: nothing":            {"openai", sse("[DONE]"), model.Broken, "without an answer"},
		"chat: cut":                {"openai", sse(chunk(`{"content":"x"}`, "")), model.Network, "unexpected EOF"},
		"chat: error":              {"openai", sse(`{"error":{"message":"busy","code":503}}`), model.Overload, "busy"},
		"chat: limit":              {"openai", sse(`{"error":{"message":"slow down","code":429}}`), model.Rate, "slow down"},
		"chat: context":            {"openai", sse(`{"error":{"message":"x","code":"context_length_exceeded","type":"invalid_request_error"}}`), model.TooLong, "x"},
		"chat: vLLM":               {"openai", sse(`{"object":"error","message":"bad","type":"BadRequestError","code":400}`), model.Invalid, "bad"},
		"chat: text":               {"openai", sse(`{"error":"it broke"}`), model.Server, "it broke"},
		"a long event":             {"openai", sse(chunk(`{"content":"`+strings.Repeat("x", 17<<20)+`"}`, "")), model.Broken, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decode(t, c.api, isStream(), c.stream, 1<<20, false)
			var e *model.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, c.class, e.Class, e.Error())
			assert.Contains(t, e.Error(), c.text)
			assert.Equal(t, len(sseData(c.stream)) > 0, e.Started || name == "a long event")
		})
	}
}

func sseData(stream []byte) []byte { return []byte(strings.Join(dataOf(stream), "")) }

func dataOf(stream []byte) (data []string) {
	for line := range strings.Lines(string(stream)) {
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, d)
		}
	}
	return data
}

func TestAnAnswerHasALimit(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	for api, c := range map[string][]string{
		"anthropic": {begin + "\n\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + big + `"}}`},
		"openai":    {chunk(`{"content":"a"}`, ""), chunk(`{"content":"`+big+`"}`, "")},
	} {
		all := []string{c[0]}
		for range 17 {
			all = append(all, c[1])
		}
		_, err := decode(t, api, isStream(), sse(all...), 1<<20, false)
		var e *model.Error
		require.ErrorAs(t, err, &e, api)
		assert.Equal(t, model.Broken, e.Class)
	}
}

// The fast reading of a text's delta gives what the plain one gives.
func FuzzTextDelta(f *testing.F) {
	for _, s := range []string{`x`, `a\nb`, `\ud83d\ude00`, `\ud83d`, `\u00e9`, `"`, `x"}} `, "\x80", "\x01", `\`, `x","y":"z`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, inside string) {
		if strings.ContainsAny(inside, "\r\n") {
			return
		}
		start := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		stop := []string{`{"type":"content_block_stop","index":0}`, `{"type":"message_stop"}`}
		fast := `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + inside + `"}}`
		slow := `{"type":"content_block_delta", "index":0,"delta":{"type":"text_delta","text":"` + inside + `"}}`
		a, errA := decode(t, "anthropic", isStream(), sse(append([]string{begin, start, fast}, stop...)...), 1<<20, false)
		b, errB := decode(t, "anthropic", isStream(), sse(append([]string{begin, start, slow}, stop...)...), 1<<20, false)
		require.Equal(t, errB == nil, errA == nil, "%v, %v", errA, errB)
		require.Equal(t, b, a)
	})
}

// Whatever comes, in whatever chunks, gives the same events, or an error; and what has no
// error is whole.
func FuzzAnswer(f *testing.F) {
	seeds := [][]string{
		{begin, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`},
		{chunk(`{"content":"x"}`, ""), chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"A","arguments":"{}"}}]}`, "stop"), "[DONE]"},
		{`{"error":{"message":"x"}}`}, {`{"choices":[{"delta":{"reasoning_details":[{"type":"a"}]}}]}`}, {`[{"error":1}]`},
	}
	for i, s := range seeds {
		f.Add(sse(s...), i == 0, true, 1)
		f.Add(sse(s...), i == 0, false, 5)
		f.Add([]byte(s[0]), i == 0, true, 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, messages, streamed bool, size int) {
		api, header := "openai", isJSON()
		if messages {
			api = "anthropic"
		}
		if streamed {
			header = isStream()
		}
		whole, err := decode(t, api, header, stream, max(1, len(stream)), true)
		parts, again := decode(t, api, header, stream, 1+max(size, -size-1)%64, true)
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(again))
		require.Equal(t, whole, parts)
		for i, e := range whole {
			require.Equal(t, i == 0, e.Kind == model.Start)
			require.True(t, e.Raw == nil || json.Valid(e.Raw))
			if e.Kind == model.Done {
				require.True(t, e.Block.Input == nil || json.Valid(e.Block.Input))
				require.True(t, e.Block.Raw == nil || json.Valid(e.Block.Raw), "%s", e.Block.Raw)
				for _, to := range []string{"anthropic", "openai"} {
					m := open(to, nil, model.Quirks{}).Codec().Message(&model.Message{Role: model.Assistant, Blocks: []model.Block{*e.Block}})
					require.True(t, json.Valid(m), "%s", m)
				}
			}
		}
		require.Equal(t, err == nil, len(whole) > 0 && whole[len(whole)-1].Kind == model.Stop)
	})
}
