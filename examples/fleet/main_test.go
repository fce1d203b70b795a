package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
)

// TestMain makes the test's program the service, for the test of its signals.
func TestMain(m *testing.M) {
	if os.Getenv("TROUPE_TEST_SERVICE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// serve starts the service. At the end no session may be left.
func serve(t *testing.T) (*service, api) {
	t.Helper()
	rt, err := runtime.New(runtime.Config{Admission: runtime.Admission{MaxSessions: 100}})
	require.NoError(t, err)
	opts, err := options("scripted")
	require.NoError(t, err)
	opts.Runtime = rt
	s := newService(rt, opts, "secret")
	server := httptest.NewServer(s.routes())
	t.Cleanup(func() {
		s.drain(context.Background(), 0)
		server.Close()
		assert.Empty(t, rt.Sessions())
		assert.NoError(t, rt.Shutdown(context.Background()))
	})
	return s, api{server.URL, "secret"}
}

func TestManyVisitors(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var out strings.Builder
			assert.NoError(t, visit(t.Context(), a.address, a.token, &out))
			assert.Contains(t, out.String(), `approval Bash {"command":"make deploy"}`)
			assert.Contains(t, out.String(), "result You said: Say hello.\n")
		})
	}
	all.Wait()
	var rows []any
	require.NoError(t, a.call(t.Context(), http.MethodGet, "/sessions", "", &rows))
	require.Empty(t, rows)
}

// open opens a session with a prompt, and waits until its call waits for a person.
func (a api) open(t *testing.T) (id string, w approval) {
	t.Helper()
	var made struct{ ID string }
	require.NoError(t, a.call(t.Context(), http.MethodPost, "/sessions", `{"prompt":"go"}`, &made))
	require.NoError(t, a.watch(t.Context(), made.ID, func(kind, data string) (bool, error) {
		return kind == "approval", json.Unmarshal([]byte(data), map[bool]any{true: &w, false: new(any)}[kind == "approval"])
	}))
	return made.ID, w
}

// An approval is of one call, and counts once.
func TestApprovals(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	_, w := a.open(t)
	say := func(id, hash string) error {
		return a.call(t.Context(), http.MethodPost, "/approvals/"+id, fmt.Sprintf(`{"hash":%q,"allow":true}`, hash), nil)
	}
	var all []approval
	require.NoError(t, a.call(t.Context(), http.MethodGet, "/approvals", "", &all))
	require.Len(t, all, 1)
	require.Equal(t, w.Hash, all[0].Hash)
	require.ErrorContains(t, say(w.ID, "other"), "409")
	require.ErrorContains(t, say("other", w.Hash), "404")
	require.NoError(t, say(w.ID, w.Hash))
	require.ErrorContains(t, say(w.ID, w.Hash), "404")
}

// The end of a session denies what waits.
func TestDeleteDenies(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	id, w := a.open(t)
	require.NoError(t, a.call(t.Context(), http.MethodDelete, "/sessions/"+id, "", nil))
	require.ErrorContains(t, a.call(t.Context(), http.MethodPost, "/approvals/"+w.ID, fmt.Sprintf(`{"hash":%q,"allow":true}`, w.Hash), nil), "404")
	require.ErrorContains(t, a.call(t.Context(), http.MethodPost, "/sessions/"+id+"/messages", `{"text":"x"}`, nil), "404")
}

func TestInterruptAndMetrics(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	id, _ := a.open(t)
	resp, err := a.do(t.Context(), http.MethodGet, "/metrics", "")
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	for _, want := range []string{`troupe_sessions{state="awaiting_host"} 1`, "troupe_admission_live 1", "troupe_approvals_waiting 1"} {
		require.Contains(t, string(text), want)
	}
	var receipt struct{ Turn string }
	require.NoError(t, a.call(t.Context(), http.MethodPost, "/sessions/"+id+"/interrupt", "", &receipt))
	require.NotEmpty(t, receipt.Turn)
}

// A service that ends takes nothing new, and lets what runs come to its end.
func TestDrain(t *testing.T) {
	t.Parallel()
	s, a := serve(t)
	id, w := a.open(t)
	drained := make(chan struct{})
	go func() { defer close(drained); s.drain(context.Background(), time.Minute) }()
	require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.draining }, time.Minute, time.Millisecond)
	require.ErrorContains(t, a.call(t.Context(), http.MethodPost, "/sessions", `{}`, nil), "503")
	require.ErrorContains(t, a.call(t.Context(), http.MethodPost, "/sessions/"+id+"/messages", `{"text":"x"}`, nil), "503")
	require.NoError(t, a.call(t.Context(), http.MethodPost, "/approvals/"+w.ID, fmt.Sprintf(`{"hash":%q,"allow":true}`, w.Hash), nil))
	result := ""
	require.NoError(t, a.watch(t.Context(), id, func(kind, data string) (bool, error) {
		if kind == "message" && strings.Contains(data, `"type":"result"`) {
			result = data
		}
		return false, nil
	}))
	require.Contains(t, result, "You said: go")
	<-drained
}

