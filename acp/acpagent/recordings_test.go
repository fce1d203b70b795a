package acpagent_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

// recorded is a line of a recording in testdata/recordings: of the vendor's adapter, which has
// Claude Code 2.1.329 behind it, or of qodercli.
type recorded struct {
	Dir string          `json:"dir"` // client->agent, agent->client, exit
	Msg json.RawMessage `json:"msg"`
	Raw string          `json:"raw"` // of the client, if it is no message
	// Code is the exit code of the agent; nil: it had to be killed.
	Code *int `json:"code"`
	wire
}

// wire is a message of either side. A member that is not there is nil.
type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params object          `json:"params"`
	Result any             `json:"result"`
	Error  any             `json:"error"`
}

func (r *recorded) fromClient() bool { return r.Dir == "client->agent" }

// request: the client made a request.
func (r *recorded) request() bool { return r.fromClient() && r.Method != "" && r.ID != nil }

// readRecording reads a recording as it was made in a directory; "<CWD>" is the recording's own.
func readRecording(t *testing.T, name, cwd string) (out []*recorded) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "recordings", name+".ndjson"))
	require.NoError(t, err)
	for text := range strings.Lines(strings.ReplaceAll(string(data), "<CWD>", cwd)) {
		r := &recorded{}
		require.NoError(t, json.Unmarshal([]byte(text), r), text)
		if r.Msg != nil {
			require.NoError(t, json.Unmarshal(r.Msg, &r.wire), text)
		}
		out = append(out, r)
	}
	return out
}

// after names the recordings that were made before others with the same files: they are played
// first.
var after = map[string][]string{
	"claude-agent-acp-persist-2-load":   {"claude-agent-acp-persist-1"},
	"claude-agent-acp-persist-3-resume": {"claude-agent-acp-persist-1", "claude-agent-acp-persist-2-load"},
	"claude-agent-acp-persist-4-delete": {"claude-agent-acp-persist-1", "claude-agent-acp-persist-2-load", "claude-agent-acp-persist-3-resume"},
}

