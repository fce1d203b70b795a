package ui_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
)

// pretends is a host that answers as the handlers say, by path. Without one for it, it has a session and no more.
func pretends(t *testing.T, answers map[string]http.HandlerFunc) ui.Host {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Mkdir(dir, 0o700))
	socket := filepath.Join(dir, "66.sock")
	l, err := net.Listen("unix", socket) //nolint:noctx // closed with the server
	if err != nil {
		t.Skip("no socket here: ", err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		answer := answers[r.URL.Path]
		switch {
		case answer != nil:
			answer(rw, r)
		case r.URL.Path == "/api/tree":
			_, _ = io.WriteString(rw, `{"host":{"pid":66},"tree":{"sessions":[{"id":"far","state":"running"}]}}`)
		default:
			http.NotFound(rw, r)
		}
	})}}
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return ui.Socket(socket)
}

// says answers with a text.
func says(text string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, text) }
}

// silent does not answer.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// endless begins as said, and does not end.
func endless(begin string, sent *atomic.Int64) http.HandlerFunc {
	more := strings.Repeat("a", 1<<16)
	return func(rw http.ResponseWriter, _ *http.Request) {
		n, err := io.WriteString(rw, begin)
		for err == nil {
			sent.Add(int64(n))
			n, err = io.WriteString(rw, more)
		}
	}
}

// withHost opens the pages with a session here, and a host.
func withHost(t *testing.T, host ui.Host) *page {
	t.Helper()
	rt := newRuntime(t)
	openSession(t, rt, "near", nil, nil)
	w := ui.Handler(rt, ui.Config{Access: inspect.Access{Content: true, Steer: true}, Hosts: func(context.Context) ([]ui.Host, error) { return []ui.Host{host}, nil }})
	t.Cleanup(w.Close)
	return serve(t, w).enter("mira")
}

// TestAHostThatDoesNotAnswer, such as a program that is stopped, holds up no page of the others, and is asked
// each thing once at a time.
func TestAHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	tree := func(rw http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		silent(rw, r)
	}
	p := withHost(t, pretends(t, map[string]http.HandlerFunc{
		"/api/tree": tree, "/api/events": silent, "/window/jobs": says(`["stuck"]`), "/window/jobs/stuck": silent, "/window/history": silent,
	}))
	var pages sync.WaitGroup
	for _, path := range []string{"api/sessions", "api/hosts", "api/tree", "api/jobs", "api/approvals", "api/history"} {
		pages.Go(func() {
			status, text, _ := p.get(path)
			assert.Equal(t, http.StatusOK, status, "%s: %s", path, text)
		})
	}
	pages.Wait()
	ticks := 0
	p.follow("", func(f frame) bool {
		if f.kind == "tick" {
			ticks++
		}
		return ticks == 5
	})
	assert.EqualValues(t, 1, most.Load())
}

// TestTheLastAnswerOfAHost counts while the next one is missing.
func TestTheLastAnswerOfAHost(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	p := withHost(t, pretends(t, map[string]http.HandlerFunc{"/api/tree": func(rw http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			silent(rw, r)
			return
		}
		_, _ = io.WriteString(rw, `{"tree":{"sessions":[{"id":"far","state":"running"}]}}`)
	}}))
	far := func() bool {
		_, text, _ := p.get("api/sessions")
		return strings.Contains(text, `"far"`)
	}
	require.Eventually(t, far, 30*time.Second, time.Millisecond) // a page does not wait long for an answer
	for range 3 {
		assert.True(t, far())
	}
	assert.Eventually(t, func() bool { return asked.Load() == 2 }, 30*time.Second, time.Millisecond)
}

// TestAnAnswerThatDoesNotEnd is read up to a limit, and the page says so.
func TestAnAnswerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	const most = 80 << 20
	for path, of := range map[string]struct{ at, begin, says string }{
		"api/sessions/far/messages?host=66":            {"/window/sessions/far/messages", `{"more":"`, "more than 64 MiB"},
		"api/jobs/job/tasks/t/transcript?host=66":      {"/window/jobs/job/transcript", `{"type":"`, ""},
		"api/sessions/far/timeline?host=66&limit=none": {"/window/sessions/far/timeline", `{"from":"`, "more than 64 MiB"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			p := withHost(t, pretends(t, map[string]http.HandlerFunc{
				of.at: endless(of.begin, &sent), "/window/jobs": says(`["job"]`), "/window/jobs/job": says(`{"Summary":{}}`),
			}))
			status, text, _ := p.get(path)
			if of.says != "" {
				assert.Equal(t, http.StatusInternalServerError, status)
			}
			if !strings.Contains(text, "Client.Timeout") { // where so much takes ten seconds that has ended it
				assert.Contains(t, text, of.says)
			}
			assert.Less(t, sent.Load(), int64(most))
		})
	}
}

