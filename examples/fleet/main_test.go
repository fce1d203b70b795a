package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/agent-troupe/troupe/examples/internal/choice"
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
func serve(t *testing.T, change ...func(*http.Server)) (*service, api) {
	t.Helper()
	s, err := newService(&choice.Agent{Dir: t.TempDir()}, 100, time.Minute)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(s.routes("secret"))
	for _, c := range change {
		c(server.Config)
	}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		assert.NoError(t, s.rt.Shutdown(context.Background()))
		assert.Empty(t, s.rt.Sessions())
	})
	return s, api{server.URL, "secret"}
}

// api is a client of the service.
type api struct{ address, token string }

func (a api) do(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	return http.DefaultClient.Do(r)
}

// call makes a request and returns its answer, or its status as an error.
func (a api) call(t *testing.T, method, path string) (string, error) {
	t.Helper()
	resp, err := a.do(t.Context(), method, path)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	return string(text), nil
}

// watch reads the events of a session until each says that it is enough, or they end.
func (a api) watch(t *testing.T, id string, each func(kind, data string) (enough bool)) {
	t.Helper()
	resp, err := a.do(t.Context(), http.MethodGet, "/sessions/"+id+"/events")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	kind := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "event":
			kind = value
		case "data":
			if each(kind, value) {
				return
			}
		}
	}
}

// open opens a session with a prompt, and waits until its call waits for a person.
func (a api) open(t *testing.T) (id, call string) {
	t.Helper()
	text, err := a.call(t, http.MethodPost, "/sessions?text=run+the+tests")
	require.NoError(t, err)
	var made, asked struct{ ID, Tool string }
	require.NoError(t, json.Unmarshal([]byte(text), &made))
	a.watch(t, made.ID, func(kind, data string) bool {
		if kind == "approval" {
			assert.NoError(t, json.Unmarshal([]byte(data), &asked))
		}
		return kind == "approval"
	})
	require.Equal(t, "Bash", asked.Tool)
	return made.ID, asked.ID
}

func (a api) allow(t *testing.T, call string) error {
	t.Helper()
	_, err := a.call(t, http.MethodPost, "/approvals/"+call+"?allow=true")
	return err
}

func TestManyVisitors(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var out strings.Builder
			assert.NoError(t, visit(t.Context(), a.address, a.token, &out))
			assert.Contains(t, out.String(), `"input":{"command":"/bin/sh check.sh"`)
			assert.Contains(t, out.String(), "The check fails: 2 of 2 cases.")
		})
	}
	all.Wait()
	text, err := a.call(t, http.MethodGet, "/sessions")
	require.NoError(t, err)
	require.Equal(t, 8, strings.Count(text, ":"), text)
}

// An approval is of one call, and counts once.
func TestApprovals(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	id, call := a.open(t)
	require.ErrorContains(t, a.allow(t, "other"), "404")
	require.NoError(t, a.allow(t, call))
	require.ErrorContains(t, a.allow(t, call), "404")
	a.watch(t, id, func(_, data string) bool { return strings.Contains(data, `"type":"result"`) })
	_, err := a.call(t, http.MethodPost, "/sessions/"+id+"/messages?text=more")
	require.NoError(t, err)
}

// The end of a session denies what waits.
func TestDeleteDenies(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	id, call := a.open(t)
	_, err := a.call(t, http.MethodDelete, "/sessions/"+id)
	require.NoError(t, err)
	require.ErrorContains(t, a.allow(t, call), "404")
	_, err = a.call(t, http.MethodPost, "/sessions/"+id+"/messages?text=x")
	require.ErrorContains(t, err, "404")
}

func TestInterruptAndMetrics(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	id, _ := a.open(t)
	text, err := a.call(t, http.MethodGet, "/metrics")
	require.NoError(t, err)
	require.Contains(t, text, "troupe_sessions 1\ntroupe_approvals_waiting 1\n")
	require.Eventually(t, func() bool { // the call is asked before the state says so
		text, err = a.call(t, http.MethodGet, "/sessions")
		return err == nil && strings.Contains(text, id+`":"awaiting_host"`)
	}, time.Minute, time.Millisecond)
	text, err = a.call(t, http.MethodPost, "/sessions/"+id+"/interrupt")
	require.NoError(t, err)
	require.Contains(t, text, `"Turn":"`)
}

