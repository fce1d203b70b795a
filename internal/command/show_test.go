//go:build unix

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// privateDir is a directory for sockets, with a short path.
func privateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "troupe")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// playHost answers with a report on a socket.
func playHost(t *testing.T, socket string, r *inspect.Report) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if r == nil {
			http.Error(w, "not \x1b[2Jtoday", http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(r)
	})}
	over := make(chan error, 1)
	go func() { over <- server.Serve(l) }()
	t.Cleanup(func() { _, _ = server.Close(), <-over })
}

func TestPs(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(privateDir(t), "h.sock")
	playHost(t, socket, hostile("build\x07er", 4242))
	for name, args := range map[string][]string{
		"ps.txt":         {"ps"},
		"ps-session.txt": {"ps", "6y7evp9o8sye0"},
		"ps.json":        {"ps", "--json"},
		"top.txt":        {"top"}, // not on a terminal
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			assert.Equal(t, exitOK, w.run(append(args, "--socket", socket)...), w.err)
			golden(t, name, strings.ReplaceAll(w.out.String(), socket, "/run/h.sock"))
			assert.Empty(t, w.err.String())
			assert.False(t, strings.ContainsAny(w.out.String(), "\x1b\x07\u202e\u009b"), "nothing steers the terminal")
		})
	}
}

func TestPsFails(t *testing.T) {
	t.Parallel()
	dir := privateDir(t)
	socket, refusing := filepath.Join(dir, "h.sock"), filepath.Join(dir, "r.sock")
	playHost(t, socket, hostile("builder", 4242))
	playHost(t, refusing, nil)
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"ps --socket " + socket + " none": {exitResult, `troupe: no program shows a session "none"`},
		"ps --socket " + dir + "/gone":    {exitResult, "nobody listens on the socket"},
		"ps --socket " + refusing:         {exitResult, `403 Forbidden: not \x1b[2Jtoday`},
		"ps a b":                          {exitUsage, "troupe ps takes the id of one session; leave the others out"},
		"ps --jsonn":                      {exitUsage, "did you mean --json?"},
		"top now":                         {exitUsage, "troupe top takes no arguments"},
		"mcp now":                         {exitUsage, "troupe mcp takes no arguments"},
	} {
		w := newWorld()
		assert.Equal(t, c.code, w.run(strings.Fields(args)...), args)
		assert.Contains(t, w.err.String(), c.says, args)
		assert.NotContains(t, w.err.String(), "\x1b", args)
	}
	for _, command := range []string{"ps", "top", "mcp"} {
		w := newWorld()
		assert.Equal(t, exitOK, w.run(command, "--help"))
		assert.Contains(t, w.out.String(), "Usage: troupe "+command)
	}
}

// TestShow runs a conversation that shows itself, and looks at it from other processes.
func TestShow(t *testing.T) { //nolint:paralleltest // it sets the environment
	t.Setenv("XDG_RUNTIME_DIR", privateDir(t))
	list := func(args ...string) (out, notes string) {
		w := newWorld()
		assert.Equal(t, exitOK, w.run(append([]string{"ps"}, args...)...))
		return w.out.String(), w.err.String()
	}
	out, notes := list()
	assert.Equal(t, []string{"", "troupe: " + nobodyShows + "\n"}, []string{out, notes})
	out, _ = list("--json")
	assert.Equal(t, "[]\n", out)

	agent := script(t, `turns: [{steps: [{tool_use: {name: "B\e[2Jash", input: {}, gate: ask}}, {delay: 1h}]}]`)
	for name, c := range map[string]struct {
		args []string
		env  string
	}{"by flag": {[]string{"--inspect"}, ""}, "by variable": {nil, "1"}} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			w, keys := chatting(t)
			w.getenv = func(n string) string { return map[string]string{envInspect: c.env}[n] }
			ended := w.start(append([]string{"chat", "-a", agent}, c.args...)...)
			keys("go\n")
			w.err.await(t, "Allow it?")
			var s runtime.SessionTree
			require.EventuallyWithT(t, func(t *assert.CollectT) { // the question may be asked before the state has changed
				var reports []*inspect.Report
				out, _ := list("--json")
				require.NoError(t, json.Unmarshal([]byte(out), &reports))
				require.Len(t, reports, 1)
				require.Len(t, reports[0].Tree.Sessions, 1)
				s = reports[0].Tree.Sessions[0]
				assert.Equal(t, os.Getpid(), reports[0].Host.PID)
				assert.Equal(t, session.StateAwaitingHost, s.State)
			}, time.Minute, 10*time.Millisecond)
			found, err := inspect.Sockets(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "troupe"))
			require.NoError(t, err)
			require.Len(t, found, 1)
			// A command of the agent can reach the socket, too.
			require.ErrorContains(t, ui.Socket(found[0]).Do(t.Context(), ui.Command{Op: ui.Interrupt, Session: s.ID}), "Access.Steer")
			out, _ := list()
			assert.Contains(t, out, `permission request B\x1b[2Jash`)
			out, _ = list(s.ID)
			assert.Contains(t, out, "ACTOR")
			assert.Contains(t, out, "turn started")

			got := lookByMCP(t, s.ID)
			assert.Contains(t, got["list_sessions"], s.ID+"  awaiting_host")
			assert.Contains(t, got["show_session"], "turn started")
			assert.Contains(t, got["no such"], "call list_sessions")
			assert.Equal(t, "nothing happened", got["watch_events"])
			for tool, text := range got {
				assert.NotContains(t, text, "\x1b", tool)
			}
			w.signal <- syscall.SIGTERM
			assert.Equal(t, exitSignal+int(syscall.SIGTERM), <-ended)
			_, notes := list()
			assert.Contains(t, notes, nobodyShows)
		})
	}
}

