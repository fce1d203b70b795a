package ui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// frame is one message of the stream.
type frame struct {
	id, kind string
	data     map[string]any
}

// follow reads the stream until the test ends or each returns true.
func (p *page) follow(since string, each func(frame) (enough bool)) {
	p.t.Helper()
	p.stream("", since, each)
}

// followSession is follow with the messages of a session.
func (p *page) followSession(id string, each func(frame) (enough bool)) {
	p.t.Helper()
	p.stream("?session="+id, "", each)
}

// awaitEvents returns when the stream has the events of a runtime: a window that gets its first reader begins to
// read them at some time after it has answered.
func (p *page) awaitEvents(rt *runtime.Runtime) {
	p.t.Helper()
	p.follow("", func(f frame) bool {
		if f.kind == "tick" {
			rt.Steered("", "the test", "a try")
		}
		return f.kind == "event" && f.data["who"] == "the test"
	})
}

func (p *page) stream(query, since string, each func(frame) (enough bool)) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), time.Minute)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"events"+query, http.NoBody)
	require.NoError(p.t, err)
	if since != "" {
		r.Header.Set("Last-Event-Id", since)
	}
	resp, err := p.http.Do(r)
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(p.t, http.StatusOK, resp.StatusCode)
	assert.Equal(p.t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
	var f frame
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "id":
			f.id = value
		case "event":
			f.kind = value
		case "data":
			require.NoError(p.t, json.Unmarshal([]byte(value), &f.data), value)
		case "":
			if each(f) {
				return
			}
			f = frame{}
		}
	}
	require.NoError(p.t, ctx.Err(), "the frames that the test waits for did not come")
}

// openSession opens a session of a scripted agent.
func openSession(t *testing.T, rt *runtime.Runtime, id string, turns []scripted.Turn, change func(*runtime.Spec)) *runtime.Session {
	t.Helper()
	spec := runtime.Spec{ID: id, Dialect: claude.New(), Program: scripted.New(scripted.WithScript(&scripted.Script{Turns: turns}))}
	if change != nil {
		change(&spec)
	}
	s, err := rt.Open(t.Context(), spec)
	require.NoError(t, err)
	return s
}

func send(t *testing.T, s *runtime.Session, text string) *runtime.Turn {
	t.Helper()
	turn, err := s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(text)}})
	require.NoError(t, err)
	return turn
}

// TestTheStreamOfASession has a session from its start to its end, and a child that crashes
// meanwhile.
func TestTheStreamOfASession(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	p := serve(t, ui.Handler(rt, open())).enter("mira")
	p.awaitEvents(rt)
	crash, ref := session.NewChild(supervisor.Child{Name: "watch"}, func() session.Behavior[string] {
		return session.Behavior[string]{Handle: func(context.Context, string) error { return errors.New("no \x1b[2J\u202e luck") }}
	})
	var s *runtime.Session
	steps := 0
	states := []string{}
	next := func() { steps++ }
	p.follow("", func(f frame) bool {
		switch {
		case steps == 0 && f.kind == "hello":
			assert.Equal(t, "mira", f.data["who"])
			assert.NotEmpty(t, f.data["csrf"])
			s = openSession(t, rt, "s", nil, func(spec *runtime.Spec) { spec.Options.Children = []*session.Child{crash} })
			next()
		case steps == 1 && f.kind == "session":
			row := f.data["sessions"].([]any)[0].(map[string]any)
			assert.Equal(t, "s", row["id"])
			if row["state"] == "ready" {
				require.NoError(t, ref.Send("crash"))
				next()
			}
		case steps == 2 && f.kind == "actor":
			name, _, _ := strings.Cut(f.data["name"].(string), "#")
			assert.Equal(t, "watch", name)
			assert.Equal(t, "s", f.data["session"])
			states = append(states, f.data["state"].(string))
			if f.data["state"] == "running" {
				assert.Equal(t, "watch#2", f.data["name"])
				assert.InEpsilon(t, 1.0, f.data["restarts"], 0)
				next()
			}
		case steps == 3 && f.kind == "tick":
			if counts := f.data["states"].(map[string]any); counts["ready"] == 1.0 {
				require.NoError(t, s.Close(t.Context()))
				next()
			}
		case steps == 4 && f.kind == "session":
			row := f.data["sessions"].([]any)[0].(map[string]any)
			assert.Equal(t, "s", row["id"])
			return row["state"] == "closed"
		}
		return false
	})
	assert.Equal(t, []string{"crashed", "restarting", "running"}, states)
}

// TestTheStreamResumes is a page whose connection was lost.
func TestTheStreamResumes(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	p := serve(t, ui.Handler(rt, open())).enter("")
	var last string
	p.follow("", func(f frame) bool {
		last = f.id
		return f.kind == "tick"
	})
	var kinds []string
	p.follow(last, func(f frame) bool {
		kinds = append(kinds, f.kind)
		if f.kind == "hello" {
			assert.Equal(t, last, f.id)
		}
		return f.kind == "tick"
	})
	assert.NotContains(t, kinds, "resync")
	p.follow("7", func(f frame) bool {
		if f.kind == "resync" {
			assert.NotEmpty(t, f.data["reason"])
			return true
		}
		return f.kind == "tick" && assert.Fail(t, "no resync")
	})
}

// TestAReaderThatStalls does not keep the others, nor the window's end.
func TestAReaderThatStalls(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	w := ui.Handler(rt, open())
	p := serve(t, w).enter("")
	stalled, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+"events", http.NoBody)
	require.NoError(t, err)
	resp, err := p.http.Do(stalled) // and reads nothing
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	n := 0
	p.follow("", func(f frame) bool {
		if f.kind == "tick" {
			n++
		}
		return n == 2
	})
	w.Close()
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err, "the stream has an end")
	status, _, _ := p.get("events")
	assert.Equal(t, http.StatusServiceUnavailable, status)
}

// TestTheEndOfTheRuntime ends the streams.
func TestTheEndOfTheRuntime(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t)
	p := serve(t, ui.Handler(rt, open())).enter("")
	ended := false
	p.followToEnd(func(f frame) {
		if f.kind == "tick" && !ended {
			ended = true
			require.NoError(t, rt.Shutdown(context.Background()))
		}
	})
	assert.True(t, ended)
}

// followToEnd reads the stream until the window ends it.
func (p *page) followToEnd(each func(frame)) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+"events", http.NoBody)
	require.NoError(p.t, err)
	resp, err := p.http.Do(r)
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			each(frame{kind: kind})
		}
	}
}
