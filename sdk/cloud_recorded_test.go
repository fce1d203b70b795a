package sdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// The recordings in testdata/cloud are of the vendor's TypeScript SDK 1.0.39 with a server that was
// made up. cloudLine is a line of one.
type cloudLine struct {
	Dir    string            `json:"dir"`
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Query  map[string]string `json:"query"`
	Body   json.RawMessage   `json:"body"`
	Status int               `json:"status"`
	ID     string            `json:"id"`
	Event  string            `json:"event"`
	Data   json.RawMessage   `json:"data"`
	Raw    string            `json:"raw"`
	Ev     string            `json:"ev"`
	Msg    json.RawMessage   `json:"msg"`
	Code   any               `json:"code"`
	Text   string            `json:"message"`
}

// message is the text of a user.message, and whether the line posts one.
func (l *cloudLine) posts(kind string) (string, bool) {
	var body struct {
		Events []struct{ Type, Content string }
	}
	if l.Dir != "sdk->cloud" || json.Unmarshal(l.Body, &body) != nil || len(body.Events) != 1 || body.Events[0].Type != kind {
		return "", false
	}
	return body.Events[0].Content, true
}

// request is what is compared of a request.
func request(method, path string, query map[string]string, body []byte) string {
	q := url.Values{}
	for k, v := range query {
		q.Set(k, v)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", method, strings.TrimPrefix(path, "/api/v1/cloud"), q.Encode(), normal(body)))
}

// normal is JSON in one spelling, without what is random, and with long texts cut as in the recordings.
func normal(raw []byte) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(cutTexts(v))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func cutTexts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = cutTexts(v[k])
		}
	case []any:
		for i := range v {
			v[i] = cutTexts(v[i])
		}
	case string:
		if len(v) > 1000 {
			return fmt.Sprintf("%s…[%d chars]", v[:60], len(v))
		}
	}
	return v
}

// viewOf is a message as a consumer sees it, without what is random or a duration. An event without
// an id has a random uuid.
func viewOf(raw []byte) string {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return string(raw)
	}
	if m["type"] == "result" || m["id"] == nil {
		delete(m, "uuid")
	}
	for _, k := range []string{"duration_ms", "duration_api_ms", "user_message_uuid"} {
		delete(m, k)
	}
	b, err := json.Marshal(cutTexts(m))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// playback is a service that does what a recording says, in its order.
type playback struct {
	t       *testing.T
	lines   []cloudLine
	mu      sync.Mutex
	asked   []string     // requests
	calls   []*cloudCall // that have no answer yet
	arrived chan struct{}
	stream  *io.PipeWriter // of the stream that is open
	ends    bool           // the last stream was ended by the server
	failed  map[string]int // the status of a request that was refused
}

type cloudCall struct {
	name   string
	stream bool
	answer chan *http.Response
}

func (p *playback) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	query := map[string]string{}
	for k := range req.URL.Query() {
		query[k] = req.URL.Query().Get(k)
	}
	c := &cloudCall{name: request(req.Method, req.URL.EscapedPath(), query, body), stream: req.Method == http.MethodGet, answer: make(chan *http.Response, 1)}
	p.mu.Lock()
	p.asked = append(p.asked, c.name)
	p.calls = append(p.calls, c)
	close(p.arrived)
	p.arrived = make(chan struct{})
	p.mu.Unlock()
	select {
	case resp := <-c.answer:
		if body, ok := resp.Body.(*io.PipeReader); ok {
			context.AfterFunc(req.Context(), func() { _ = body.CloseWithError(req.Context().Err()) })
		}
		return resp, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// take is the oldest request that has no answer, nil if none comes in time.
func (p *playback) take(ours func(*cloudCall) bool, limit time.Duration) *cloudCall {
	deadline := time.After(limit)
	for {
		p.mu.Lock()
		i := slices.IndexFunc(p.calls, ours)
		if i >= 0 {
			c := p.calls[i]
			p.calls = slices.Delete(p.calls, i, i+1)
			p.mu.Unlock()
			return c
		}
		arrived := p.arrived
		p.mu.Unlock()
		select {
		case <-arrived:
		case <-deadline:
			return nil
		}
	}
}

func reply(status int, body []byte) *http.Response {
	var text string
	if json.Unmarshal(body, &text) == nil { // a body that is not JSON is recorded as a string
		body = []byte(text)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
}

// open answers a request for a stream.
func (p *playback) open(c *cloudCall) {
	r, w := io.Pipe()
	p.stream, p.ends = w, false
	c.answer <- &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: r}
}

// extra answers what the vendor's SDK did not ask: a stream is silent, or ends if the last one did.
func (p *playback) extra(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if c := p.take(func(*cloudCall) bool { return true }, time.Second); c != nil {
			ends := p.ends
			if status := p.failed[c.name]; status != 0 || !c.stream {
				c.answer <- reply(max(status, 200), []byte(`{}`))
				continue
			}
			p.open(c)
			if ends {
				_ = p.stream.Close()
				p.ends = true
			}
		}
	}
}

