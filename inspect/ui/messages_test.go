package ui_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
)

// TestMessagesOfAWatchedSession has a prompt, a text that streams, and one that is too long.
func TestMessagesOfAWatchedSession(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	p := serve(t, ui.Handler(rt, open())).enter("")
	turn := scripted.Turn{Steps: scripted.Steps{
		scripted.Text("hello \x1b[2J\u202e"), scripted.Text(strings.Repeat("é", 100_000)),
	}}
	turns := make([]scripted.Turn, 50)
	for i := range turns {
		turns[i] = turn
	}
	s := openSession(t, rt, "s", turns, func(spec *runtime.Spec) { spec.Options.IncludePartialMessages = true })
	go func() {
		for _, err := range s.Messages(t.Context()) { // the session waits for its reader
			if err != nil {
				return
			}
		}
	}()
	streams := map[float64]string{}
	var kinds []string
	var first map[string]any
	ticks := 0
	pages := func() { // while the session is watched
		var answer struct {
			Messages []map[string]any
			More     bool
		}
		p.read("api/sessions/s/messages?limit=1", &answer)
		require.Len(t, answer.Messages, 1)
		assert.True(t, answer.More)
		last := answer.Messages[0]["seq"].(float64)
		raw, err := json.Marshal(int64(last))
		require.NoError(t, err)
		p.read("api/sessions/s/messages?before="+string(raw), &answer)
		assert.Less(t, answer.Messages[len(answer.Messages)-1]["seq"].(float64), last)
	}
	p.followSession("s", func(f frame) bool {
		switch f.kind {
		case "tick":
			if ticks++; ticks == 2 { // the session is watched
				send(t, s, "the prompt")
			}
		case "delta":
			streams[f.data["seq"].(float64)] += f.data["text"].(string)
		case "message":
			kinds = append(kinds, f.data["type"].(string))
			if f.data["type"] != "assistant" {
				break
			}
			text := f.data["message"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"].(string)
			if first == nil && !strings.Contains(text, "hello") { // on a busy machine it came before the window looked
				send(t, s, "the prompt, again")
				break
			}
			if first == nil {
				first = f.data
				assert.Contains(t, text, "hello")
				break
			}
			assert.Equal(t, true, f.data["cut"])
			assert.Greater(t, f.data["size"].(float64), 200_000.0)
			assert.Less(t, len(text), 5000)
			pages()
			return true
		}
		return false
	})
	assert.Contains(t, kinds, "user")
	if len(streams) > 0 { // the agent streams
		assert.Contains(t, streams, first["seq"], "the whole text has the number of the one that streamed")
	}
	assert.NotEmpty(t, first["uuid"])
	status, text, _ := p.get("api/sessions/s/messages")
	assert.Equal(t, http.StatusOK, status)
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "\u202e")
}

// TestNoMessagesWithoutContent is a window that must not show them.
func TestNoMessagesWithoutContent(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	job := newJob()
	p := serve(t, ui.Handler(rt, ui.Config{Access: inspect.Access{Steer: true}, Jobs: func() []ui.Job { return []ui.Job{job} }})).enter("")
	s := openSession(t, rt, "s", []scripted.Turn{{Steps: scripted.Steps{scripted.Text("secret")}}}, nil)
	for _, path := range []string{"api/sessions/s/messages", "api/jobs/job/tasks/t/transcript"} {
		status, text, _ := p.get(path)
		assert.Equal(t, http.StatusForbidden, status, path)
		assert.Contains(t, text, "Access.Content")
	}
	sent := false
	ticks := 0
	p.followSession("s", func(f frame) bool {
		raw, err := json.Marshal(f.data)
		require.NoError(t, err)
		assert.NotContains(t, string(raw), "secret")
		if f.kind == "tick" {
			if ticks++; !sent {
				sent = true
				send(t, s, "a secret prompt")
			}
		}
		return ticks == 3
	})
}

// TestTranscriptOfATask is read in parts.
func TestTranscriptOfATask(t *testing.T) {
	t.Parallel()
	job := newJob()
	cfg := open()
	cfg.Jobs = func() []ui.Job { return []ui.Job{job} }
	p := serve(t, ui.Handler(newRuntime(t), cfg)).enter("")
	var answer struct {
		Lines []map[string]any
		Next  *int64
	}
	p.read("api/jobs/job/tasks/t/transcript", &answer)
	assert.Len(t, answer.Lines, 3)
	assert.Nil(t, answer.Next)
	at := answer.Lines[1]["seq"].(float64)
	raw, err := json.Marshal(int64(at))
	require.NoError(t, err)
	p.read("api/jobs/job/tasks/t/transcript?at="+string(raw), &answer)
	assert.Len(t, answer.Lines, 2)
	status, _, _ := p.get("api/jobs/job/tasks/none/transcript")
	assert.Equal(t, http.StatusNotFound, status)
	status, _, _ = p.get("api/jobs/none/tasks/t/transcript")
	assert.Equal(t, http.StatusNotFound, status)
}

// A reader gets a frame when a session is watched, and a reader that comes back gets what was said meanwhile.
func TestAReaderThatComesBack(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	p := serve(t, ui.Handler(rt, open())).enter("")
	s := openSession(t, rt, "s", make([]scripted.Turn, 3), nil)
	go func() {
		for _, err := range s.Messages(t.Context()) { // the session waits for its reader
			if err != nil {
				return
			}
		}
	}()
	var last string
	numbers := map[string]float64{}
	prompts := func(want string) func(frame) bool {
		return func(f frame) bool {
			if f.id != "" {
				last = f.id
			}
			if f.kind == "message" {
				said, err := json.Marshal(f.data["message"])
				require.NoError(t, err)
				for _, text := range []string{"one", "two", "three"} {
					if strings.Contains(string(said), text) {
						numbers[text] = f.data["seq"].(float64)
					}
				}
			}
			return numbers[want] != 0
		}
	}
	p.followSession("s", func(f frame) bool {
		if f.kind == "watching" {
			assert.Equal(t, map[string]any{"session": "s"}, f.data)
			send(t, s, "one") // from here on nothing is missing
		}
		return prompts("one")(f)
	})
	_, err := send(t, s, "two").Result(t.Context()) // the connection is lost
	require.NoError(t, err)
	_, err = send(t, s, "three").Result(t.Context())
	require.NoError(t, err)
	p.stream("?session=s", last, prompts("three"))
	assert.Less(t, numbers["one"], numbers["two"])
	assert.Less(t, numbers["two"], numbers["three"])
}