// At SIGTERM the program takes nothing new, waits for the turn that runs, and ends well.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	var program *exec.Cmd
	var said io.Reader
	first := ""
	for first == "" { // another program may take the port before this one does
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port := free.Addr().(*net.TCPAddr).Port
		require.NoError(t, free.Close())
		program = exec.CommandContext(t.Context(), os.Args[0], "-port", fmt.Sprint(port), "-grace", "5m")
		program.Env = append(os.Environ(), "TROUPE_TEST_SERVICE=1", "TMPDIR="+t.TempDir())
		out, err := program.StdoutPipe()
		require.NoError(t, err)
		said, err = program.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, program.Start())
		if first, err = bufio.NewReader(out).ReadString('\n'); err != nil {
			why, _ := io.ReadAll(said)
			_ = program.Wait()
			require.Contains(t, string(why), "address already in use")
		}
	}
	var a api
	_, err := fmt.Sscanf(first, "api=%s token=%s", &a.address, &a.token)
	require.NoError(t, err)
	id, _ := a.open(t)
	var asked struct{ ID string }
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	errs := bufio.NewReader(said)
	for line := ""; !strings.Contains(line, "draining"); {
		line, err = errs.ReadString('\n')
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { // the line comes before the drain; what is sent before it is answered
		_, err := a.call(t, http.MethodPost, "/sessions/"+id+"/messages?text=x")
		return err != nil && strings.Contains(err.Error(), "503")
	}, time.Minute, time.Millisecond)
	_, err = a.call(t, http.MethodPost, "/sessions?text=x")
	require.ErrorContains(t, err, "503")
	result := ""
	a.watch(t, id, func(kind, data string) bool {
		switch {
		case kind == "approval":
			assert.NoError(t, json.Unmarshal([]byte(data), &asked))
			assert.NoError(t, a.allow(t, asked.ID))
		case strings.Contains(data, `"type":"result"`):
			result += data
		}
		return false
	})
	// A message that came before the drain is part of the work.
	require.Regexp(t, `The check (fails: 2 of 2|passes: 3) cases\.`, result)
	rest, err := io.ReadAll(errs)
	require.NoError(t, err)
	require.Empty(t, string(rest), "every session ended well")
	require.NoError(t, program.Wait())
}

func TestWhoMayNotCome(t *testing.T) {
	t.Parallel()
	_, a := serve(t)
	_, err := api{a.address, "wrong"}.call(t, http.MethodGet, "/sessions")
	require.ErrorContains(t, err, "401")
	for name, change := range map[string]func(*http.Request){
		"another name of this machine": func(r *http.Request) { r.Host = "rebound.example" },
		"another site's page":          func(r *http.Request) { r.Header.Set("Origin", "https://other.example") },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.address+"/sessions", http.NoBody)
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
	c := &conversation{next: 1, news: make(chan struct{})}
	slow, quick := 0, 0
	c.tell("n", 0)
	_, news := c.after(&slow)
	for n := 1; n <= kept; n++ {
		c.tell("n", n)
		events, _ := c.after(&quick)
		require.Contains(t, events[len(events)-1], fmt.Sprintf("id: %d\nevent: n\ndata: %d\n", n+1, n))
	}
	<-news
	events, _ := c.after(&slow)
	require.Len(t, events, kept, "it has missed nothing yet")
	for n := range kept + 2 {
		c.tell("n", n)
	}
	events, _ = c.after(&slow)
	require.Len(t, events, kept+1)
	require.Equal(t, fmt.Sprintf("event: resync\ndata: %d\n\n", c.next-kept), events[0])
	events, _ = c.after(&slow)
	require.Empty(t, events)
	c.tell("", nil)
	c.tell("n", 0)
	events, news = c.after(&quick)
	require.NotEmpty(t, events)
	require.Nil(t, news)
}

// A reader that takes nothing from its connection is let go, also when nothing happens; one
// that reads gets signs of life.
func TestAStalledReader(t *testing.T) {
	t.Parallel()
	ended := make(chan string, 100) // connections of clients, by their addresses
	s, a := serve(t, func(server *http.Server) {
		server.ConnState = func(c net.Conn, is http.ConnState) {
			if is == http.StateClosed {
				ended <- c.RemoteAddr().String()
			}
		}
	})
	s.patience, s.beat = 50*time.Millisecond, time.Millisecond
	id, call := a.open(t)
	read := func() net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(a.address, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Minute)))
		_, err = fmt.Fprintf(c, "GET /sessions/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer secret\r\n\r\n", id, strings.TrimPrefix(a.address, "http://"))
		require.NoError(t, err)
		return c
	}
	stalled, lively := read(), bufio.NewReader(read())
	for line := ""; line != ":\n"; {
		var err error
		line, err = lively.ReadString('\n')
		require.NoError(t, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lively) }()
	c, _ := s.sessions.Load(id)
	big := strings.Repeat("x", 100_000) // many are more than the buffers of the system take
	for range kept {
		c.(*conversation).tell("n", big)
	}
	for limit := time.After(2 * time.Minute); ; { // it takes nothing until it is let go
		var address string
		select {
		case address = <-ended:
		case <-limit:
			require.Fail(t, "it was not let go")
		}
		if address == stalled.LocalAddr().String() {
			break
		}
	}
	got, err := io.Copy(io.Discard, stalled)
	require.NoError(t, err, "the service has closed the connection")
	require.Less(t, got, int64(kept*len(big)), "it was let go")
	require.NoError(t, a.allow(t, call))
}