func (p *playback) write(b []byte) {
	if p.stream != nil {
		_, _ = p.stream.Write(b) // there may be no reader
	}
}

// longRaw is a raw chunk that the recording has cut: it names its length.
var longRaw = regexp.MustCompile(`^(.*)…\[(\d+)\]$`)

func rawBytes(raw string) []byte {
	if m := longRaw.FindStringSubmatch(raw); m != nil {
		var n int
		_, _ = fmt.Sscan(m[2], &n)
		const end = "\"}\n\n"
		return []byte(m[1] + strings.Repeat("a", n-len(m[1])-len(end)) + end)
	}
	var b []byte
	for _, r := range raw { // a byte for each character: chunks split characters
		b = append(b, byte(r))
	}
	return b
}

// run plays the recording against a client.
func (p *playback) run(c *sdk.Client, connected <-chan error) {
	for i := range p.lines {
		l := &p.lines[i]
		synctest.Wait()
		switch l.Dir {
		case "sdk->cloud":
			if text, ok := l.posts("user.message"); ok {
				if <-connected == nil {
					_, err := c.Send(p.t.Context(), sdk.UserText(text))
					assert.NoError(p.t, err)
				}
			}
			if _, ok := l.posts("user.interrupt"); ok {
				go func() { _, _ = c.Interrupt(p.t.Context()) }() // its error is compared by name below
			}
			if l.Method == http.MethodGet && !p.refused(i) {
				if call := p.take(func(c *cloudCall) bool { return c.stream }, time.Minute); call != nil {
					p.open(call)
				}
			}
		case "cloud->sdk":
			if call := p.take(func(*cloudCall) bool { return true }, time.Minute); call != nil {
				if l.Status >= 400 {
					p.failed[call.name] = l.Status
				}
				call.answer <- reply(l.Status, l.Body)
			}
		case "sse":
			var b []byte
			if l.ID != "" {
				b = fmt.Appendf(b, "id: %s\n", l.ID)
			}
			p.write(fmt.Appendf(b, "event: %s\ndata: %s\n\n", l.Event, l.Data))
		case "sse-raw":
			p.write(rawBytes(l.Raw))
		case "sse-end":
			_ = p.stream.Close()
			p.ends = true
		case "host":
			if l.Ev == "throw" && l.Text == "terminated" { // fetch's word for a broken connection
				_ = p.stream.CloseWithError(syscall.ECONNRESET)
			}
			if l.Ev == "closed" {
				go func() { _ = c.Close(p.t.Context()) }() // it is closed again at the end
			}
		}
	}
	synctest.Wait()
}

// refused reports whether the stream that a line asks for is refused: the next answer has its status.
func (p *playback) refused(i int) bool {
	for _, l := range p.lines[i+1:] {
		switch l.Dir {
		case "cloud->sdk":
			return l.Status >= 400
		case "sdk->cloud", "sse", "sse-raw", "sse-end":
			return false
		}
	}
	return false
}

// options are those that make the vendor's SDK ask what the recording has.
func (p *playback) options(t *testing.T) *sdk.Options {
	made := &session.CloudAgent{}
	for i := range p.lines {
		l := &p.lines[i]
		if l.Dir != "sdk->cloud" {
			continue
		}
		path := strings.TrimPrefix(l.Path, "/api/v1/cloud")
		switch {
		case path == "/agents":
			made.Agent = &session.CloudAgentReference{Create: &session.CloudAgentCreate{}}
			require.NoError(t, json.Unmarshal(l.Body, made.Agent.Create))
			made.Session.Create = &session.CloudSessionCreate{EnvironmentID: "env_1"}
		case path == "/sessions":
			made.Session.Create = &session.CloudSessionCreate{}
			var own struct{ Agent string }
			require.NoError(t, json.Unmarshal(l.Body, made.Session.Create))
			require.NoError(t, json.Unmarshal(l.Body, &own))
			if made.Agent == nil {
				made.Agent = &session.CloudAgentReference{ID: own.Agent}
			}
		case l.Method == http.MethodGet && made.Stream == nil:
			made.Stream = &session.CloudStream{AfterID: l.Query["after_id"]}
			if ms := l.Query["delta_flush_interval_ms"]; ms != "" {
				var n int
				_, err := fmt.Sscan(ms, &n)
				require.NoError(t, err)
				made.Stream.DeltaFlushIntervalMs = session.Some(n)
			}
			if made.Session.Create == nil {
				id, _, _ := strings.Cut(strings.TrimPrefix(path, "/sessions/"), "/")
				id, err := url.PathUnescape(id)
				require.NoError(t, err)
				made.Session.ID = id
			}
		}
	}
	if made.Agent == nil && made.Session.ID == "" {
		made.Session.ID = "sess_9"
	}
	return &sdk.Options{ExperimentalCloudAgent: made, Auth: sdk.AccessToken("PAT-TEST")}
}