// At SIGTERM the program takes nothing new, waits for the turn that runs, and ends well.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	program := exec.CommandContext(t.Context(), os.Args[0], "-port", fmt.Sprint(port))
	program.Env = append(os.Environ(), "TROUPE_TEST_SERVICE=1")
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	said, err := program.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	first, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var a api
	_, err = fmt.Sscanf(first, "api=%s token=%s", &a.address, &a.token)
	require.NoError(t, err)
	_, w := a.open(t)
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	errs := bufio.NewReader(said)
	for line := ""; !strings.Contains(line, "draining"); {
		line, err = errs.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, a.call(t.Context(), http.MethodPost, "/approvals/"+w.ID, fmt.Sprintf(`{"hash":%q,"allow":true}`, w.Hash), nil))
	rest, err := io.ReadAll(errs)
	require.NoError(t, err)
	require.Empty(t, string(rest), "every session ended well")
	require.NoError(t, program.Wait())
}

func TestWhoMayNotCome(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	require.ErrorContains(t, api{a.address, "wrong"}.call(t.Context(), http.MethodGet, "/sessions", "", nil), "401")
	require.ErrorContains(t, a.call(t.Context(), http.MethodPost, "/sessions", `{"promt":"typo"}`, nil), "400")
	for name, change := range map[string]func(*http.Request){
		"another name of this machine": func(r *http.Request) { r.Host = "rebound.example" },
		"another site's page":          func(r *http.Request) { r.Header.Set("Origin", "https://other.example") },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.address+"/sessions", strings.NewReader(`{}`))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+a.token)
		change(r)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusForbidden, resp.StatusCode, name)
	}
}

// A reader that is too slow misses events and is told so; others do not notice.
func TestASlowReader(t *testing.T) {
	t.Parallel()
	f := newFeed()
	slow, quick := f.subscribe(0), f.subscribe(0)
	for n := range queued + 10 {
		f.publish("n", n)
		require.Equal(t, n+1, (<-quick.items).ID)
	}
	for range queued {
		_, missed := f.resync(slow)
		require.False(t, missed, "first what is in its queue")
		<-slow.items
	}
	next, missed := f.resync(slow)
	require.True(t, missed)
	require.Equal(t, queued+11, next)
	f.publish("n", 0)
	require.Equal(t, next, (<-slow.items).ID)
	_, missed = f.resync(slow)
	require.False(t, missed)

	back := f.subscribe(queued + 5) // it comes back
	require.Equal(t, queued+6, (<-back.items).ID)
	for range kept {
		f.publish("n", 0)
	}
	late := f.subscribe(1)
	for range queued {
		<-late.items
	}
	_, missed = f.resync(late)
	require.True(t, missed, "what it wants is not kept any more")
	f.end()
	f.publish("n", 0)
	_, more := <-f.subscribe(queued + kept + 10).items
	require.True(t, more)
}

// A reader that takes nothing from its connection is let go, also when nothing happens; one
// that reads gets signs of life.
func TestAStalledReader(t *testing.T) {
	t.Parallel()
	s, a := serve(t)
	s.patience, s.beat = 50*time.Millisecond, time.Millisecond
	id, w := a.open(t)
	read := func() *bufio.Reader {
		c, err := net.Dial("tcp", strings.TrimPrefix(a.address, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = fmt.Fprintf(c, "GET /sessions/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer secret\r\n\r\n", id, strings.TrimPrefix(a.address, "http://"))
		require.NoError(t, err)
		return bufio.NewReader(c)
	}
	read() // and then does not
	lively := read()
	for line := ""; line != ":\n"; {
		var err error
		line, err = lively.ReadString('\n')
		require.NoError(t, err)
	}
	c := s.sessions()[0]
	readers := func() int { c.feed.mu.Lock(); defer c.feed.mu.Unlock(); return len(c.feed.readers) }
	go func() { _, _ = io.Copy(io.Discard, lively) }()
	big := strings.Repeat("x", 100_000) // many are more than the buffers of the system take
	require.Eventually(t, func() bool { c.feed.publish("n", big); return readers() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, a.call(t.Context(), http.MethodPost, "/approvals/"+w.ID, fmt.Sprintf(`{"hash":%q,"allow":true}`, w.Hash), nil))
}
