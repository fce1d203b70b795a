package embedded_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// bodies keeps the requests that a client makes.
type bodies struct {
	mu  sync.Mutex
	all []string
}

func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.all = append(b.all, string(text))
	b.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(text))
	return http.DefaultTransport.RoundTrip(r)
}

// messages are the messages of the requests, without the marks of the cache and the end.
func (b *bodies) messages() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, body := range b.all {
		body = strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, "")
		_, list, _ := strings.Cut(body, `"messages":[`)
		all = append(all, strings.TrimSuffix(list, "]}"))
	}
	return all
}

// logged is a session with stored files, and what it asks the model.
func logged(t *testing.T, steps ...modelapi.Step) (*sdk.Options, *bodies) {
	t.Helper()
	server, o := started(t, steps...)
	seen := &bodies{}
	o.Backend = embedded.New(embedded.Config{
		Name: "claude-sonnet-4-5", Dir: t.TempDir(),
		Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1", Client: &http.Client{Transport: seen}}}),
	})
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	return o, seen
}

func TestEachRequestBeginsWithTheOneBefore(t *testing.T) {
	t.Parallel()
	read := modelapi.Say(modelapi.Thinking("hm"), modelapi.Text("I look."), modelapi.ToolUse("Read", map[string]any{"file_path": "a.txt"}), modelapi.ToolUse("Bash", map[string]any{"command": "exit 3"}))
	o, seen := logged(t, read, modelapi.Say(modelapi.Text("done")), read, modelapi.Say(modelapi.Text("again")), modelapi.Say(modelapi.Text("resumed")), modelapi.Say(modelapi.Text("forked")))
	require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "a.txt"), []byte("one\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	r, err := sdk.Run(ctx, mine, o)
	require.NoError(t, err)
	first := r.SessionID
	for _, fork := range []bool{false, true} {
		next := *o
		next.Resume, next.ForkSession = first, fork
		r, err = sdk.Run(ctx, "go on", &next)
		require.NoError(t, err)
		assert.Equal(t, fork, r.SessionID != first)
	}
	all := seen.messages()
	require.GreaterOrEqual(t, len(all), 4)
	for i := 1; i < len(all); i++ {
		if i == len(all)-1 {
			break // the fork begins with what the first life had, which is checked below
		}
		assert.True(t, strings.HasPrefix(all[i], all[i-1]), "request %d\n%s\n%s", i, all[i-1], all[i])
	}
	assert.True(t, strings.HasPrefix(all[len(all)-1], all[1]), "the fork")
	assert.Contains(t, all[len(all)-1], `"thinking":"hm"`)
}

// Without a home, the sessions are not those of Claude Code.
func TestSessionsWithoutAHome(t *testing.T) {
	t.Parallel()
	_, err := sdk.Sessions(&sdk.Options{
		Backend:  embedded.New(embedded.Config{Model: model.NewOpenAI(model.OpenAIConfig{}), Name: "m"}),
		CleanEnv: true, Env: map[string]string{"CLAUDE_CONFIG_DIR": t.TempDir()},
	})
	require.ErrorContains(t, err, "option Env (embedded): has no HOME, so the directory of the sessions is not known; set HOME, or TROUPE_EMBEDDED_DIR")
}