// seen is what a consumer saw: the messages, and how it ended.
type seen struct {
	messages []string
	err      error
	asked    []string
}

func (p *playback) play(t *testing.T) seen {
	var got seen
	synctest.Test(t, func(t *testing.T) {
		p.t, p.arrived, p.failed = t, make(chan struct{}), map[string]int{}
		rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		o := p.options(t)
		o.Runtime = rt
		o.Backend = cloud.Backend(cloud.Config{HTTP: p, BaseURL: "https://cloud.test/api/v1/cloud"})
		c := sdk.NewClient(o)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if len(p.lines) == 1 { // aborted before the start
			cancel()
		}
		connected := make(chan error, 1)
		var readers sync.WaitGroup
		readers.Go(func() {
			err := c.Connect(ctx)
			if err != nil {
				got.err = err
			} else {
				readers.Go(func() {
					for m, err := range c.Messages(t.Context()) {
						if err != nil {
							got.err = err
							return
						}
						if _, ok := m.(*protocol.CloudAgentEventMessage); ok {
							got.messages = append(got.messages, viewOf(m.Raw()))
						}
						if _, ok := m.(*protocol.ResultMessage); ok {
							got.messages = append(got.messages, viewOf(m.Raw()))
						}
					}
				})
			}
			for {
				select {
				case connected <- err:
				case <-ctx.Done():
					return
				}
			}
		})
		p.run(c, connected)
		p.mu.Lock()
		got.asked = slices.Clone(p.asked)
		p.mu.Unlock()
		stop := make(chan struct{})
		var more sync.WaitGroup
		more.Go(func() { p.extra(stop) })
		time.Sleep(5 * time.Minute)
		assert.NoError(t, c.Close(t.Context()))
		cancel()
		readers.Wait()
		assert.NoError(t, rt.Shutdown(t.Context()))
		close(stop)
		more.Wait()
	})
	return got
}

func recordings(t *testing.T) map[string][]cloudLine {
	files, err := filepath.Glob("testdata/cloud/*.ndjson")
	require.NoError(t, err)
	require.Len(t, files, 48)
	all := map[string][]cloudLine{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var lines []cloudLine
		in := bufio.NewScanner(bytes.NewReader(content))
		in.Buffer(nil, 4<<20)
		for in.Scan() {
			var l cloudLine
			require.NoError(t, json.Unmarshal(in.Bytes(), &l), "%s: %s", file, in.Text())
			lines = append(lines, l)
		}
		require.NoError(t, in.Err())
		all[strings.TrimSuffix(filepath.Base(file), ".ndjson")] = lines
	}
	return all
}

// TestCloudRecordings plays each recording. The consumer sees what the vendor's did, or what the
// deviation of that name says; docs/cloud.md lists them.
func TestCloudRecordings(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/experimentalCloudAgent", "qoder/option/experimentalCloudAgent.agent",
		"qoder/option/experimentalCloudAgent.session", "qoder/option/experimentalCloudAgent.stream")
	deviates := cloudDeviations()
	for name, lines := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want seen
			threw := ""
			for i := range lines {
				switch l := &lines[i]; {
				case l.Ev == "message":
					want.messages = append(want.messages, viewOf(l.Msg))
				case l.Ev == "throw":
					threw = l.Text
				case l.Dir == "sdk->cloud":
					want.asked = append(want.asked, request(l.Method, l.Path, l.Query, l.Body))
				}
			}
			p := &playback{lines: lines}
			got := p.play(t)
			d, deviating := deviates[name]
			if deviating {
				same := slices.Equal(want.messages, got.messages) && (threw == "") == (got.err == nil) && slices.Equal(want.asked, got.asked)
				assert.False(t, same, "it does not deviate")
			}
			if d.messages != nil {
				want.messages = d.messages(want.messages)
			}
			if d.asked != nil {
				want.asked = d.asked(want.asked)
			}
			if d.err != nil {
				threw = *d.err
			}
			assert.Equal(t, want.messages, got.messages)
			assert.Equal(t, want.asked, got.asked)
			if threw == "" {
				assert.NoError(t, got.err)
			} else {
				assert.ErrorContains(t, got.err, inOurWords(threw))
			}
		})
	}
	guide, err := os.ReadFile("../docs/cloud.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(guide), "## Differences from the vendor's SDK")
	require.True(t, found)
	all := recordings(t)
	for name := range deviates {
		assert.Contains(t, all, name)
		assert.Contains(t, table, "`"+name+"`")
	}
	for _, m := range regexp.MustCompile("`([a-z]+-[-a-zA-Z]+)`").FindAllStringSubmatch(table, -1) {
		assert.Contains(t, deviates, m[1], "what docs/cloud.md says")
	}
}

