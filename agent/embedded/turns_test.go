package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// changed is a backend whose agents have other seams.
type changed struct {
	backend.Backend
	change func(*backend.Seams)
}

func (c *changed) Agent(in *dialect.Input) (backend.Agent, error) {
	a, err := c.Backend.Agent(in)
	made := a.NewProgram
	a.NewProgram = func(s backend.Seams) agent.Program {
		c.change(&s)
		return made(s)
	}
	return a, err
}

// later is a clock whose time of day can be moved.
type later struct {
	session.Clock
	by *atomic.Int64
}

func (l later) Now() time.Time { return l.Clock.Now().Add(time.Duration(l.by.Load())) }

// system is what a request says first.
func system(body string) string {
	_, s, _ := strings.Cut(body, `"system":`)
	s, _, _ = strings.Cut(s, `"messages":`)
	return s
}

// The system prompt stays as it is when the date changes, in the session and in one that
// resumes it. The model reads of the new date once.
func TestTheDateChanges(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("one"), say("two"), say("three"), say("four"))
	var by atomic.Int64
	o.Backend = &changed{o.Backend.(backend.Backend), func(s *backend.Seams) { s.Clock = later{s.Clock, &by} }}
	c := open(t, o)
	ask(t, c, mine)
	by.Store(int64(24 * time.Hour))
	ask(t, c, "second")
	require.NoError(t, c.Close(t.Context()))
	next := *o
	next.Resume = c.SessionID()
	d := open(t, &next)
	ask(t, d, "third")
	by.Store(int64(72 * time.Hour))
	ask(t, d, "fourth")
	first := system(seen.all[0])
	assert.Contains(t, first, "Date: "+time.Now().Format("2006-01-02"))
	all := seen.messages()
	for i, body := range seen.all {
		assert.Equal(t, first, system(body), "%d", i)
		if i > 0 {
			assert.True(t, strings.HasPrefix(all[i], all[i-1]), "%d", i)
		}
	}
	assert.Equal(t, 0, strings.Count(all[0], "The date is now"))
	assert.Equal(t, 1, strings.Count(all[1], "The date is now"))
	assert.Equal(t, 1, strings.Count(all[2], "The date is now"))
	assert.Equal(t, 2, strings.Count(all[3], "The date is now"))
}

// A project's instructions are in the prompt if the backend says so, within bounds, and they
// stay what they were for the session.
func TestInstructions(t *testing.T) {
	t.Parallel()
	server, o := started(t, say("one"), say("two"), say("three"))
	seen := &bodies{}
	cfg := embedded.Config{
		Name: "m", Dir: t.TempDir(),
		Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1", Client: &http.Client{Transport: seen}}}),
	}
	top := o.Cwd
	o.Cwd = filepath.Join(top, "sub", "deep")
	require.NoError(t, os.MkdirAll(o.Cwd, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(top, ".git"), 0o755))
	outside := filepath.Join(t.TempDir(), "secret.md")
	for name, text := range map[string]string{
		filepath.Join(top, ".git", "HEAD"):         "ref: refs/heads/topic\n",
		filepath.Join(top, "AGENTS.md"):            "Use tabs at the top.",
		filepath.Join(top, "CLAUDE.md"):            "Use tabs at the top.",
		filepath.Join(top, "sub", "CLAUDE.md"):     "Below, spaces. " + strings.Repeat("x", 40<<10),
		filepath.Join(filepath.Dir(top), "up.txt"): "",
		outside: "a secret",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(o.Cwd, "AGENTS.md")))
	require.NoError(t, exec.Command("mkfifo", filepath.Join(o.Cwd, "CLAUDE.md")).Run())

	o.Backend = embedded.New(cfg)
	run(t, o)
	assert.NotContains(t, system(seen.all[0]), "tabs")
	assert.Contains(t, system(seen.all[0]), "on branch topic")

	cfg.Instructions = true
	o.Backend = embedded.New(cfg)
	c := open(t, o)
	ask(t, c, mine)
	prompt := system(seen.all[1])
	assert.Equal(t, 1, strings.Count(prompt, "Use tabs at the top."), "CLAUDE.md says the same")
	assert.Contains(t, prompt, "Below, spaces. ")
	assert.Contains(t, prompt, "is left out")
	assert.Less(t, len(prompt), 48<<10)
	assert.NotContains(t, prompt, "a secret")
	require.NoError(t, c.Close(t.Context()))

	require.NoError(t, os.WriteFile(filepath.Join(top, "AGENTS.md"), []byte("Now spaces."), 0o600))
	next := *o
	next.Resume = c.SessionID()
	ask(t, open(t, &next), "and now?")
	assert.Equal(t, prompt, system(seen.all[2]))
}