// TestABatchIsSteeredAsItSays: the socket of --inspect changes a job only if its other socket may.
func TestABatchIsSteeredAsItSays(t *testing.T) { //nolint:paralleltest // it sets the environment
	for name, c := range map[string]struct {
		args    []string
		refused string
	}{"with control": {nil, "no session with this id"}, "without": {[]string{"--no-control"}, "Access.Steer"}} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			dir := privateDir(t)
			t.Setenv("XDG_RUNTIME_DIR", dir)
			w := newWorld()
			agent := script(t, `turns: [{steps: [{delay: 1h}]}]`)
			tasks := filepath.Join(t.TempDir(), "tasks.jsonl")
			require.NoError(t, os.WriteFile(tasks, []byte(`{"id":"a","prompt":"x"}`+"\n"), 0o600))
			ended := w.start(append([]string{"batch", tasks, "-a", agent, "--inspect", "--out", filepath.Join(t.TempDir(), "out")}, c.args...)...)
			var found []string
			require.Eventually(t, func() bool {
				found, _ = inspect.Sockets(filepath.Join(dir, "troupe")) // before the batch opens it
				return len(found) == 1
			}, time.Minute, 10*time.Millisecond)
			require.EventuallyWithT(t, func(now *assert.CollectT) { // the file is there before the program listens
				assert.ErrorContains(now, ui.Socket(found[0]).Do(t.Context(), ui.Command{Op: ui.Interrupt, Session: "none"}), c.refused)
			}, time.Minute, 10*time.Millisecond)
			w.signal <- syscall.SIGTERM
			assert.Equal(t, exitSignal+int(syscall.SIGTERM), <-ended)
		})
	}
}

// lookByMCP calls each tool of troupe mcp, as an agent does.
func lookByMCP(t *testing.T, id string) map[string]string {
	t.Helper()
	w := newWorld()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	w.stdin, w.stdout = in, out
	ended := w.start("mcp")
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	tools, err := client.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		assert.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
	}
	assert.Len(t, tools.Tools, 3)
	got := map[string]string{}
	for name, call := range map[string]struct {
		tool string
		args map[string]any
		bad  bool
	}{
		"list_sessions": {"list_sessions", nil, false},
		"show_session":  {"show_session", map[string]any{"id": id}, false},
		"no such":       {"show_session", map[string]any{"id": "none"}, true},
		"watch_events":  {"watch_events", map[string]any{"session": id, "seconds": 1}, false},
	} {
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.args})
		require.NoError(t, err, name)
		assert.Equal(t, call.bad, result.IsError, name)
		require.Len(t, result.Content, 1, name)
		text, ok := result.Content[0].(*mcp.TextContent)
		require.True(t, ok, name)
		got[name] = text.Text
	}
	require.NoError(t, client.Close())
	_ = toServer.Close()
	assert.Equal(t, exitOK, <-ended, w.err)
	_ = out.Close()
	return got
}

// TestMCPEndsByASignal while its input is open.
func TestMCPEndsByASignal(t *testing.T) {
	t.Parallel()
	w := newWorld()
	in, keep := io.Pipe()
	defer func() { _ = keep.Close() }()
	w.stdin = in
	ended := w.start("mcp")
	w.signal <- syscall.SIGTERM
	assert.Equal(t, exitOK, <-ended)
}

// TestShowWhereItCannot has a directory that others can enter.
func TestShowWhereItCannot(t *testing.T) { //nolint:paralleltest // it sets the environment
	home := privateDir(t)
	t.Setenv("XDG_RUNTIME_DIR", home)
	require.NoError(t, os.Mkdir(filepath.Join(home, "troupe"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(home, "troupe"), 0o755))
	w := newWorld()
	assert.Equal(t, exitUsage, w.run("run", "--inspect", "-a", "scripted", "-y", "hi"))
	assert.Contains(t, w.err.String(), "troupe: --inspect: inspect: option Socket: other users can enter the directory")
	assert.Empty(t, w.out.String(), "nothing was started")

	w = newWorld()
	w.getenv = func(n string) string { return map[string]string{envInspect: "1"}[n] }
	assert.Equal(t, exitOK, w.run("run", "-a", "scripted", "-y", "hi"), "a variable may be set for all programs")
	assert.Contains(t, w.err.String(), "troupe: TROUPE_INSPECT: inspect: option Socket")

	w = newWorld()
	assert.Equal(t, exitResult, w.run("ps"))
	assert.Contains(t, w.err.String(), "other users can enter")
}

// TestPsOfSeveralHosts has one host that refuses, and one that has died.
func TestPsOfSeveralHosts(t *testing.T) { //nolint:paralleltest // it sets the environment
	home := privateDir(t)
	t.Setenv("XDG_RUNTIME_DIR", home)
	dir := filepath.Join(home, "troupe")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for i := range 2 {
		playHost(t, filepath.Join(dir, fmt.Sprint(i, ".sock")), hostile("builder", i+1))
	}
	playHost(t, filepath.Join(dir, "r.sock"), nil)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", filepath.Join(dir, "dead.sock"))
	require.NoError(t, err)
	unix, ok := l.(*net.UnixListener)
	require.True(t, ok)
	unix.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	w := newWorld()
	assert.Equal(t, exitResult, w.run("ps"))
	assert.Contains(t, w.out.String(), "builder, pid 1: 2 sessions")
	assert.Contains(t, w.out.String(), "builder, pid 2: 2 sessions")
	assert.Contains(t, w.err.String(), "r.sock: the host answers 403")
	assert.NotContains(t, w.err.String(), "dead.sock", "one that has died is no error")
}