// deviation is what Troupe does otherwise than a recording. nil: as recorded.
type deviation struct {
	messages, asked func([]string) []string
	err             *string
}

// inOurWords is what Troupe says where the vendor's SDK throws.
func inOurWords(threw string) string {
	if status, ok := strings.CutPrefix(threw, "Cloud Agent API request failed with status "); ok {
		return "failed with status " + status[:3]
	}
	if strings.HasSuffix(threw, "response did not include an id.") {
		return "the answer has no id"
	}
	if threw == "This operation was aborted" {
		return context.Canceled.Error()
	}
	return threw
}

// edited is a view with members changed; nil removes one.
func edited(line string, changes map[string]any) string {
	var m map[string]any
	if json.Unmarshal([]byte(line), &m) != nil {
		return line
	}
	for k, v := range changes {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = v
	}
	b, _ := json.Marshal(m) // it was JSON
	return string(b)
}

// bareResult is the result of a turn without usage.
const bareResult = `{"is_error":false,"modelUsage":{},"num_turns":1,"permission_denials":[],"result":"","session_id":"sess_9","stop_reason":null,` +
	`"subtype":"success","total_cost_usd":0,"type":"result","usage":{"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0},` +
	`"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"inference_geo":"","input_tokens":0,"iterations":[],"output_tokens":0,` +
	`"server_tool_use":{"web_fetch_requests":0,"web_search_requests":0},"service_tier":"standard","speed":"standard"}}`

func succeeded(text string) string {
	return edited(bareResult, map[string]any{"result": text})
}

func failedResult(text string) string {
	return edited(bareResult, map[string]any{"result": nil, "is_error": true, "subtype": "error_during_execution", "errors": []string{text}})
}

// cloudDeviations are those of docs/cloud.md, by recording.
func cloudDeviations() map[string]deviation {
	none, lost := "", "the stream closed before the current turn reached a terminal state"
	terminated := failedResult("The Cloud Agent session was terminated.")
	two := func(first string, at int) func([]string) []string {
		return func(m []string) []string { // one result for each message
			m[len(m)-1] = edited(m[len(m)-1], map[string]any{"num_turns": 1})
			return slices.Insert(m, at, succeeded(first))
		}
	}
	return map[string]deviation{
		"terminated":             {messages: func(m []string) []string { m[2] = terminated; return m }},
		"status-terminated-name": {messages: func(m []string) []string { return []string{m[0], m[1], terminated, m[2]} }},
		"replayed-duplicate-events": {messages: func(m []string) []string {
			return []string{m[0], m[2], m[3], succeeded("part1 part2")}
		}},
		"socket-reset-mid-stream": {err: &none, messages: func([]string) []string { // it is opened again
			return []string{`{"data":{"content":[{"text":"x","type":"text"}],"turn_id":"turn_1","type":"agent.message"},"event":"agent.message","id":"e1","session_id":"sess_9","type":"cloud_agent_event","uuid":"e1"}`}
		}},
		"reconnect-exhausted": {err: &lost, messages: func(m []string) []string { return m[:1] }},
		"create-agent-and-session": {asked: func(a []string) []string { // null and unknown members cannot be given
			a[0] = strings.Replace(a[0], `"description":null,`, "", 1)
			a[1] = strings.Replace(a[1], `"extra":1,`, "", 1)
			return a
		}},
		"iterable-throws":       {err: &none}, // there is no iterable: the caller has its own error
		"two-messages-iterable": {messages: two("answer turn_1", 2)},
		"two-messages-at-once":  {messages: two("answer turn_1", 2)},
		"streamInput-later":     {messages: two("a turn_1", 3)},
		"post-without-turn-id":  {messages: func(m []string) []string { return append(m, succeeded("has turn id")) }},
		"stream-closes-before-post": {asked: func(a []string) []string { // posted once a stream is open
			return []string{a[0], a[2], a[2], a[1]}
		}},
		"http-post-events-500": {err: &none, messages: func([]string) []string { // it may have arrived
			return []string{failedResult("Qoder's cloud: post message failed with status 500: no; the service may have received the request, so it was not sent again; the cloud has not shown the message within 20s, and it was not posted again")}
		}},
		"create-agent-slow-then-close": {err: new("the session is closed")},
	}
}
