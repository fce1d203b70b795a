package model_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// cassette is a recording in the form of go-vcr.
type cassette struct {
	Interactions []struct {
		Request struct {
			URL  string `yaml:"url"`
			Body string `yaml:"body"`
		} `yaml:"request"`
		Response struct {
			Code    int         `yaml:"code"`
			Status  string      `yaml:"status"`
			Headers http.Header `yaml:"headers"`
			Body    string      `yaml:"body"`
		} `yaml:"response"`
	} `yaml:"interactions"`
}

// The recorded answers of servers decode with nothing lost, in any chunking. testdata has
// small ones that were made for this test; TROUPE_PROVIDERS names a directory with more.
func TestAnswersOfProviders(t *testing.T) {
	t.Parallel()
	dirs := []string{"testdata/providers"}
	if more := os.Getenv("TROUPE_PROVIDERS"); more != "" {
		dirs = append(dirs, more)
	}
	answers, outOfScope := 0, 0
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var c cassette
			require.NoError(t, yaml.Unmarshal(text, &c), file)
			for i, x := range c.Interactions {
				api := "openai"
				at, _, _ := strings.Cut(x.Request.URL, "?")
				switch {
				case strings.HasSuffix(at, "/responses"):
					outOfScope++
					continue
				case strings.HasSuffix(at, "/messages"):
					api = "anthropic"
				}
				answers++
				t.Run(fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(file), ".yaml"), i), func(t *testing.T) {
					t.Parallel()
					nothingLost(t, api, x.Response.Headers, []byte(x.Response.Body))
				})
			}
		}
	}
	t.Logf("%d answers, %d of the Responses API are out of scope", answers, outOfScope)
}

func nothingLost(t *testing.T, api string, header http.Header, body []byte) {
	t.Helper()
	whole, err := decode(t, api, header, body, len(body), true)
	require.NoError(t, err)
	for _, chunk := range []int{1, 7, 64, 1000} {
		parts, err := decode(t, api, header, body, chunk, true)
		require.NoError(t, err)
		require.Equal(t, whole, parts, "chunks of %d", chunk)
	}
	want := wanted(t, api, body)
	got := blocks(t, whole)
	start, stop := whole[0], whole[len(whole)-1]
	assert.Equal(t, want.id, start.ID)
	assert.Equal(t, want.model, start.Model)
	assert.Equal(t, want.stop, stop.StopReason)
	assert.Equal(t, want.input, stop.Usage.Input+stop.Usage.CacheRead+stop.Usage.CacheWrite)
	assert.Equal(t, want.output, stop.Usage.Output)
	var text, thought, sign string
	var calls []string
	for _, b := range got {
		switch b.Kind {
		case model.Text:
			text += b.Text
		case model.Thinking:
			thought += b.Text
			sign += b.Signature
		case model.ToolUse:
			assert.Empty(t, b.BadInput)
			calls = append(calls, b.ID+" "+b.Name+" "+sorted(string(b.Input)))
		}
	}
	assert.Equal(t, want.text, text)
	assert.Equal(t, want.thought, thought)
	assert.Equal(t, want.sign, sign)
	assert.Equal(t, want.calls, calls)
	// Unknown members are somewhere.
	kept := string(stop.Extra) + string(stop.Usage.Raw)
	for _, b := range got {
		kept += string(b.Raw)
	}
	for _, name := range want.members {
		assert.Contains(t, kept, `"`+name+`"`, "a member is lost")
	}
	// A reader of raw events sees a stream of the Messages API that says the same.
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		var raw []string
		for _, e := range whole {
			raw = append(raw, string(e.Raw))
		}
		again, err := decode(t, "anthropic", isStream(), sse(raw...), 1<<20, false)
		require.NoError(t, err)
		var texts [2]string
		for i, events := range [][]*model.Event{whole, again} {
			for _, b := range blocks(t, events) {
				texts[i] += fmt.Sprintf("%s|%s|%s|%s|%s\n", b.Kind, b.Text, b.ID, b.Name, b.Input)
			}
			texts[i] += events[len(events)-1].StopReason
		}
		assert.Equal(t, texts[0], texts[1])
	}
}

// expected is what an answer says, read in the plainest way.
type expected struct {
	id, model, stop, text, thought, sign string
	calls, members                       []string
	input, output                        int
}

func wanted(t *testing.T, api string, body []byte) *expected {
	t.Helper()
	var events []map[string]any
	add := func(data string) {
		var e map[string]any
		d := json.NewDecoder(strings.NewReader(data))
		d.UseNumber()
		require.NoError(t, d.Decode(&e))
		events = append(events, e)
	}
	streamed := false
	for line := range strings.Lines(string(body)) {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			streamed = true
			if data = strings.TrimSpace(data); data != "[DONE]" {
				add(data)
			}
		}
	}
	if !streamed {
		add(string(body))
	}
	x := &expected{}
	if api == "anthropic" {
		x.messages(events)
	} else {
		x.chat(events)
	}
	slices.Sort(x.members)
	x.members = slices.Compact(x.members)
	return x
}

