package sharedmcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// sharing are Servers with a file in which its servers note their starts.
type sharing struct {
	t *testing.T
	*sharedmcp.Servers
	starts string
	dir    string
}

func newSharing(t *testing.T, o sharedmcp.Options) *sharing {
	t.Helper()
	return sharingAt(t, runtime.Config{}, o)
}

func sharingAt(t *testing.T, cfg runtime.Config, o sharedmcp.Options) *sharing {
	t.Helper()
	rt, err := runtime.New(cfg)
	require.NoError(t, err)
	s := &sharing{t: t, Servers: sharedmcp.New(rt, o), starts: t.TempDir() + "/starts", dir: t.TempDir()}
	t.Cleanup(func() {
		assert.NoError(t, s.Close(context.Background()))
		assert.NoError(t, rt.Shutdown(context.Background()))
	})
	return s
}

func (s *sharing) options() *sdk.Options {
	return &sdk.Options{Cwd: s.dir, MCPServers: map[string]sdk.MCPServerConfig{"db": {
		Command: os.Args[0], Env: map[string]string{serverEnv: s.starts}, Shared: true, Timeout: time.Minute,
		Tools: []session.MCPToolPolicy{{Name: "die", PermissionPolicy: session.AlwaysDeny}},
	}}}
}

// session is a session that shares its server.
func (s *sharing) session(o *sdk.Options) (*sdk.MCPServer, func()) {
	s.t.Helper()
	release, err := s.Share(s.t.Context(), o)
	require.NoError(s.t, err)
	require.Len(s.t, o.SDKMCPServers, 1)
	return o.SDKMCPServers[0], release
}

// started returns what the servers have noted.
func (s *sharing) started() []string {
	b, err := os.ReadFile(s.starts)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(s.t, err)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// call calls a tool and returns its text.
func call(ctx context.Context, m *sdk.MCPServer, tool string) (string, error) {
	raw, err := m.Handle(ctx, "tools/call", json.RawMessage(`{"name":"`+tool+`","arguments":{},"_meta":{"progressToken":7}}`))
	if err != nil {
		return "", err
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) == 0 {
		return "", fmt.Errorf("no text: %s: %w", raw, err)
	}
	return r.Content[0].Text, nil
}

func TestSessionsShareAServer(t *testing.T) {
	t.Parallel()
	s := newSharing(t, sharedmcp.Options{Linger: -1})
	var pids [8]string
	var all sync.WaitGroup
	var release [8]func()
	for i := range pids {
		all.Go(func() {
			o := s.options()
			r, err := s.Share(t.Context(), o)
			if !assert.NoError(t, err) {
				return
			}
			release[i] = r
			pids[i], err = call(t.Context(), o.SDKMCPServers[0], "pid")
			assert.NoError(t, err)
		})
	}
	all.Wait()
	for _, pid := range pids {
		assert.Equal(t, pids[0], pid)
	}
	assert.Len(t, s.started(), 1)
	assert.Equal(t, 1, s.Running())

	o := s.options()
	own, last := s.session(o)
	assert.Empty(t, o.MCPServers, "the agent does not start it")
	assert.Equal(t, time.Minute, o.SDKMCPServerConfigs["db"].Timeout)
	assert.Equal(t, session.AlwaysDeny, o.SDKMCPServerConfigs["db"].Tools[0].PermissionPolicy)
	hello, tools, err := own.Manifest()
	require.NoError(t, err)
	assert.Contains(t, string(hello), `"name":"db"`)
	assert.Contains(t, string(tools), `"name":"pid"`)
	for _, r := range release {
		r()
	}
	assert.Equal(t, 1, s.Running(), "one session still needs it")
	last()
	last()
	assert.Equal(t, 0, s.Running())
	require.NoError(t, s.Close(t.Context()))
	var pid int
	_, _ = fmt.Sscan(pids[0], &pid)
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "the process is gone")
	_, err = s.Share(t.Context(), s.options())
	assert.ErrorIs(t, err, sdk.ErrMCPServerClosed)
}

func TestWhatMakesAnotherServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dir    bool
		change func(o *sdk.Options)
		starts int
	}{
		"nothing":            {change: func(*sdk.Options) {}, starts: 1},
		"its credentials":    {change: func(o *sdk.Options) { o.MCPServers["db"].Env["TOKEN"] = "b" }, starts: 2},
		"those of a session": {change: func(o *sdk.Options) { o.Env = map[string]string{"TOKEN": "b"} }, starts: 2},
		"the directory":      {change: func(o *sdk.Options) { o.Cwd = os.TempDir() }, starts: 2},
		"the roots":          {change: func(o *sdk.Options) { o.AdditionalDirectories = []string{os.TempDir()} }, starts: 2},
		"one directory":      {dir: true, change: func(o *sdk.Options) { o.Cwd = os.TempDir() }, starts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opts sharedmcp.Options
			if tt.dir {
				opts.Dir = t.TempDir()
			}
			s := newSharing(t, opts)
			_, release := s.session(s.options())
			defer release()
			other := s.options()
			tt.change(other)
			_, release = s.session(other)
			defer release()
			assert.Len(t, s.started(), tt.starts)
			want := s.dir
			if tt.dir {
				want = opts.Dir
			}
			assert.True(t, strings.HasSuffix(s.started()[0], " "+want), s.started()[0])
		})
	}
}

func TestAServerWithAURLIsNotShared(t *testing.T) {
	t.Parallel()
	s := newSharing(t, sharedmcp.Options{})
	o := &sdk.Options{MCPServers: map[string]sdk.MCPServerConfig{"web": {Type: "http", URL: "https://h", Shared: true}}}
	_, err := s.Share(t.Context(), o)
	require.NotEmpty(t, sdk.ConfigErrors(err))
	assert.Len(t, o.MCPServers, 1, "nothing has changed")
}

// A call that is under way when the server dies fails, and the next one starts it again.
func TestASharedServerDies(t *testing.T) {
	t.Parallel()
	s := newSharing(t, sharedmcp.Options{})
	m, release := s.session(s.options())
	defer release()
	_, err := call(t.Context(), m, "die")
	require.ErrorContains(t, err, "the shared MCP server db has ended")
	_, err = call(t.Context(), m, "pid")
	require.NoError(t, err)
	assert.Len(t, s.started(), 2)
}

// stopped is a clock that stands still: a breaker stays open however slow the machine is. Timers run.
type stopped struct {
	clock.Clock
	at time.Time
}

func (s stopped) Now() time.Time { return s.at }

func TestASharedServerDoesNotStart(t *testing.T) {
	t.Parallel()
	s := sharingAt(t, runtime.Config{Clock: stopped{clock.New(), time.Now()}}, sharedmcp.Options{})
	o := s.options()
	o.MCPServers["db"].Env["BROKEN"] = "1"
	for range 3 {
		_, err := s.Share(t.Context(), o)
		require.ErrorContains(t, err, "db did not start")
		require.ErrorContains(t, err, "no database")
	}
	_, err := s.Share(t.Context(), o)
	require.ErrorAs(t, err, new(*session.BreakerOpenError))
	assert.Len(t, s.started(), 3, "the breaker is open")
	assert.Len(t, o.MCPServers, 1, "nothing has changed")

	o.MCPServers["db"] = sdk.MCPServerConfig{Command: "troupe-no-such-program", Shared: true}
	_, err = s.Share(t.Context(), o)
	require.ErrorAs(t, err, new(*sdk.StartError))
}