// TestRecordings plays the client of each recording against the agent, with a scripted agent
// behind it that does what the model and the tools did. What comes back is compared with the
// recording, member by member. Each difference needs a rule, see differences, each rule needs a
// difference, and docs/acp.md has the rules.
func TestRecordings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/recordings/*.ndjson")
	require.NoError(t, err)
	require.Len(t, files, 51)
	rules := differences()
	var compared, played atomic.Int32
	t.Cleanup(func() {
		if t.Failed() || int(played.Load()) < len(files) {
			return // a part of the recordings says nothing about the rules
		}
		for _, r := range rules {
			assert.Positive(t, r.used.Load(), "no recording needs the rule %q any more: remove it, also from docs/acp.md", r.point)
		}
		t.Logf("%d members of %d recordings compared", compared.Load(), len(files))
	})
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".ndjson")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &comparison{rules: rules, qoder: strings.HasPrefix(name, "qodercli"), ids: map[string]string{}, taken: map[string]string{}}
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.missed = func(format string, args ...any) { c.problems = append(c.problems, fmt.Sprintf(format, args...)) }
				for _, before := range after[name] {
					w.play(before)
				}
				c.compare(readRecording(t, name, "<CWD>"), w.play(name))
			})
			assert.Empty(t, c.problems)
			assert.Positive(t, c.lines, "lines that were compared")
			compared.Add(int32(c.points))
			played.Add(1)
		})
	}
}

// TestRecordingsInTheManual: the table of docs/acp.md has exactly the rules of the comparison.
func TestRecordingsInTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/acp.md")
	require.NoError(t, err)
	table := "| point | adapter | Troupe |\n|---|---|---|\n"
	for _, r := range differences() {
		table += "| " + r.point + " | " + r.adapter + " | " + r.troupe + " |\n"
	}
	_, rest, found := strings.Cut(string(page), "| point | adapter | Troupe |\n")
	require.True(t, found, "the table of the differences is missing. It is:\n%s", table)
	got, _, _ := strings.Cut(rest, "\n\n")
	assert.Equal(t, table, "| point | adapter | Troupe |\n"+got+"\n")
}

// world is where recordings are played: a directory, the agent's files, and the ids of sessions
// by those in the recording.
type world struct {
	t         *testing.T
	cwd, root string
	sessions  map[string]string
	missed    func(format string, args ...any) // called when what the recording has did not come in time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, cwd: t.TempDir(), root: t.TempDir(), sessions: map[string]string{}}
	require.NoError(t, os.WriteFile(filepath.Join(w.cwd, "seed.txt"), []byte("seed\n"), 0o600))
	return w
}

// config is the agent's configuration: with files, so that all methods are there.
func (w *world) config(script *scripted.Script) acpagent.Config {
	var c acpagent.Config
	c.Options.Backend = scripted.New(scripted.WithScript(script))
	c.Options.Env = map[string]string{"CLAUDE_CONFIG_DIR": w.root}
	c.CancelGrace, c.AllowDelete = 5*time.Second, true
	c.Sessions = func(dir string) *transcript.Sessions {
		return &transcript.Sessions{Vendor: transcript.Claude, Root: w.root, Dir: dir}
	}
	return c
}

// play plays the client of a recording, and returns what the agent wrote.
func (w *world) play(name string) []*recorded {
	w.t.Helper()
	recording := readRecording(w.t, name, w.cwd)
	script := scriptOf(recording)
	if strings.HasPrefix(name, "qodercli") { // it was not logged in
		script.Dialect, script.Misbehave.Die = agent.Qoder, &scripted.Die{At: agent.BeforeInitResponse, Code: 41}
	}
	c := w.config(script)
	if script.Dialect == agent.Qoder {
		c.Options.Auth = sdk.QoderCLIAuth()
	}
	// The CLI of the recording was killed for good. The other case is in TestCases.
	c.NoRecovery = name == "claude-agent-acp-agent-killed"
	e := newEditor(w.t, c)
	e.missed = w.missed
	e.setPermit(permitted(recording))
	e.mu.Lock()
	e.form = formAnswers(recording)
	e.mu.Unlock()
	for i, r := range recording {
		switch {
		case !r.fromClient() || r.Msg != nil && r.Method == "": // an answer of the client, see permitted
			continue
		case r.Msg == nil:
			w.await(e, recording, i)
			_, err := e.in.Write([]byte(r.Raw))
			require.NoError(w.t, err)
			continue
		}
		w.await(e, recording, i)
		message := object{"jsonrpc": "2.0", "method": r.Method, "params": w.ours(r.Params)}
		if r.ID != nil {
			message["id"] = r.ID
		}
		e.write(message)
	}
	w.await(e, recording, len(recording))
	e.end()
	var out []*recorded
	for _, l := range e.got() {
		r := &recorded{Dir: "agent->client", Msg: json.RawMessage(w.anonymous(l.raw))}
		require.NoError(w.t, json.Unmarshal(r.Msg, &r.wire))
		out = append(out, r)
	}
	zero := 0 // Serve returned without an error
	return append(out, &recorded{Dir: "exit", Code: &zero})
}

// ours are parameters with the sessions of this world.
func (w *world) ours(v any) any {
	switch v := v.(type) {
	case string:
		if id := w.sessions[v]; id != "" {
			return id
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.ours(v[i])
		}
		return out
	case object:
		out := object{}
		for k := range v {
			out[k] = w.ours(v[k])
		}
		return out
	}
	return v
}

// anonymous is a line of the agent as it would be in a recording.
func (w *world) anonymous(line string) string {
	for there, here := range w.sessions {
		line = strings.ReplaceAll(line, here, there)
	}
	return strings.ReplaceAll(line, w.cwd, "<CWD>")
}

// await waits for what the recorded client had read when it wrote its n-th line: the answers and the
// commands, and before a cancel or the end also chunks, calls, requests and turns.
func (w *world) await(e *editor, recording []*recorded, n int) {
	w.t.Helper()
	var want counts
	ends := openUntil(recording, n)
	for i, r := range recording {
		switch {
		case i >= n && (i >= ends || !isChunk(r)) || r.fromClient():
		case r.Method == "" && r.ID != nil && string(r.ID) != "null":
			w.learn(r, e.await("answer to "+string(r.ID), func(l line) bool { return l.Method == "" && string(l.ID) == string(r.ID) }))
		case text(r.Params, "update", "sessionUpdate") == "available_commands_update":
			session := cmp.Or(w.sessions[text(r.Params, "sessionId")], text(r.Params, "sessionId"))
			e.await("commands", func(l line) bool {
				return l.Params.SessionID == session && strings.Contains(l.raw, "available_commands_update")
			})
		default:
			want.add(&r.wire)
		}
	}
	if n < len(recording) && recording[n].Method != acp.MethodSessionCancel || withoutChunks(recording) {
		return
	}
	want.chunks -= doubled(recording)
	if !want.notified { // then how many turns have figures does not matter
		want.turns = 0
	}
	e.await("chunks, calls, requests and turns", func(line) bool { // e.mu is held
		var got counts
		for _, l := range e.lines {
			var m wire
			if json.Unmarshal([]byte(l.raw), &m) == nil {
				got.add(&m)
			}
		}
		return got.chunks >= want.chunks && got.calls >= want.calls && got.requests >= want.requests && got.turns >= want.turns
	})
}

// counts is how much an agent has written.
type counts struct {
	chunks, calls, requests, turns int
	notified                       bool // there was a turn that the agent began itself
}

func (c *counts) add(m *wire) {
	update, _ := m.Params["update"].(object)
	switch kind := text(update, "sessionUpdate"); {
	case m.Method != "" && m.ID != nil:
		c.requests++
	case kind == "agent_message_chunk":
		c.chunks++
	case kind == "tool_call", kind == "tool_call_update" && update["rawInput"] != nil:
		c.calls++
	case kind == "usage_update" && update["cost"] != nil:
		c.turns++
		c.notified = c.notified || text(update, "_meta", "_claude/origin", "kind") == "task-notification"
	}
}

// learn notes the id that a session of the recording has here.
func (w *world) learn(r *recorded, got line) {
	var here struct {
		SessionID string `json:"sessionId"`
	}
	there := text(r.Result, "sessionId")
	if there != "" && json.Unmarshal(got.Result, &here) == nil && here.SessionID != "" {
		w.sessions[there] = here.SessionID
	}
}

// openUntil is the line with the last answer to a prompt that was open when the client wrote its
// n-th line; 0: there is none.
func openUntil(recording []*recorded, n int) (last int) {
	for _, r := range recording[:min(n, len(recording))] {
		if r.request() && r.Method == acp.MethodSessionPrompt {
			if i := slices.Index(recording, answerOf(recording, string(r.ID))); i > n {
				last = max(last, i)
			}
		}
	}
	return last
}

// withoutChunks: there are chunks in the recording that Troupe does not write, see the rules about
// API errors and empty prompts.
func withoutChunks(recording []*recorded) bool {
	return apiError(recording) != 0 || slices.ContainsFunc(recording, func(r *recorded) bool {
		blocks, isPrompt := r.Params["prompt"].([]any)
		return isPrompt && len(blocks) == 0
	})
}

// permitted answers the permission requests of the agent as the client of the recording did, one
// after the other.
func permitted(recording []*recorded) func(line) string {
	var answers []string
	for _, r := range recording {
		if r.Method != acp.MethodSessionRequestPermission {
			continue
		}
		i := slices.IndexFunc(recording, func(a *recorded) bool { return a.fromClient() && a.Method == "" && string(a.ID) == string(r.ID) })
		switch {
		case i < 0:
			answers = append(answers, "never")
		case recording[i].Error != nil:
			answers = append(answers, "error")
		default: // "": cancelled
			answers = append(answers, text(recording[i].Result, "outcome", "optionId"))
		}
	}
	var next atomic.Int32
	return func(line) string {
		if n := int(next.Add(1)); n <= len(answers) {
			return answers[n-1]
		}
		return "never"
	}
}

// formAnswers answers forms as the client of the recording did.
func formAnswers(recording []*recorded) func(line) object {
	return func(line) object {
		for _, r := range recording {
			if answer, ok := r.Result.(object); ok && r.fromClient() && answer["action"] != nil {
				return answer
			}
		}
		return object{}
	}
}

// text is a text inside objects; "" if it is not there.
func text(v any, path ...string) string {
	for _, key := range path {
		o, _ := v.(object)
		v = o[key]
	}
	s, _ := v.(string)
	return s
}