// slow is an endpoint that begins its first answer and does not end it.
func slow(t *testing.T) (url string, bodies func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1<<20)
		n, _ := r.Body.Read(body)
		for k := 1; k > 0; {
			k, _ = r.Body.Read(body[n:])
			n += k
		}
		mu.Lock()
		all = append(all, string(body[:n]))
		first := len(all) == 1
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(text string) { _, _ = fmt.Fprintf(w, "data: %s\n\n", text) }
		event(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`)
		for i, text := range []string{"A whole block.", "Half of"} {
			event(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, i))
			event(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, i, text))
			if i == 1 && first {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			event(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
		}
		event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`)
		event(`{"type":"message_stop"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// underWay is a transport that says when the half of slow's first answer that comes has been
// decoded: the next of it is asked for.
type underWay struct {
	ready chan struct{}
	once  sync.Once
}

func (u *underWay) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = &decoding{ReadCloser: resp.Body, u: u}
	}
	return resp, err
}

type decoding struct {
	io.ReadCloser
	u    *underWay
	text string
}

func (d *decoding) Read(b []byte) (int, error) {
	if strings.Contains(d.text, "Half of") {
		d.u.once.Do(func() { close(d.u.ready) })
	}
	n, err := d.ReadCloser.Read(b)
	d.text += string(b[:n])
	return n, err
}

// The text so far of an interrupted answer is shown, stored, and read by the model.
func TestAnAnswerThatIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, partial := range []bool{false, true} {
		url, bodies := slow(t)
		dir, root := t.TempDir(), t.TempDir()
		under := &underWay{ready: make(chan struct{})}
		o := &sdk.Options{
			Backend: embedded.New(embedded.Config{Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: url, Client: &http.Client{Transport: under}}}), Name: "m", Dir: root}),
			Cwd:     dir, IncludePartialMessages: partial,
		}
		c := open(t, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		turn, err := c.Send(ctx, sdk.UserText("first"))
		require.NoError(t, err)
		select {
		case <-under.ready:
		case <-ctx.Done():
			require.Fail(t, "the answer did not come")
		}
		_, err = c.Interrupt(ctx)
		require.NoError(t, err)
		var said []string
		for msg, err := range turn.Messages(ctx) {
			require.NoError(t, err)
			if a, ok := msg.(*sdk.AssistantMessage); ok {
				var f struct {
					Message struct{ Content []struct{ Text string } }
					Aborted bool
				}
				require.NoError(t, json.Unmarshal(a.Raw(), &f))
				said = append(said, f.Message.Content[0].Text)
				assert.Equal(t, said[len(said)-1] == "Half of", f.Aborted)
			}
		}
		assert.Equal(t, []string{"A whole block.", "Half of"}, said)
		ask(t, c, "second")
		require.NoError(t, c.Close(ctx))
		last := bodies()[1]
		for _, text := range []string{`"text":"A whole block."`, `"text":"Half of"`, `[Request interrupted by user]`, `"text":"second"`} {
			assert.Contains(t, last, text)
		}
		next := *o
		next.Resume = c.SessionID()
		ask(t, open(t, &next), "third")
		cut := func(s string) string {
			_, s, _ = strings.Cut(strings.ReplaceAll(s, `,"cache_control":{"type":"ephemeral"}`, ""), `"messages":[`)
			return strings.TrimSuffix(s, "]}")
		}
		assert.True(t, strings.HasPrefix(cut(bodies()[2]), cut(last)), "%s\n%s", last, bodies()[2])
	}
}

// A session that cannot be stored does nothing: no tool runs, and the turn says so. With
// space again it continues, and no line is lacking.
func TestADiskThatIsFull(t *testing.T) {
	t.Parallel()
	call := modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "echo ran >> log"}))
	for name, op := range map[string]string{"full": "write", "sync": "sync"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, seen := logged(t, call, say("done"), say("resumed"))
			var full atomic.Bool
			o.Backend = &changed{o.Backend.(backend.Backend), func(s *backend.Seams) {
				s.Disk = func(did, path string) error {
					if full.Load() && did == op && strings.HasSuffix(path, ".jsonl") {
						return syscall.ENOSPC
					}
					return nil
				}
			}}
			c := open(t, o)
			full.Store(true)
			r := ask(t, c, mine)
			assert.True(t, r.IsError)
			require.NotEmpty(t, r.Errors)
			assert.Contains(t, r.Errors[0], "the session cannot be stored")
			assert.Contains(t, r.Errors[0], "no space left")
			_, err := os.Stat(filepath.Join(o.Cwd, "log"))
			require.ErrorIs(t, err, os.ErrNotExist, "no tool has run")
			full.Store(false)
			r = ask(t, c, "again")
			if op == "sync" {
				assert.True(t, r.IsError, "nobody knows what the disk has")
				return
			}
			assert.Equal(t, "done", r.Result)
			require.NoError(t, c.Close(t.Context()))
			next := *o
			next.Resume = c.SessionID()
			ask(t, open(t, &next), "resumed?")
			all := seen.messages()
			assert.True(t, strings.HasPrefix(all[len(all)-1], all[len(all)-2]))
		})
	}
}

// A model that makes the same call again and again gets a note, and then its turn ends.
func TestAModelThatRepeatsItself(t *testing.T) {
	t.Parallel()
	var steps []modelapi.Step
	for range 30 {
		steps = append(steps, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "true"})))
	}
	o, seen := logged(t, steps...)
	var mu sync.Mutex
	var events []session.RepeatedCall
	o.OnEvent = func(r sdk.EventRecord) {
		if e, ok := r.Event.(*session.RepeatedCall); ok {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, *e)
		}
	}
	c := open(t, o)
	r := ask(t, c, mine)
	assert.True(t, r.IsError)
	assert.Equal(t, []string{"the turn was ended: the model made the same call of Bash with the same result 15 times"}, r.Errors)
	all := seen.messages()
	assert.Len(t, all, 15)
	assert.NotContains(t, all[4], "You have made the same call")
	assert.Contains(t, all[5], "You have made the same call of Bash 5 times")
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(events) == 2 }, time.Minute, time.Millisecond)
	assert.Equal(t, []session.RepeatedCall{{Tool: "Bash", Times: 5}, {Tool: "Bash", Times: 15, Ended: true}}, events)
}

// The model reads a message that comes during a call behind its result.
func TestAMessageDuringATool(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "echo > up; until [ -e go ]; do sleep 0.01; done"})), say("done"), say("resumed"))
	c := open(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, err := c.Send(ctx, sdk.UserText(mine))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(o.Cwd, "up"))
		return err == nil
	}, time.Minute, time.Millisecond)
	_, err = c.Send(ctx, sdk.UserText("Mind the gap."))
	require.NoError(t, err)
	require.NoError(t, c.SetPermissionMode(ctx, sdk.ModeBypassPermissions)) // the agent has read the message when it answers
	require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "go"), nil, 0o600))
	r, err := first.Result(ctx)
	require.NoError(t, err)
	assert.Equal(t, "done", r.Result)
	require.NoError(t, c.Close(ctx))
	next := *o
	next.Resume = c.SessionID()
	ask(t, open(t, &next), "and now?")
	all := seen.messages()
	require.Len(t, all, 3)
	assert.Contains(t, all[1], `The user sent a new message while you were working:\nMind the gap.`)
	assert.True(t, strings.HasPrefix(all[2], all[1]))
}

// A key that is refused ends the turn as that of a CLI does, and the host learns it.
func TestAKeyThatIsRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o, seen := logged(t, modelapi.Always(modelapi.Reply{Fault: &modelapi.Fault{Status: 401, Type: "authentication_error", Times: 9}}))
	_, err := sdk.Run(ctx, mine, o)
	require.Error(t, err, "the turn is interrupted at the first refusal")
	assert.Len(t, seen.messages(), 1)

	o, _ = logged(t, modelapi.Always(modelapi.Reply{Fault: &modelapi.Fault{Status: 403, Type: "permission_error", Times: 9}}))
	told := make(chan string, 1)
	o.OnAuthExpired = func(reason string) { told <- reason }
	_, err = sdk.Run(ctx, mine, o)
	require.Error(t, err)
	select {
	case reason := <-told:
		assert.Contains(t, reason, "Failed to authenticate")
	case <-ctx.Done():
		require.Fail(t, "the host was not told")
	}
}

// The first output of a turn that a hook blocks, what hooks add, and what they say to the
// person, in a session that is resumed, too.
func TestWhatHooksSay(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "exit 3"}), modelapi.ToolUse("Read", map[string]any{"file_path": "a.txt"})), say("done"), say("really done"), say("resumed"))
	require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "a.txt"), []byte("one\n"), 0o600))
	stops := 0
	o.Hooks = []sdk.Hook{
		sdk.OnUserPromptSubmit(func(context.Context, *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
			return sdk.UserPromptSubmitOutput{AdditionalContext: "about the prompt"}, nil
		}),
		sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{AdditionalContext: "before " + in.ToolName}, nil
		}),
		sdk.OnPostToolUse(func(_ context.Context, in *protocol.PostToolUseInput) (sdk.PostToolUseOutput, error) {
			return sdk.PostToolUseOutput{AdditionalContext: "after " + in.ToolName}, nil
		}),
		sdk.OnPostToolUseFailure(func(_ context.Context, in *protocol.PostToolUseFailureInput) (sdk.FeedbackOutput, error) {
			return sdk.FeedbackOutput{AdditionalContext: "failed " + in.ToolName}, nil
		}),
		sdk.OnStop(func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
			if stops++; stops == 1 {
				return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "not yet"}, nil
			}
			return sdk.FeedbackOutput{}, nil
		}),
	}
	c := open(t, o)
	assert.Equal(t, "really done", ask(t, c, mine).Result)
	require.NoError(t, c.Close(t.Context()))
	next := *o
	next.Resume, next.Hooks = c.SessionID(), nil
	ask(t, open(t, &next), "and now?")
	all := seen.messages()
	require.Len(t, all, 4)
	assert.Contains(t, all[0], "UserPromptSubmit hook additional context: about the prompt")
	assert.Contains(t, all[1], `PreToolUse:Bash hook additional context: before Bash\n\nPostToolUseFailure:Bash hook additional context: failed Bash\n\nPreToolUse:Read hook additional context: before Read\n\nPostToolUse:Read hook additional context: after Read`)
	assert.Contains(t, all[2], `Stop hook feedback:\nnot yet`)
	assert.Contains(t, all[2], `Stop:Callback hook blocking error from command: \"callback\": not yet`)
	for i := 1; i < len(all); i++ {
		assert.True(t, strings.HasPrefix(all[i], all[i-1]), "%d", i)
	}
}

// The host reads of odd answers what Claude Code 2.1.329 writes (observed).
func TestWhatFramesSayOfOddAnswers(t *testing.T) {
	t.Parallel()
	answers := []modelapi.Reply{
		{Blocks: []modelapi.Block{modelapi.Text(" \n"), modelapi.ToolUse("mcp__srv__nothing", map[string]any{}), modelapi.ToolUse("KillShell", map[string]any{"shell_id": "x"})}},
		{Blocks: []modelapi.Block{modelapi.Text("no call")}, Stop: "tool_use"},
		{Blocks: []modelapi.Block{modelapi.Text("stopped")}, Stop: "refusal"},
		{Blocks: []modelapi.Block{modelapi.Text("stopped again")}, Stop: "refusal"},
	}
	var calls atomic.Int64
	next := func(modelapi.Call) modelapi.Reply { return answers[calls.Add(1)-1] }
	o, seen := logged(t, next, next, next, next)
	added := t.TempDir()
	o.AdditionalDirectories = []string{added}
	c := open(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turn, err := c.Send(ctx, sdk.UserText(mine))
	require.NoError(t, err)
	var frames []string
	var result *sdk.ResultMessage
	for msg, err := range turn.Messages(ctx) {
		require.NoError(t, err)
		switch m := msg.(type) {
		case *protocol.InitMessage:
			assert.Equal(t, []string{added}, m.AdditionalDirectories)
		case *sdk.AssistantMessage:
			frames = append(frames, string(m.Raw()))
		case *sdk.ResultMessage:
			result = m
		}
	}
	require.Len(t, frames, 6, strings.Join(frames, "\n"))
	assert.Contains(t, frames[0], `"tool_use_meta":[{"display_name":"Nothing","id":"`, "the white space is not shown, and no server has the tool")
	assert.NotContains(t, frames[0], "server_display_name")
	assert.Contains(t, frames[1], `"name":"KillShell"`)
	assert.Contains(t, seen.messages()[1], `"name":"TaskStop"`)
	assert.NotContains(t, seen.messages()[1], `"name":"KillShell"`)
	var retracted struct{ UUID string }
	require.NoError(t, json.Unmarshal([]byte(frames[2]), &retracted))
	assert.Contains(t, frames[3], `"supersedes":["`+retracted.UUID+`"]`)
	assert.NotContains(t, frames[4], "supersedes")
	assert.Contains(t, frames[5], `"refused_message_id":"`)
	assert.Contains(t, frames[5], `"request_id":"`)
	require.NotNil(t, result)
	assert.Contains(t, string(result.Raw()), `"safety_stops":2`)
	assert.NotContains(t, string(result.Raw()), "first_request_input_tokens", "it says nothing of the answers before")
}

// A connection that fails, and answers that are never whole, have a kind.
func TestKindsOfFailures(t *testing.T) {
	t.Parallel()
	for kind, step := range map[string]modelapi.Reply{
		"connection_failed": {Fault: &modelapi.Fault{Times: 99}},
		"max_output_tokens": {Blocks: []modelapi.Block{modelapi.Text("and")}, Stop: "max_tokens"},
	} {
		server, o := started(t, slices.Repeat([]modelapi.Step{modelapi.Always(step)}, 5)...)
		m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1"}})
		o.Backend = embedded.New(embedded.Config{Model: m, Name: "m", Dir: t.TempDir(), Retries: -1})
		r := ask(t, open(t, o), mine)
		assert.True(t, r.IsError)
		assert.Equal(t, kind, r.APIError)
	}
}

// An answer that breaks off behind a call is shown, and its cost estimated, as observed on Claude Code 2.1.329, unless the endpoint says why it ends.
func TestAnAnswerThatBreaksOffBehindACall(t *testing.T) {
	t.Parallel()
	for what, broken := range map[string]modelapi.Reply{
		"Connection lost": {Cut: &modelapi.Cut{Events: 4, Times: 9, Clean: true}},
		"Server error":    {Broken: &modelapi.Fault{Type: "overloaded_error", Message: "Overloaded"}},
	} {
		broken.Blocks = []modelapi.Block{modelapi.ToolUse("Read", map[string]any{"file_path": strings.Repeat("a", 300)})}
		o, _ := logged(t, modelapi.Always(broken), say("ok"))
		c := open(t, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		turn, err := c.Send(ctx, sdk.UserText(mine))
		require.NoError(t, err)
		var frames []string
		for msg, err := range turn.Messages(ctx) {
			require.NoError(t, err)
			if a, ok := msg.(*sdk.AssistantMessage); ok {
				frames = append(frames, string(a.Raw()))
			}
		}
		require.Len(t, frames, 3, what)
		assert.Contains(t, frames[1], "API Error: "+what+" mid-response.")
		assert.Contains(t, frames[1], `"stop_reason":"tool_use","stop_sequence":null`)
		assert.NotContains(t, frames[1], `"request_id"`)
		assert.Equal(t, what == "Connection lost", strings.Contains(frames[1], `"api_error":"connection_failed"`))
		r, err := turn.Result(ctx)
		require.NoError(t, err)
		assert.Equal(t, what == "Connection lost", r.ModelUsage["claude-sonnet-4-5"].OutputTokens > 100, what)
	}
}