// TestAnswersOfAnotherForm do no harm: they are refused, or left out.
func TestAnswersOfAnotherForm(t *testing.T) {
	t.Parallel()
	died := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(rw, `{"messages":[`)
		panic(http.ErrAbortHandler)
	}
	for what, answers := range map[string][]http.HandlerFunc{
		"messages": {says(`42`), says(`{"messages":"x"}`), says(`{"messages":[7]}`), says("\x00"), says(``), died},
		"timeline": {says(`[]`), says(`{"turns":"x"}`), died},
		"options":  {says(`[1]`), says(`"x"`), died},
	} {
		for i, answer := range answers {
			t.Run(fmt.Sprint(what, i), func(t *testing.T) {
				t.Parallel()
				p := withHost(t, pretends(t, map[string]http.HandlerFunc{"/window/sessions/far/" + what: answer}))
				status, text, _ := p.get("api/sessions/far/" + what + "?host=66")
				assert.Equal(t, http.StatusInternalServerError, status, text)
				assert.Contains(t, text, "66.sock")
			})
		}
	}
}

// TestJobsOfAnotherForm: a state has to be an object, and there are more jobs than a host may have.
func TestJobsOfAnotherForm(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`"x",`, 1<<16)
	var asked atomic.Int64
	p := withHost(t, pretends(t, map[string]http.HandlerFunc{
		"/window/jobs": says(`["null","text","good",` + many + `"last"]`), "/window/jobs/null": says(`{"Summary":null}`), "/window/jobs/text": says(`{"Summary":"x"}`),
		"/window/jobs/good": says(`{"Summary":{"job":"good\u202e"},"Tasks":[{"ID":"t","State":"over"}]}`), "/window/jobs/x": func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); http.NotFound(rw, r) },
		"/window/jobs/last": func(rw http.ResponseWriter, _ *http.Request) { t.Error("there are too many before it") },
	}))
	status, text, _ := p.get("api/jobs")
	require.Equal(t, http.StatusOK, status)
	assert.Contains(t, text, `"good`)
	assert.NotContains(t, text, `"text"`)
	assert.NotContains(t, text, "\u202e")
	ticks := 0
	p.follow("", func(f frame) bool { // the pump looks at them, too
		if f.kind == "tick" {
			ticks++
		}
		return ticks == 3
	})
	for _, path := range []string{"api/jobs/null?host=66", "api/jobs/text?host=66"} {
		status, _, _ := p.get(path)
		assert.Equal(t, http.StatusInternalServerError, status, path)
	}
}

// TestAStreamOfAnotherForm: a message is one, or the stream is read again from its beginning.
func TestAStreamOfAnotherForm(t *testing.T) {
	t.Parallel()
	var read atomic.Int64
	p := withHost(t, pretends(t, map[string]http.HandlerFunc{"/window/sessions/far/follow": func(rw http.ResponseWriter, r *http.Request) {
		switch read.Add(1) {
		case 1:
			_, _ = io.WriteString(rw, `{"kind":"message","data":42}`+"\n"+`{"kind":"message","data":{"seq":1,"type":"late"}}`+"\n")
		case 2:
			_, _ = io.WriteString(rw, `{"kind":"delta","data":{"text":[]}}`+"\n"+`{"kind":"message","data":{"seq":1,"type":"late"}}`+"\n")
		default:
			_, _ = io.WriteString(rw, `{"kind":"gone","data":{"ids":["near"]}}`+"\n"+`{"kind":"message","data":{"session":"near","seq":3,"type":"good","other":"x"}}`+"\n")
			_ = http.NewResponseController(rw).Flush()
			silent(rw, r)
		}
	}}))
	p.followSession("host:66/far", func(f frame) bool {
		assert.NotEqual(t, "gone", f.kind, "a host says what its session says, and no more")
		if f.kind != "message" {
			return false
		}
		assert.Equal(t, "good", f.data["type"])
		assert.Equal(t, "host:66/far", f.data["session"])
		assert.NotContains(t, f.data, "other")
		return true
	})
}