func TestSessionsAreReadable(t *testing.T) {
	t.Parallel()
	server, o := started(t, modelapi.Say(modelapi.Text("done")))
	root := t.TempDir()
	o.Backend = embedded.New(embedded.Config{Name: "m", Dir: root, Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1"}})})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := sdk.Run(ctx, "Say it. "+mine, o)
	require.NoError(t, err)
	s := transcript.Sessions{Vendor: transcript.Claude, Root: root}
	list, err := s.List(t.Context(), transcript.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, r.SessionID, list[0].SessionID)
	assert.Contains(t, list[0].Summary, "Say it.")
	same, err := sdk.Sessions(o)
	require.NoError(t, err)
	assert.Equal(t, root, same.Root)
	file, err := same.Open(t.Context(), r.SessionID)
	require.NoError(t, err)
	resumed, err := file.Resumed()
	require.NoError(t, err)
	texts := ""
	for m, err := range resumed.Messages() {
		require.NoError(t, err)
		texts += m.Type + ": " + m.Text() + "\n"
	}
	assert.Contains(t, texts, "assistant: done")
	assert.Empty(t, resumed.Repairs)
	require.NoError(t, file.Close())

	o.PersistSession = sdk.Some(false)
	run(t, o)
	list, err = s.List(t.Context(), transcript.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list, 1, "what is not to be stored is not")
}

// A note of an interrupt, and what the user says meanwhile, is read by the model.
func TestTheModelReadsOfAnInterrupt(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "echo > up; sleep 100"})), modelapi.Say(modelapi.Text("ok")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := connect(t, o)
	require.NoError(t, err)
	turn, err := c.Send(ctx, sdk.UserText(mine))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(o.Cwd, "up"))
		return err == nil
	}, time.Minute, time.Millisecond)
	_, err = c.Interrupt(ctx)
	require.NoError(t, err)
	_, err = turn.Result(ctx)
	require.NoError(t, err)
	turn, err = c.Send(ctx, sdk.UserText("and now?"))
	require.NoError(t, err)
	_, err = turn.Result(ctx)
	require.NoError(t, err)
	require.NoError(t, c.Close(ctx))
	all := seen.messages()
	last := all[len(all)-1]
	assert.True(t, strings.HasPrefix(last, all[0]))
	assert.Contains(t, last, "The user doesn't want to proceed")
	assert.Contains(t, last, "[Request interrupted by user for tool use]")
	assert.Contains(t, last, "and now?")
}

// A passivated session continues where it was.
func TestAPassivatedSession(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, modelapi.Say(modelapi.Text("one")), modelapi.Say(modelapi.Text("two")))
	o.PassivateAfter = time.Millisecond
	passivated := make(chan struct{}, 1)
	o.OnEvent = func(r sdk.EventRecord) {
		if e, ok := r.Event.(*session.StateChanged); ok && e.To == session.StatePassivated.String() {
			select {
			case passivated <- struct{}{}:
			default:
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := connect(t, o)
	require.NoError(t, err)
	for _, prompt := range []string{mine, "and then?"} {
		turn, err := c.Send(ctx, sdk.UserText(prompt))
		require.NoError(t, err)
		_, err = turn.Result(ctx)
		require.NoError(t, err)
		select {
		case <-passivated:
		case <-ctx.Done():
			require.Fail(t, "it was not passivated")
		}
	}
	require.NoError(t, c.Close(ctx))
	all := seen.messages()
	require.Len(t, all, 2)
	assert.True(t, strings.HasPrefix(all[1], all[0]), "%s\n%s", all[0], all[1])
}

// A session that is resumed without being stored has its conversation, and its file stays as
// it was. An id that leads to another file has no session.
func TestResumeWithoutStoring(t *testing.T) {
	t.Parallel()
	root, seen := t.TempDir(), &bodies{}
	server, o := started(t, modelapi.Say(modelapi.Text("one")), modelapi.Say(modelapi.Text("two")))
	o.Backend = embedded.New(embedded.Config{
		Name: "m", Dir: root,
		Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1", Client: &http.Client{Transport: seen}}}),
	})
	r := run(t, o)
	files, err := filepath.Glob(filepath.Join(root, "projects", "*", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	before, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "other.jsonl"), before, 0o600))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.Resume, o.PersistSession = r.SessionID, sdk.Some(false)
	r, err = sdk.Run(ctx, "and then?", o)
	require.NoError(t, err)
	assert.Equal(t, "two", r.Result)
	all := seen.messages()
	assert.True(t, strings.HasPrefix(all[1], all[0]))
	after, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))

	o.Resume = "../../other"
	_, err = sdk.Run(ctx, "and then?", o)
	require.ErrorContains(t, err, "No conversation found")
	assert.Len(t, seen.messages(), 2)
}
