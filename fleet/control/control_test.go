package control_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is one whose tasks do not end by themselves.
func job(out string) fleet.Job {
	script := &scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Delay(time.Hour)}}
	return fleet.Job{
		Tasks:   []fleet.Task{{ID: "a", Prompt: "x"}, {ID: "b", Prompt: "x"}, {ID: "c", Prompt: "x"}},
		Options: &sdk.Options{Backend: scripted.New(scripted.WithScript(script))}, Concurrency: 1, Out: out,
	}
}

// listening starts a job that can be reached, and returns what ends it.
func listening(t *testing.T, out string) (*fleet.Handle, func()) {
	t.Helper()
	h, err := fleet.Start(t.Context(), job(out))
	require.NoError(t, err)
	server, err := control.Listen(h, out, inspect.Config{})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	end := func() {
		h.Kill()
		<-h.Done()
		_ = server.Close()
		assert.NoError(t, <-served)
	}
	return h, end
}

func TestCommands(t *testing.T) {
	t.Parallel()
	ctx, out := t.Context(), t.TempDir()
	_, err := control.Read(ctx, out)
	require.ErrorIs(t, err, journal.ErrMissing)
	h, end := listening(t, out)
	send := func(c control.Command) error {
		offline, err := control.Send(ctx, out, c)
		assert.False(t, offline)
		return err
	}
	require.NoError(t, send(control.Command{Op: control.Pause}))
	require.NoError(t, send(control.Command{Op: control.Retune, N: 2}))
	require.ErrorContains(t, send(control.Command{Op: control.Retune}), "from 1 on")
	require.ErrorContains(t, send(control.Command{Op: "stop"}), "no operation")
	require.ErrorIs(t, send(control.Command{Op: control.Cancel, Task: "../job/pause"}), fleet.ErrNoTask)
	require.ErrorIs(t, send(control.Command{Op: control.Requeue, Task: "none"}), fleet.ErrNoTask)
	require.NoError(t, send(control.Command{Op: control.Cancel, Task: "b"}))
	require.ErrorIs(t, send(control.Command{Op: control.Allow, Approval: "none"}), fleet.ErrNoApproval)
	require.ErrorIs(t, send(control.Command{Op: control.Deny, Approval: "none", Reason: "a b&c"}), fleet.ErrNoApproval)
	s, err := control.Read(ctx, out)
	require.NoError(t, err)
	assert.True(t, s.Live && s.Paused)
	assert.Equal(t, []any{os.Getpid(), 2, fleet.Canceled}, []any{s.PID, s.Limit, s.Tasks[1].Status})
	require.NoError(t, send(control.Command{Op: control.Requeue, Task: "b"}))
	require.NoError(t, send(control.Command{Op: control.Resume}))
	require.Eventually(t, func() bool { return len(h.Progress().Running) == 2 }, 20*time.Second, time.Millisecond)

	socket, err := control.SocketOf(out)
	require.NoError(t, err)
	st, err := os.Stat(socket)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	st, err = os.Stat(filepath.Dir(socket))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	end()

	s, err = control.Read(ctx, out)
	require.NoError(t, err)
	assert.False(t, s.Live)
	assert.Len(t, s.Tasks, 3)
	_, err = control.Send(ctx, out, control.Command{Op: control.Pause})
	require.ErrorIs(t, err, control.ErrNotRunning)
	offline, err := control.Send(ctx, out, control.Command{Op: control.Cancel, Task: "a"})
	require.NoError(t, err)
	assert.True(t, offline)
	_, err = control.Send(ctx, out, control.Command{Op: control.Cancel, Task: "none"})
	require.ErrorIs(t, err, fleet.ErrNoTask)
}

// A socket that is gone and a journal that is locked: the job cannot be reached.
func TestAJobThatDoesNotListen(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	h, err := fleet.Start(t.Context(), job(out))
	require.NoError(t, err)
	for _, op := range []control.Op{control.Pause, control.Cancel} {
		_, err = control.Send(t.Context(), out, control.Command{Op: op, Task: "a"})
		require.ErrorIs(t, err, control.ErrNotRunning, "%v", err)
	}
	s, err := control.Read(t.Context(), out)
	require.NoError(t, err, "the journal can be read")
	assert.False(t, s.Live)
	h.Kill()
	<-h.Done()
}

func TestWhoMayDecide(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	h, err := fleet.Start(t.Context(), job(t.TempDir()))
	require.NoError(t, err)
	server, err := control.Listen(h, "", inspect.Config{Address: "127.0.0.1:0", Token: token})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	for name, c := range map[string]struct {
		method, path, token, origin, host string
		code                              int
	}{
		"nobody":       {method: http.MethodPost, path: "/api/job/pause", code: 401},
		"a guess":      {method: http.MethodPost, path: "/api/job/pause", token: token + "x", code: 401},
		"another site": {method: http.MethodPost, path: "/api/job/pause", token: token, origin: "http://evil.example", code: 403},
		"another name": {method: http.MethodPost, path: "/api/job/pause", token: token, host: "evil.example", code: 403},
		"a link":       {method: http.MethodGet, path: "/api/job/pause", token: token, code: 405},
		"the owner":    {method: http.MethodPost, path: "/api/task/c/cancel", token: token, code: 200},
		"no number":    {method: http.MethodPost, path: "/api/job/retune/many", token: token, code: 400},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+server.Addr()+c.path, http.NoBody)
		require.NoError(t, err)
		req.Host = c.host
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		require.NoError(t, err)
		_ = resp.Body.Close()
		assert.Equal(t, c.code, resp.StatusCode, name)
	}
	assert.False(t, h.Snapshot().Paused)
	assert.Equal(t, fleet.Canceled, h.Snapshot().Tasks[2].Status)
	h.Kill()
	<-h.Done()
	require.NoError(t, server.Close())
	require.NoError(t, <-served)
}

func TestSocketOf(t *testing.T) {
	t.Parallel()
	short, err := control.SocketOf("/x")
	require.NoError(t, err)
	assert.Equal(t, "/x/control/ctl.sock", short)
	long, err := control.SocketOf("/" + strings.Repeat("x", 100))
	require.NoError(t, err)
	other, err := control.SocketOf("/" + strings.Repeat("y", 100))
	require.NoError(t, err)
	assert.NotEqual(t, long, other)
	assert.NotContains(t, long, "xxx")
	require.NoError(t, context.Cause(t.Context()))
}