func str(v any) string         { s, _ := v.(string); return s }
func obj(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any         { l, _ := v.([]any); return l }
func num(v any) int            { n, _ := v.(json.Number); i, _ := n.Int64(); return int(i) }

// sorted is JSON with sorted keys.
func sorted(s string) string {
	if s == "" {
		return "{}"
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func (x *expected) messages(events []map[string]any) {
	type call struct{ id, name, input string }
	calls := map[int]*call{}
	var order []int
	block := func(i int, b map[string]any) {
		switch str(b["type"]) {
		case "text":
			x.text += str(b["text"])
		case "thinking":
			x.thought += str(b["thinking"])
			x.sign += str(b["signature"])
		case "tool_use":
			calls[i] = &call{id: str(b["id"]), name: str(b["name"])}
			if in := obj(b["input"]); len(in) > 0 {
				text, _ := json.Marshal(in)
				calls[i].input = string(text)
			}
			order = append(order, i)
		}
		for k := range b {
			if !slices.Contains([]string{"type", "text", "thinking", "signature", "id", "name", "input"}, k) {
				x.members = append(x.members, k)
			}
		}
	}
	usage := map[string]any{}
	count := func(u map[string]any) {
		for k, v := range u {
			if v != nil && (num(v) > 0 || k == "output_tokens") { // null and 0 take nothing back
				usage[k] = v
			}
			x.members = append(x.members, k)
		}
	}
	for _, e := range events {
		switch str(e["type"]) {
		case "message_start":
			m := obj(e["message"])
			x.id, x.model = str(m["id"]), str(m["model"])
			count(obj(m["usage"]))
		case "message": // no stream
			x.id, x.model, x.stop = str(e["id"]), str(e["model"]), str(e["stop_reason"])
			count(obj(e["usage"]))
			for i, b := range list(e["content"]) {
				block(i, obj(b))
			}
		case "content_block_start":
			block(num(e["index"]), obj(e["content_block"]))
		case "content_block_delta":
			d := obj(e["delta"])
			x.text += str(d["text"])
			x.thought += str(d["thinking"])
			x.sign += str(d["signature"])
			if c := calls[num(e["index"])]; c != nil {
				c.input += str(d["partial_json"])
			}
			for k := range obj(d["citation"]) {
				x.members = append(x.members, k)
			}
		case "message_delta":
			x.stop = str(obj(e["delta"])["stop_reason"])
			count(obj(e["usage"]))
		}
	}
	for _, i := range order {
		x.calls = append(x.calls, calls[i].id+" "+calls[i].name+" "+sorted(calls[i].input))
	}
	x.input = num(usage["input_tokens"]) + num(usage["cache_read_input_tokens"]) + num(usage["cache_creation_input_tokens"])
	x.output = num(usage["output_tokens"])
}

func (x *expected) chat(events []map[string]any) {
	type call struct{ id, name, arguments string }
	calls := map[int]*call{}
	reason := ""
	other := func(m map[string]any, known ...string) {
		for k, v := range m {
			if v != nil && !slices.Contains(known, k) {
				x.members = append(x.members, k)
			}
		}
	}
	for _, e := range events {
		if x.id == "" {
			x.id = str(e["id"])
		}
		if x.model == "" {
			x.model = str(e["model"])
		}
		other(e, "id", "model", "choices", "usage", "object", "obfuscation")
		if u := obj(e["usage"]); u != nil {
			x.input, x.output = num(u["prompt_tokens"]), num(u["completion_tokens"])
			thought := num(obj(u["completion_tokens_details"])["reasoning_tokens"])
			if x.input+x.output+thought == num(u["total_tokens"]) {
				x.output += thought
			}
			other(u)
		}
		for _, c := range list(e["choices"]) {
			c := obj(c)
			other(c, "index", "delta", "message", "finish_reason", "usage")
			if r := str(c["finish_reason"]); r != "" {
				reason = r
			}
			d := obj(c["delta"])
			if d == nil {
				d = obj(c["message"])
			}
			x.text += str(d["content"])
			if thought := str(d["reasoning_content"]); thought != "" {
				x.thought += thought
			} else {
				x.thought += str(d["reasoning"])
			}
			other(d, "role", "content", "reasoning", "reasoning_content", "tool_calls", "refusal", "reasoning_details")
			for _, r := range list(d["reasoning_details"]) {
				other(obj(r))
			}
			for i, tc := range list(d["tool_calls"]) {
				tc := obj(tc)
				if _, ok := tc["index"]; ok {
					i = num(tc["index"])
				}
				if calls[i] == nil {
					calls[i] = &call{}
				}
				f := obj(tc["function"])
				if id := str(tc["id"]); id != "" {
					calls[i].id = id
				}
				if name := str(f["name"]); name != "" {
					calls[i].name = name
				}
				calls[i].arguments += str(f["arguments"])
				other(tc, "index", "id", "type", "function")
			}
		}
	}
	for i := range len(calls) {
		x.calls = append(x.calls, calls[i].id+" "+calls[i].name+" "+sorted(calls[i].arguments))
	}
	x.stop = map[string]string{"length": "max_tokens", "content_filter": "refusal"}[reason]
	if x.stop == "" {
		if x.stop = "end_turn"; len(calls) > 0 {
			x.stop = "tool_use"
		}
	}
}