// A request of the server goes to the session whose call is open; a call that is cancelled
// ends in the server, too; progress comes to its call, under the agent's own token.
func TestWhatASharedServerAsks(t *testing.T) {
	t.Parallel()
	s := newSharing(t, sharedmcp.Options{Dir: t.TempDir()})
	one, two := s.options(), s.options()
	two.Cwd = t.TempDir()
	two.OnElicitation = func(_ context.Context, r *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
		assert.Equal(t, "db", r.MCPServerName)
		assert.Equal(t, "sure?", r.Message)
		return protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{}`)}, nil
	}
	first, release := s.session(one)
	defer release()
	second, release2 := s.session(two)
	defer release2()

	for m, want := range map[*sdk.MCPServer][2]string{first: {"file://" + s.dir, "decline"}, second: {"file://" + two.Cwd, "accept"}} {
		got, err := call(t.Context(), m, "roots")
		require.NoError(t, err)
		assert.Equal(t, want[0], got)
		got, err = call(t.Context(), m, "ask")
		require.NoError(t, err)
		assert.Equal(t, want[1], got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	progress := make(chan string, 1)
	waiting := mcp.ContextWithNotifier(ctx, func(method string, params json.RawMessage) error {
		progress <- method + " " + string(params)
		return nil
	})
	over := make(chan error, 1)
	go func() { _, err := call(waiting, first, "wait"); over <- err }()
	assert.Regexp(t, `^notifications/progress .*"progressToken":7[,}]`, <-progress)
	got, err := call(t.Context(), second, "roots")
	require.NoError(t, err)
	assert.Contains(t, got, "error: ", "calls of both are open")
	cancel()
	require.ErrorIs(t, <-over, context.Canceled)
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(s.started(), "\n"), "cancelled") }, time.Minute, 10*time.Millisecond)
	assert.Len(t, s.started(), 2, "one server, and one call that was cancelled")
}

// A request of a server about a call that was given up is not answered by another session, whose call is open.
func TestASharedServerAsksAboutACallThatWasGivenUp(t *testing.T) {
	t.Parallel()
	s := newSharing(t, sharedmcp.Options{})
	one, two := s.options(), s.options()
	two.OnElicitation = func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
		return protocol.ElicitationResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{}`)}, nil
	}
	first, release := s.session(one)
	defer release()
	second, release2 := s.session(two)
	defer release2()
	// begin calls a tool, and returns when it runs.
	begin := func(m *sdk.MCPServer, tool string) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		runs, over := make(chan struct{}), make(chan error, 1)
		waiting := mcp.ContextWithNotifier(ctx, func(string, json.RawMessage) error { close(runs); return nil })
		go func() { _, err := call(waiting, m, tool); over <- err }()
		<-runs
		return func() {
			cancel()
			assert.ErrorIs(t, <-over, context.Canceled)
		}
	}
	endSecond := begin(second, "wait")
	defer endSecond()
	begin(first, "late")()
	said := func() string { return strings.Join(s.started(), "\n") }
	require.Eventually(t, func() bool { return strings.Contains(said(), "late") }, time.Minute, 10*time.Millisecond)
	assert.Contains(t, said(), "late refused")
	require.Eventually(t, func() bool { // until the server has answered the call that was given up
		got, err := call(t.Context(), second, "ask")
		return err == nil && got == "accept"
	}, time.Minute, 10*time.Millisecond)
}

// The tasks of a job share a server, and rules decide on its calls as on any other's.
func TestTasksShareAServer(t *testing.T) {
	t.Parallel()
	starts := t.TempDir() + "/starts"
	o := &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Turns: []scripted.Turn{
		{Steps: []scripted.Step{&scripted.ToolUse{Name: "mcp__db__pid"}, &scripted.ToolUse{Name: "mcp__db__ask"}, scripted.Text("done")}},
	}}))}
	o.MCPServers = map[string]sdk.MCPServerConfig{"db": {Command: os.Args[0], Env: map[string]string{serverEnv: starts}, Shared: true}}
	o.Policy = &policy.Rules{Allow: []string{"mcp__db__pid"}, Default: policy.Deny}
	tasks := make([]fleet.Task, 12)
	for i := range tasks {
		tasks[i] = fleet.Task{ID: fmt.Sprint("t", i), Prompt: "do"}
	}
	results := 0
	for r, err := range fleet.Run(t.Context(), fleet.Job{Tasks: tasks, Concurrency: 6, Options: o}) {
		require.NoError(t, err)
		results++
		assert.Equal(t, fleet.Accepted, r.Status, r.Error)
		assert.Equal(t, 2, r.ToolCalls)
		assert.Equal(t, 1, r.Denied, "the gates see each call")
	}
	assert.Equal(t, len(tasks), results)
	noted, err := os.ReadFile(starts)
	require.NoError(t, err)
	started := strings.Split(strings.TrimSpace(string(noted)), "\n")
	require.Len(t, started, 1)
	var pid int
	_, _ = fmt.Sscan(started[0], &pid)
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "it ends with the job")
}
