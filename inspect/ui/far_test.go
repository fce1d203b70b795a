package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
)

// talks opens a session in the other program, whose agent stores what it says.
func (f *far) talks(t *testing.T) *runtime.Session {
	t.Helper()
	script := &scripted.Script{Transcript: true, Turns: []scripted.Turn{{When: "go", Steps: scripted.Steps{scripted.Text("the answer \x1b[2J\u202e")}}}}
	s, err := f.rt.Open(t.Context(), runtime.Spec{ID: "talks", Dialect: claude.New(), Program: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))})
	require.NoError(t, err)
	go func() {
		for _, err := range s.Messages(t.Context()) { // the session waits for its reader
			if err != nil {
				return
			}
		}
	}()
	return s
}

// TestTheTranscriptOfAnotherProgram is read in pages, searched, and followed while it is written.
func TestTheTranscriptOfAnotherProgram(t *testing.T) {
	t.Parallel()
	content := inspect.Access{Content: true}
	f := newFar(t, content)
	s := f.talks(t)
	const turns = 150
	for i := range turns {
		_, err := send(t, s, fmt.Sprintf("go %d.", i)).Result(t.Context())
		require.NoError(t, err)
	}
	p := looksAt(t, content, f.host)
	prompts, at, pages := 0, int64(0), 0
	for more := true; more; pages++ {
		var part messagesPart
		p.read(fmt.Sprintf("api/sessions/talks/messages?host=77&limit=100000&before=%d", at), &part)
		require.NotEmpty(t, part.Messages)
		assert.LessOrEqual(t, len(part.Messages), 200, "a page is bounded by the program that has the session")
		for _, m := range part.Messages {
			if m.Type == "user" {
				prompts++
			}
		}
		at, more = part.Messages[0].Seq, part.More
	}
	assert.Equal(t, turns, prompts, "each once")
	assert.Equal(t, 2, pages)
	var found messagesPart
	p.read("api/sessions/talks/messages?host=77&limit=10&find=go+7.", &found)
	assert.Contains(t, string(found.Messages[0].Message), "go 7.")
	_, text, _ := p.get("api/sessions/talks/messages?host=77&limit=2")
	assert.Contains(t, text, "the answer")
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "\u202e")
	var life runtime.Timeline
	p.read("api/sessions/talks/timeline?host=77", &life)
	assert.NotEmpty(t, life.Turns)
	var options map[string]any
	p.read("api/sessions/talks/options?host=77", &options)
	assert.NotEmpty(t, options)
	for path, want := range map[string]int{"sessions/none/messages?host=77": 404, "sessions/talks/messages?host=78": 404, "sessions/talks/messages": 404} {
		status, text, _ := p.get("api/" + path)
		assert.Equal(t, want, status, "%s: %s", path, text)
	}

	ticks := 0
	p.followSession("host:77/talks", func(fr frame) bool {
		if fr.kind == "tick" {
			if ticks++; ticks > 1 { // until the other window follows the session, what is said is not seen
				send(t, s, "go on")
			}
		}
		if fr.kind != "message" {
			return false
		}
		assert.Equal(t, "host:77/talks", fr.data["session"])
		raw, err := json.Marshal(fr.data)
		require.NoError(t, err)
		return strings.Contains(string(raw), "the answer")
	})
}

// TestATranscriptNeedsBothWindows: both have Access.Content, or no message leaves the program that has it.
func TestATranscriptNeedsBothWindows(t *testing.T) {
	t.Parallel()
	content := inspect.Access{Content: true}
	for name, c := range map[string]struct {
		there, here inspect.Access
		whose       string
	}{
		"not there": {inspect.Access{Steer: true}, content, "that program"},
		"not here":  {content, inspect.Access{Steer: true}, "this window"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t, c.there)
			s := f.talks(t)
			p := looksAt(t, c.here, f.host)
			for _, what := range []string{"messages", "options"} {
				status, text, _ := p.get("api/sessions/talks/" + what + "?host=77")
				assert.Equal(t, http.StatusForbidden, status)
				assert.Contains(t, text, c.whose)
			}
			var life runtime.Timeline
			p.read("api/sessions/talks/timeline?host=77", &life)
			ticks := 0
			p.followSession("host:77/talks", func(fr frame) bool {
				assert.NotContains(t, []string{"message", "delta"}, fr.kind)
				if fr.kind == "tick" {
					ticks++
					send(t, s, "go on")
				}
				return ticks == 4
			})
		})
	}
}

// TestAHostWithoutTranscripts has sessions, and no more.
func TestAHostWithoutTranscripts(t *testing.T) {
	t.Parallel()
	f := newFar(t, inspect.Access{Content: true})
	f.talks(t)
	p := looksAt(t, inspect.Access{Content: true}, onlyHost{f.host})
	for _, what := range []string{"messages", "options", "timeline"} {
		status, _, _ := p.get("api/sessions/talks/" + what + "?host=77")
		assert.Equal(t, http.StatusNotFound, status)
	}
}

// onlyHost is a host of another kind than a socket.
type onlyHost struct{ ui.Host }
