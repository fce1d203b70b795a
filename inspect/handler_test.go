package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
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

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// TestOverASocket reads a session that waits, by each of the paths.
func TestOverASocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(privateDir(t), "s.sock")
	listening(t, asking(t), inspect.Config{Socket: socket})
	report, err := inspect.Fetch(t.Context(), socket)
	require.NoError(t, err)
	assert.Equal(t, inspect.Host{PID: os.Getpid(), Program: filepath.Base(os.Args[0]), Socket: socket}, report.Host)
	require.Len(t, report.Tree.Sessions, 1)
	s := report.Tree.Sessions[0]
	assert.Equal(t, "s", s.ID)
	assert.Equal(t, session.StateAwaitingHost, s.State)
	assert.Equal(t, "permission request Ba\x1b[2J\u202esh", s.Waits[0].What, "programs get what it is called")
	assert.Equal(t, "PermissionTimeout", s.Waits[0].SetBy)

	client := by(t, "unix", socket)
	get := func(path string) (contentType, body string) {
		resp, err := client.Get("http://localhost" + path) //nolint:noctx // short
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		raw, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.Header.Get("Content-Type"), string(raw)
	}
	contentType, body := get("/api/session/s")
	assert.Contains(t, body, `\u202e`)
	assert.NotContains(t, body, "\u202e", "nothing steers the terminal")
	assert.Equal(t, "application/json", contentType)
	var one runtime.SessionTree
	require.NoError(t, json.Unmarshal([]byte(body), &one))
	assert.Equal(t, s.Waits[0].ID, one.Waits[0].ID)

	for path, want := range map[string]string{"/": "WAITS FOR", "/session/s": "MAILBOX"} {
		contentType, body = get(path)
		assert.Equal(t, "text/plain; charset=utf-8", contentType)
		assert.Contains(t, body, want)
		assert.Contains(t, body, `permission request Ba\x1b[2J\u202esh`)
		assert.NotContains(t, body, "\x1b", "nothing steers the terminal")
	}
}

// TestEventsOverASocket watches a host of which a session is closed.
func TestEventsOverASocket(t *testing.T) {
	t.Parallel()
	rt := asking(t)
	socket := filepath.Join(privateDir(t), "s.sock")
	listening(t, rt, inspect.Config{Socket: socket})
	require.ErrorContains(t, inspect.Watch(t.Context(), socket, "none", nil), "there is no session with this id")

	heard := make(chan struct{})
	once := sync.OnceFunc(func() { close(heard) })
	over := make(chan error, 1)
	var last inspect.Event
	go func() {
		over <- inspect.Watch(t.Context(), socket, "", func(e inspect.Event) bool {
			once()
			last = e
			return e.Session != "s" || e.Type != "Ended"
		})
	}()
	require.EventuallyWithT(t, func(c *assert.CollectT) { // the reader may come late
		_, err := rt.Open(t.Context(), runtime.Spec{Dialect: claude.New(), Program: scripted.New()})
		assert.NoError(c, err)
		select {
		case <-heard:
		default:
			assert.Fail(c, "nothing was heard")
		}
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, rt.Session("s").Close(context.Background()))
	require.NoError(t, <-over)
	assert.Equal(t, []string{"s", "Ended", "DEBUG"}, []string{last.Session, last.Type, last.Level})
	assert.NotEmpty(t, last.Text)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { over <- inspect.Watch(ctx, socket, "", func(inspect.Event) bool { return true }) }()
	cancel()
	if err := <-over; err != nil { // it came before the answer
		assert.ErrorIs(t, err, context.Canceled)
	}
}

// sample is a report of a host whose agent chooses its words with care.
func sample() *inspect.Report {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	wait := func(what string, age, limit time.Duration, by string) session.Wait {
		return session.Wait{What: what, ID: "d60144b6", Age: age, Limit: limit, SetBy: by}
	}
	return &inspect.Report{
		Host: inspect.Host{PID: 4242, Program: "troupe\x07"},
		Tree: runtime.Tree{At: at, Sessions: []runtime.SessionTree{
			{
				At: at, ID: "6y7evp9o8sye0", State: session.StateAwaitingHost, StateSince: at.Add(-182 * time.Second), Opened: at.Add(-2 * time.Hour),
				Backend: "claude", Dir: "/work\n", AgentSessionID: "b5914de1", PID: 77, Restarts: 1, Transport: "up",
				Unread: 6, UnreadLimit: 4096, UnreadBytes: 2336, UnreadBytesLimit: 4 << 20,
				Waits: []session.Wait{
					wait("permission request \x1b]0;owned\x07Bash\u202e\n\tx", 182*time.Second, 5*time.Minute, "PermissionTimeout"),
					wait("background task "+strings.Repeat("long ", 40), 90*time.Minute, 0, ""),
				},
				Actors: []session.ActorInfo{
					{Name: "6y7evp9o8sye0#1", State: "running", Handled: 12},
					{Name: "router#2", State: "running", Restarts: 1, Depth: 3, Handled: 7, LastFailure: "panic\nboom\x1b[2J"},
				},
			},
			{At: at, ID: "busy", State: session.StateRunning, StateSince: at.Add(-250 * time.Millisecond), Opened: at, Backend: "qoder", Transport: "up", UnreadLimit: 4096, Partial: true},
			{At: at, ID: "idle", State: session.StateReady, StateSince: at.Add(-12345 * time.Millisecond), Opened: at, Backend: "qoder", Transport: "up", UnreadLimit: 4096},
		}, Breakers: []runtime.Breaker{
			{Kind: session.BreakerAgent, Name: "/bin/cla\x1b[2Jude", State: session.BreakerOpen, Since: at.Add(-3 * time.Second), Failures: 5, LastFailure: "exit\ncode 1", NextProbe: at.Add(1500 * time.Millisecond), Held: 12, StartsPerSecond: 10},
			{Kind: session.BreakerAgent, Name: "half", State: session.BreakerHalfOpen, Since: at.Add(-time.Minute), Failures: 6, LastFailure: "exit code 1"},
			{Kind: session.BreakerAgent, Name: "other", State: session.BreakerClosed, Held: 2, StartsPerSecond: 10},
			{Kind: session.BreakerAgent, Name: "well", State: session.BreakerClosed, StartsPerSecond: 10},
		}, Accounts: []runtime.AccountStat{
			{Label: "cla\x1b[2Jude", Limit: 8, Paced: true, Working: 8, Jobs: 2, Waiting: 1, Starved: true, Changes: []runtime.AccountChange{{At: at.Add(-time.Minute), From: 16, To: 8, Why: "the API is overloaded"}}},
			{Label: "fixed", Limit: 3, Paced: true, Fixed: true, Jobs: 1},
			{Label: "parked", Parked: at.Add(90 * time.Minute), Why: "spent\x1b[2J"},
			{Label: "probing", Working: 1, Jobs: 1, Parked: at.Add(-time.Second), Why: "spent"},
			{Label: "unused", Limit: 8, Paced: true},
		}},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	r := sample()
	require.NoError(t, r.WriteText(&b))
	for i := range r.Tree.Sessions {
		fmt.Fprintln(&b, "---")
		require.NoError(t, inspect.WriteSession(&b, &r.Tree.Sessions[i]))
	}
	r.Tree.Sessions = nil
	fmt.Fprintln(&b, "---")
	require.NoError(t, r.WriteText(&b))
	golden(t, "text.txt", b.String())
	assert.False(t, strings.ContainsAny(b.String(), "\x1b\x07\u202e"))
}
